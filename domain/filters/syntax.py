"""Syntax trees of filters and sorts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from functools import cached_property

from annals.domain.values import xid as xids
from annals.domain.values.dot_path import PathWildcard, Step


class Operator(Enum):
    """The condition on an attribute. The tuples list the accepted results of the comparison: -1, 0, 1."""

    PRESENT = "present"
    ABSENT = "absent"
    EQUAL = (0,)
    DIFFERENT = "different"
    LESS = (-1,)
    AT_MOST = (-1, 0)
    MORE = (1,)
    AT_LEAST = (1, 0)

    @property
    def is_negative(self) -> bool:
        """Whether the operator matches an entity without the attribute."""
        return self in (Operator.ABSENT, Operator.DIFFERENT)

    @property
    def positive(self) -> Operator:
        """The operator that this one negates; itself where it negates none."""
        return {Operator.ABSENT: Operator.PRESENT, Operator.DIFFERENT: Operator.EQUAL}.get(self, self)


@dataclass(frozen=True, slots=True)
class FilterValue:
    """A value in the forms that compare with each kind of stored value; None for kinds that it cannot have.

    pieces: the folded texts between the wildcards of a pattern; one piece where there are no wildcards.
    """

    pieces: tuple[str, ...] = ()
    text: str | None = None
    number: Decimal | None = None
    boolean: bool | None = None

    @property
    def has_wildcards(self) -> bool:
        """Whether the value has wildcards."""
        return len(self.pieces) > 1

    def matches_text(self, text: str) -> bool:
        """Whether the pattern matches the `fold_text` of a value.

        Each piece is matched at its first occurrence. A regular expression would try all occurrences, which takes
        forever where a long value has many.
        """
        first_part, *middle_parts, last_part = self.pieces
        if not text.startswith(first_part):
            return False
        index = len(first_part)
        for part in middle_parts:
            index = text.find(part, index)
            if index < 0:
                return False
            index += len(part)
        return text.endswith(last_part) and len(text) - len(last_part) >= index


@dataclass(frozen=True, slots=True)
class DerivedAttribute:
    """An attribute computed from an entity's xid. is_url: it is a URL. suffix: the text after the xid."""

    is_url: bool
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class FilterExpression:
    """One condition on the entities of one type.

    path: of the attribute in the stored entity (`("meta", "epoch")` for a Resource's own epoch). is_scalar: whether the
    model defines the attribute as a scalar. source: attribute, operator and value as the client wrote them. derived:
    how to compute the attribute, where it is not stored.
    """

    type: str
    path: tuple[Step, ...]
    operator: Operator
    value: FilterValue
    is_scalar: bool
    source: str
    derived_attribute: DerivedAttribute | None = None

    @property
    def has_wildcards(self) -> bool:
        """Whether the path has `.*` or `[*]`."""
        return any(isinstance(step, PathWildcard) for step in self.path)


@dataclass(frozen=True)
class Conjunction:
    """Expressions joined by AND, all on one branch of the tree. type: the deepest type; its entities are selected."""

    expressions: tuple[FilterExpression, ...]

    @cached_property
    def type(self) -> str:
        return max((expression.type for expression in self.expressions), key=depth)

    def for_type(self, type: str) -> tuple[FilterExpression, ...]:
        """The expressions about one type."""
        return tuple(expression for expression in self.expressions if expression.type == type)


#: Conjunctions joined by OR; an empty filter matches nothing.
EntityFilter = tuple[Conjunction, ...]


@dataclass(frozen=True, slots=True)
class Sort:
    """The order of a collection: by a scalar attribute, missing values lowest, then by id in the same direction.

    path: empty for the order by id.
    """

    path: tuple[str | int, ...]
    descending: bool = False


@dataclass(frozen=True, slots=True)
class PathScope:
    """The start of paths: entities of a type (`/` for the registry), or the meta of Resources."""

    type: str
    is_meta: bool = False


def depth(type: str) -> int:
    """The depth of a type in the tree: 0 for the registry, 1 for Groups, 2 for Resources, 3 for Versions."""
    return 0 if type == xids.REGISTRY else type.count(".") + 1


def is_above(type: str, other: str) -> bool:
    """Whether entities of a type contain those of another, or the types are equal."""
    return type in (xids.REGISTRY, other) or other.startswith(f"{type}.")


def remaining_filters(conjunctions: Sequence[Conjunction], type: str) -> list[list[str]]:
    """The conjunctions as expressions relative to a deeper type, without those above it, which were already applied."""
    return [
        [
            _expression_text(expression, type)
            for expression in conjunction.expressions
            if is_above(type, expression.type)
        ]
        for conjunction in conjunctions
        if is_above(type, conjunction.type)
    ]


def _expression_text(expression: FilterExpression, type: str) -> str:
    steps = expression.type.split(".")[depth(type) :]
    return ".".join((*steps, expression.source))
