"""Decides whether a reader accepts every value that a writer emits, and says why not.

It compares pairs of a reader's schema and a case of the writer's (see `writer_cases.py`). A pair that recurs while it
is being compared counts as compatible unless another comparison in it fails: values are finite, so each recursion is
about a smaller value. A question that cannot be decided counts as incompatible, unless both schemas are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from annals.domain.formats.contract import Incompatibility
from annals.domain.formats.json_fragment import json_fragment
from annals.domain.formats.jsonschema.instance_validation import accepts_value
from annals.domain.formats.jsonschema.node import SchemaNode
from annals.domain.formats.jsonschema.schema_equality import SchemaEquality
from annals.domain.formats.jsonschema.writer_cases import SchemaNodes, WriterCase, writer_cases

#: Maximum steps of a comparison, and further steps for each schema in the two documents.
MAX_STEPS: Final = 10_000
STEPS_PER_NODE: Final = 50
#: How many times a case may be split to find an accepting alternative of a reader, and into how many parts at most.
_MAX_SPLITS: Final = 2
_MAX_PARTS: Final = 16

Incompatibilities = list[Incompatibility]
#: The level of proven results; other levels are of comparisons in progress.
_PROVEN_LEVEL: Final = -1


class StepLimitExceeded(Exception):
    """The comparison exceeds its maximum number of steps."""


@dataclass
class JsonSchemaComparison:
    """One comparison of two documents.

    rules: compares the keywords for single kinds of values. has_no_values: detects cases without values. steps: the
    remaining number of steps. limit: the maximum number of incompatibilities.
    """

    rules: Callable[[JsonSchemaComparison, SchemaNode, WriterCase], Iterator[Incompatibility]]
    has_no_values: Callable[[JsonSchemaComparison, WriterCase, WriterCase | None], bool]
    steps: int
    limit: int
    equality: SchemaEquality = field(default_factory=SchemaEquality)

    def __post_init__(self) -> None:
        self._cases: dict[tuple[frozenset[int], bool], tuple[Sequence[SchemaNode], list[WriterCase]]] = {}
        #: Cases by content. Objects remembered by identity stay alive as long as the comparison, so ids are not reused.
        self._known: dict[object, WriterCase] = {}
        #: Results assumed or proven (_PROVEN_LEVEL), in order: each may depend on earlier ones. The value is the depth
        #: in the compared values at which it was assumed; `_level` is the current depth.
        self._trusted: dict[object, int] = {}
        self._failed: dict[object, Incompatibilities] = {}
        self._not_void: set[object] = set()
        self._level = 0

    def incompatibilities(self, reader: SchemaNode, writer: SchemaNodes, closed: bool = True) -> Incompatibilities:
        """Why a reader does not accept all values of a conjunction of the writer's schemas; empty if it does."""
        if reader.free or any(self.equality(reader, node) for node in writer):
            return []
        incompatibilities: dict[Incompatibility, None] = {}
        self._level += 1
        for case in self.cases(writer, closed):
            if len(incompatibilities) < self.limit and not self.is_empty(case):
                incompatibilities.update(dict.fromkeys(self.case_incompatibilities(reader, case)))
        self._level -= 1
        return list(incompatibilities)

    def cases(self, writer: SchemaNodes, closed: bool) -> list[WriterCase]:
        """The cases of a conjunction; repeated calls return the same objects."""
        name = (frozenset(map(id, writer)), closed)
        if name not in self._cases:
            self._cases[name] = (writer, [self._one_of_each(case) for case in writer_cases(writer, closed)])
        return self._cases[name][1]

    def case_incompatibilities(self, reader: SchemaNode, case: WriterCase) -> Incompatibilities:
        """Why a reader does not accept all values of a case; empty if it does. Raises: StepLimitExceeded."""
        if reader.free:
            return []
        pair = (id(reader), id(case))
        if pair in self._failed:
            return self._failed[pair]
        if pair in self._trusted:
            # For the same value, the assumption would be circular; for a part of the value, it is sound.
            return [] if self._trusted[pair] < self._level else [_circular_incompatibility(reader, case)]
        self._count_step()
        self._trusted[pair] = self._level
        incompatibilities = self._compare_case(reader, case)
        if incompatibilities:
            self._forget_results(pair)
            self._failed[pair] = incompatibilities
        else:
            self._trusted[pair] = _PROVEN_LEVEL
        return incompatibilities

    def _forget_results(self, name: object) -> None:
        """Forgets a result and all later ones, which may depend on it."""
        while self._trusted.popitem()[0] != name:
            pass

    def _one_of_each(self, case: WriterCase) -> WriterCase:
        schemas = frozenset(map(id, case.nodes)), frozenset(map(id, case.negated))
        name = (*schemas, case.closed, case.is_loose, case.has_only_declared_members)
        return self._known.setdefault(name, case)

    def _compare_case(self, reader: SchemaNode, case: WriterCase) -> Incompatibilities:
        if any(self.equality(reader, node) for node in case.nodes):
            return []
        if reader.never:
            return [
                Incompatibility("reader-false", "The reader accepts no value here.", reader.location(), case.location())
            ]
        values = case.values
        if values is not None:
            return list(_value_incompatibilities(reader, case, values))
        incompatibilities: dict[Incompatibility, None] = {}
        for part in self._parts(reader, case):
            incompatibilities.update(dict.fromkeys(part))
            if len(incompatibilities) >= self.limit:
                break
        return list(incompatibilities)[: self.limit]

    def _parts(self, reader: SchemaNode, case: WriterCase) -> Iterator[Iterable[Incompatibility]]:
        if reader.remote is not None and not any(node.remote == reader.remote for node in case.nodes):
            text = (
                f"The reader refers to {reader.remote[:150]}, which is not fetched; only the same reference is equal."
            )
            yield [Incompatibility("reader-reference-outside", text, reader.location("$ref"), case.location("$ref"))]
        yield self.rules(self, reader, case)
        for node in (*([reader.ref] if reader.ref else []), *reader.all_of):
            yield self.case_incompatibilities(node, case)
        if reader.any_of and not self._has_equal_keywords(reader, case, "any_of"):
            yield self._require(case, lambda part: self._has_accepting_branch(reader, part), "anyOf", reader)
        if reader.one_of and not self._has_equal_keywords(reader, case, "one_of"):
            yield self._require(case, lambda part: self._has_single_branch(reader, part), "oneOf", reader)
        if reader.negated is not None and not self._has_equal_keywords(reader, case, "negated"):
            negated_schema = reader.negated
            yield self._require(case, lambda part: self.is_disjoint(part, negated_schema), "not", reader)
        if reader.condition is not None and not self._has_equal_keywords(
            reader, case, "condition", "then", "otherwise"
        ):
            yield self._require(case, lambda part: self._is_condition_met(reader, part), "if", reader)
        for name, subschema in reader.dependent_schemas.items():
            if case.can_have(name) and "object" in case.kinds:
                yield self.case_incompatibilities(subschema, case.with_node(f"with {name}", reader.requiring(name)))

    def _has_equal_keywords(self, reader: SchemaNode, case: WriterCase, *keywords: str) -> bool:
        """Whether the writer has equal keywords, so that all its values satisfy those of the reader."""
        return any(
            all(self._are_equal(getattr(reader, attribute), getattr(node, attribute)) for attribute in keywords)
            for node in case.nodes
        )

    def _are_equal(self, first: SchemaNode | SchemaNodes | None, other: SchemaNode | SchemaNodes | None) -> bool:
        if isinstance(first, SchemaNode) and isinstance(other, SchemaNode):
            return self.equality(first, other)
        if isinstance(first, SchemaNode) or isinstance(other, SchemaNode) or first is None or other is None:
            return first is other
        return len(first) == len(other) and all(map(self.equality, first, other))

    def _has_accepting_branch(self, reader: SchemaNode, case: WriterCase) -> bool:
        return any(not self.case_incompatibilities(branch, case) for branch in reader.any_of)

    def _has_single_branch(self, reader: SchemaNode, case: WriterCase) -> bool:
        for branch in reader.one_of:
            if not self.case_incompatibilities(branch, case):
                return all(other is branch or self.is_disjoint(case, other) for other in reader.one_of)
        return False

    def _is_condition_met(self, reader: SchemaNode, case: WriterCase) -> bool:
        condition = reader.condition
        assert condition is not None
        certainly_holds = not self.case_incompatibilities(condition, case)
        never_holds = not certainly_holds and self.is_disjoint(case, condition)
        accepts_then = never_holds or reader.then is None or not self.case_incompatibilities(reader.then, case)
        return accepts_then and (
            certainly_holds or reader.otherwise is None or not self.case_incompatibilities(reader.otherwise, case)
        )

    def _require(
        self, case: WriterCase, predicate: Callable[[WriterCase], bool], keyword: str, reader: SchemaNode
    ) -> Incompatibilities:
        """Empty where a condition holds for a case, or for each of its parts after some split."""
        if self._is_true_for(case, predicate, _MAX_SPLITS):
            return []
        return [
            Incompatibility(
                f"reader-{keyword.lower()}",
                f"{_UNDECIDED[keyword]} What cannot be decided counts as incompatible, unless both places are equal.",
                reader.location(keyword, "choices", "required", "type"),
                case.location(keyword, "choices", "required", "type"),
            )
        ]

    def _is_true_for(self, case: WriterCase, predicate: Callable[[WriterCase], bool], splits: int) -> bool:
        if predicate(case):
            return True
        if not splits:
            return False
        for parts in _case_splits(case):
            if all(self.is_empty(part) or self._is_true_for(part, predicate, splits - 1) for part in parts):
                return True
        return False

    def is_disjoint(self, case: WriterCase, other: SchemaNode) -> bool:
        """Whether certainly no value of a case is valid for another schema."""
        self._count_step()
        joint_cases = [self._one_of_each(joint_case) for joint_case in writer_cases([other], case.closed, case)]
        return all(self.is_empty(joint_case, case) for joint_case in joint_cases)

    def is_empty(self, case: WriterCase, known: WriterCase | None = None) -> bool:
        """Whether a case certainly has no values.

        known: the case that determines the possible members, if the case also contains schemas of the reader. The
        negated schemas of a case count only then; otherwise overlapping alternatives of a writer would appear to be
        empty.
        """
        name = (id(case), id(known))
        if name in self._trusted:
            return self._trusted[name] == _PROVEN_LEVEL
        if name in self._not_void:
            return False
        self._count_step()
        self._trusted[name] = self._level
        if self.has_no_values(self, case, known):
            self._trusted[name] = _PROVEN_LEVEL
            return True
        self._forget_results(name)
        self._not_void.add(name)
        return False

    def _count_step(self) -> None:
        self.steps -= 1
        if self.steps < 0:
            raise StepLimitExceeded


