"""What a filter or an order is once it has been read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from functools import cached_property

from domain.values import xid as xids
from domain.values.dot_path import PathWildcard, Step


class Operator(Enum):
    """What an expression asks of its attribute; the values are the signs that the comparison may have."""

    PRESENT = "present"
    ABSENT = "absent"
    EQUAL = (0,)
    DIFFERENT = "different"
    LESS = (-1,)
    AT_MOST = (-1, 0)
    MORE = (1,)
    AT_LEAST = (1, 0)

    @property
    def negative(self) -> bool:
        """Whether an entity without the attribute matches."""
        return self in (Operator.ABSENT, Operator.DIFFERENT)

    @property
    def positive(self) -> Operator:
        """The operator that this one negates, or itself."""
        return {Operator.ABSENT: Operator.PRESENT, Operator.DIFFERENT: Operator.EQUAL}.get(self, self)


@dataclass(frozen=True, slots=True)
class FilterValue:
    """A value as it compares with each kind of leaf; None for the kinds that it cannot be.

    pieces: the folded texts between the wildcards of a pattern; a single one where there is none.
    """

    pieces: tuple[str, ...] = ()
    text: str | None = None
    number: Decimal | None = None
    boolean: bool | None = None

    @property
    def pattern(self) -> bool:
        """Whether there are wildcards."""
        return len(self.pieces) > 1

    def fits(self, text: str) -> bool:
        """Whether the `text_order` of a value is what the pattern means.

        Each piece is taken where it comes first: a regular expression would try all places, for ever where a long value
        has many.
        """
        first, *between, last = self.pieces
        if not text.startswith(first):
            return False
        at = len(first)
        for piece in between:
            at = text.find(piece, at)
            if at < 0:
                return False
            at += len(piece)
        return text.endswith(last) and len(text) - len(last) >= at


@dataclass(frozen=True, slots=True)
class DerivedAttribute:
    """An attribute that is made from an entity's xid. absolute: it is a URL. suffix: what follows the xid."""

    absolute: bool
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class FilterExpression:
    """One condition on the entities of one type.

    path: of the attribute, in the entity as it is stored (`("meta", "epoch")` for a Resource's own epoch).
    scalar: whether the model says that the attribute is a scalar. source: the attribute, operator and value as given.
    derived: how the attribute is made, where it is not stored.
    """

    type: str
    path: tuple[Step, ...]
    operator: Operator
    sought: FilterValue
    scalar: bool
    source: str
    derived: DerivedAttribute | None = None

    @property
    def wild(self) -> bool:
        """Whether the path has `.*` or `[*]`."""
        return any(isinstance(step, PathWildcard) for step in self.path)


@dataclass(frozen=True)
class Conjunction:
    """Expressions joined by AND, all on one branch of the tree. type: the deepest; it is whose entities are picked."""

    expressions: tuple[FilterExpression, ...]

    @cached_property
    def type(self) -> str:
        return max((each.type for each in self.expressions), key=depth)

    def of(self, type: str) -> tuple[FilterExpression, ...]:
        """The expressions about one type."""
        return tuple(each for each in self.expressions if each.type == type)


#: Conjunctions joined by OR; none of them: nothing matches.
EntityFilter = tuple[Conjunction, ...]


@dataclass(frozen=True, slots=True)
class Sort:
    """The order of a collection: by a scalar attribute, those without it lowest, then by id in the same direction.

    path: empty where the order is that of the ids.
    """

    path: tuple[str | int, ...]
    descending: bool = False


@dataclass(frozen=True, slots=True)
class PathScope:
    """Where paths start: at the entities of a type (`/` for the registry), or at the meta of Resources."""

    type: str
    meta: bool = False


def depth(type: str) -> int:
    """0 for the registry, 1 for Groups, 2 for Resources, 3 for Versions."""
    return 0 if type == xids.REGISTRY else type.count(".") + 1


def is_above(type: str, other: str) -> bool:
    """Whether entities of a type can own those of another, or are of the same."""
    return type in (xids.REGISTRY, other) or other.startswith(f"{type}.")


def remaining_filters(conjunctions: Sequence[Conjunction], type: str) -> list[list[str]]:
    """The conjunctions as they read from the entities of a deeper type on; what is above it has been decided."""
    return [
        [_expression_text(each, type) for each in one.expressions if is_above(type, each.type)]
        for one in conjunctions
        if is_above(type, one.type)
    ]


def _expression_text(expression: FilterExpression, type: str) -> str:
    steps = expression.type.split(".")[depth(type) :]
    return ".".join((*steps, expression.source))