def _circular_incompatibility(reader: SchemaNode, case: WriterCase) -> Incompatibility:
    text = "Whether the reader accepts this depends on itself, so it cannot be decided and counts as incompatible."
    return Incompatibility("undecided", text, reader.location(), case.location())


_UNDECIDED: Final = {
    "anyOf": "No single alternative of the reader is known to accept all that the writer emits here.",
    "oneOf": "Not exactly one alternative of the reader is known to accept what the writer emits here.",
    "not": "The writer is not known to leave out what the reader refuses with `not`.",
    "if": "The writer is not known to satisfy what the reader requires with `if`, `then` and `else`.",
}


def _value_incompatibilities(
    reader: SchemaNode, case: WriterCase, values: Sequence[object]
) -> Iterator[Incompatibility]:
    for value in values:
        is_accepted = accepts_value(reader, value)
        if not is_accepted:
            reason = "does not accept" if is_accepted is False else "is not known to accept"
            text = f"The reader {reason} the value {json_fragment(value)[:80]}, which the writer may emit."
            where = reader.location("enum", "const", "type", "anyOf", "oneOf", "not", "$ref")
            yield Incompatibility("reader-value-missing", text, where, case.location("enum", "const", "type"))
            return


def _case_splits(case: WriterCase) -> Iterator[list[WriterCase]]:
    """Ways to split a case: by kinds of values, or by the values of a member with few values."""
    if len(case.kinds) > 1:
        yield [case.with_kind(kind) for kind in sorted(case.kinds)]
        return
    if case.kinds != {"object"}:
        return
    for name, nodes in case.members.items():
        allowed = [node.allowed for node in nodes if node.allowed is not None]
        # A part is never split by the same member again; otherwise nested splits would not terminate.
        if allowed and not any(node.never for node in nodes) and 1 < min(map(len, allowed)) <= _MAX_PARTS:
            parts = [_case_with_member(case, name, {key: value}) for key, value in min(allowed, key=len).items()]
            yield parts if name in case.required else [*parts, _case_with_member(case, name, None)]


def _case_with_member(case: WriterCase, name: str, allowed: dict[object, object] | None) -> WriterCase:
    """The part of a case in which a member has one value; allowed=None: in which the member is absent."""
    member_node = case.member(name)[0]
    value_node = SchemaNode(member_node.pointer, member_node.raw, never=allowed is None, allowed=allowed).seal()
    node = SchemaNode(case.nodes[0].pointer, case.nodes[0].raw, properties={name: value_node}).seal()
    return case.with_node(f"member {name} {list(allowed or ())}", node)
