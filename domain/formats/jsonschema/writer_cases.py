"""Splits a writer's schema into cases: plain conjunctions of schemas that together describe what the writer emits.

Closed world (SC-36): producers emit only declared members. If a schema declares members, by name or by pattern, and
leaves others open, by silence or by `true`, then its values have only the declared members; this applies to each of its
alternatives separately. A writer can still declare open content with a restricting schema in `additionalProperties` or
`unevaluatedProperties`. A schema that declares no member and refuses none allows any object: `{"type": "object"}` and
`{}` are the usual way to write free content, because a producer of empty objects only would need no schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR
from functools import cached_property
from itertools import islice
from typing import Any, Final

from annals.domain.formats.contract import DocumentLocation
from annals.domain.formats.jsonschema.instance_validation import accepts_value
from annals.domain.formats.jsonschema.node import NumberBound, SchemaNode
from annals.domain.formats.jsonschema.values import KINDS, NUMBERS, equality_key, matches_pattern

#: The maximum number of cases. A writer with more is compared as one case, which finds fewer changes compatible.
MAX_CASES: Final = 64
#: All values of the kinds that have only a few.
_FINITE_VALUES: Final = {"null": (None,), "boolean": (False, True)}

SchemaNodes = tuple[SchemaNode, ...]


@dataclass(eq=False)
class WriterCase:
    """The values that all of `nodes` allow and none of `negated` allows.

    closed: all schemas that declare members are known, so an object with declared members has no others. is_loose:
    further schemas may apply to the value.
    """

    nodes: SchemaNodes
    negated: SchemaNodes
    closed: bool = True
    is_loose: bool = False
    cached_cases: dict[str, WriterCase] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.is_loose = self.is_loose or any(node.remote is not None for node in self.nodes)

    @cached_property
    def kinds(self) -> frozenset[str]:
        kinds = KINDS
        for node in self.nodes:
            if node.never:
                return frozenset()
            kinds = kinds if node.kinds is None else kinds & node.kinds
        return kinds

    @cached_property
    def values(self) -> list[Any] | None:
        """All values, where the schemas list them; else None."""
        allowed_values = [node.allowed for node in self.nodes if node.allowed is not None]
        if not allowed_values and not self.kinds <= _FINITE_VALUES.keys():
            return None
        values_of_small_types = {
            equality_key(value): value for name in sorted(self.kinds) for value in _FINITE_VALUES.get(name, ())
        }
        candidates = allowed_values[0] if allowed_values else values_of_small_types
        return [
            value
            for value in candidates.values()
            if not any(accepts_value(node, value) is False for node in self.nodes)
        ]

    @cached_property
    def lower(self) -> NumberBound | None:
        bounds = [node.lower for node in self.nodes if node.lower is not None]
        strongest = max(bounds, default=None)
        return strongest if strongest is None or self.kinds & NUMBERS != {"integer"} else _inclusive_bound(strongest, 1)

    @cached_property
    def upper(self) -> NumberBound | None:
        bounds = [node.upper for node in self.nodes if node.upper is not None]
        strongest = min(bounds, key=lambda bound: (bound[0], not bound[1]), default=None)
        return (
            strongest if strongest is None or self.kinds & NUMBERS != {"integer"} else _inclusive_bound(strongest, -1)
        )

    @cached_property
    def min_items(self) -> int:
        return max((node.min_items for node in self.nodes), default=0)

    @cached_property
    def max_items(self) -> int | None:
        limits = [node.max_items for node in self.nodes if node.max_items is not None]
        refused_indexes = (index for index in range(self.positions + 1) if any(node.never for node in self.item(index)))
        return min([*limits, *islice(refused_indexes, 1)], default=None)

    @cached_property
    def required(self) -> frozenset[str]:
        names = frozenset[str]().union(*(node.required for node in self.nodes))
        dependencies = [node.dependent_required for node in self.nodes if node.dependent_required]
        size = -1
        while dependencies and size != len(names):
            size = len(names)
            names = names.union(
                *(
                    further_names
                    for dependency in dependencies
                    for name, further_names in dependency.items()
                    if name in names
                )
            )
        return names

    @cached_property
    def members(self) -> dict[str, SchemaNodes]:
        """The members that are declared by name, each with the schemas that apply to it together."""
        names = dict.fromkeys(name for node in self.nodes for name in node.properties)
        names.update(dict.fromkeys(sorted(self.required)))
        pending = list(names)
        while pending:  # a member that a declared member requires is declared too
            name = pending.pop()
            required_names = frozenset[str]().union(*(node.dependent_required.get(name, ()) for node in self.nodes))
            pending += (new_names := sorted(required_names - names.keys()))
            names.update(dict.fromkeys(new_names))
        return {name: self.member(name) for name in names}

    def member(self, name: str) -> SchemaNodes:
        """The schemas that apply to a member, declared or not."""
        subschemas: dict[int, SchemaNode] = {}
        for node in self.nodes:
            for subschema in _member_schemas(node, name):
                if not subschema.free:
                    subschemas[id(subschema)] = subschema
        subschemas.update(
            (id(subschema), subschema) for subschema in self._unevaluated_schemas(name) if not subschema.free
        )
        return tuple(subschemas.values())

    @cached_property
    def has_only_declared_members(self) -> bool:
        """Whether members that no schema declares are never present."""
        return self.closed and any(
            not subschema.never
            for node in self.nodes
            for subschema in (*node.properties.values(), *node.by_pattern.values())
        )

    @cached_property
    def other_members(self) -> SchemaNodes | None:
        """The schemas for members without a declared name; None where there are no such members."""
        subschemas = [node.additional for node in self.nodes if node.additional is not None]
        subschemas += [node.unevaluated for node in self._with_unevaluated if node.unevaluated is not None]
        if any(node.never for node in subschemas):
            return None
        restricting = tuple(node for node in subschemas if not node.free)
        return restricting if restricting or not self.has_only_declared_members else None

    @cached_property
    def _with_unevaluated(self) -> list[SchemaNode]:
        """The schemas whose `unevaluatedProperties` may apply, because no other schema evaluates all members."""
        if self.is_loose and not self.closed:
            return []
        return [
            node
            for node in self.nodes
            if node.unevaluated is not None
            and not any(
                each.additional is not None or (each.unevaluated is not None and each is not node)
                for each in _same_value_nodes(node, self._node_ids)
            )
        ]

    def _unevaluated_schemas(self, name: str) -> Iterator[SchemaNode]:
        """The `unevaluatedProperties` schemas that apply to a member."""
        # An unknown alternative may evaluate a required member, so its schema must count too.
        holding_ids = None if self.is_loose and name in self.required else self._node_ids
        for node in self._with_unevaluated:
            is_evaluated = any(_can_evaluate(subschema, name) for subschema in _same_value_nodes(node, holding_ids))
            if node.unevaluated is not None and not is_evaluated:
                yield node.unevaluated

    @cached_property
    def _node_ids(self) -> frozenset[int]:
        return frozenset(map(id, self.nodes))

    @cached_property
    def patterns(self) -> list[tuple[str, SchemaNode]]:
        """The members that are declared by patterns, as (pattern, schema)."""
        pattern_items = [pattern_item for node in self.nodes for pattern_item in node.by_pattern.items()]
        return [(pattern, subschema) for pattern, subschema in pattern_items if not subschema.never]

    def can_have(self, name: str) -> bool:
        """Whether a member may be present."""
        if any(node.never for node in self.member(name)):
            return False
        if name in self.members or self.other_members is not None:
            return True
        return any(matches_pattern(pattern, name) is not False for pattern, _ in self.patterns)

    def item(self, index: int) -> SchemaNodes:
        """The schemas that apply to an item; an index beyond `positions` means all further items."""
        subschemas = []
        for node in self.nodes:
            subschema = node.prefix[index] if index < len(node.prefix) else node.items
            subschemas += [subschema] if subschema is not None and not subschema.free else []
        return (*subschemas, *(subschema for first, subschema in self._unevaluated_items if index >= first))

    @cached_property
    def _unevaluated_items(self) -> list[tuple[int, SchemaNode]]:
        """The schemas for items that no other schema for the same value evaluates, each with its first index."""
        indexed_subschemas: list[tuple[int, SchemaNode]] = []
        for node in self.nodes:
            if node.unevaluated_items is not None:
                same_value_nodes = list(_same_value_nodes(node, None if self.is_loose else self._node_ids))
                if not any(
                    each.items is not None or each.contains is not None for each in same_value_nodes
                ) and not any(each.unevaluated_items is not None for each in same_value_nodes if each is not node):
                    indexed_subschemas.append(
                        (max(len(each.prefix) for each in same_value_nodes), node.unevaluated_items)
                    )
        return indexed_subschemas

    @cached_property
    def positions(self) -> int:
        """The number of items that have a schema of their own."""
        prefix_lengths = [len(node.prefix) for node in self.nodes]
        return max(prefix_lengths + [first for first, _ in self._unevaluated_items], default=0)

    def with_node(self, name: str, *nodes: SchemaNode) -> WriterCase:
        """The part of the case for which further schemas hold. name: a cache key that identifies these schemas."""
        if name not in self.cached_cases:
            self.cached_cases[name] = WriterCase((*self.nodes, *nodes), self.negated, self.closed, self.is_loose)
            self.cached_cases[
                name
            ].has_only_declared_members = (
                self.has_only_declared_members
            )  # the further schemas restrict members, they do not declare any
        return self.cached_cases[name]

    @cached_property
    def as_open(self) -> WriterCase:
        """The case with undeclared members allowed, because the schemas that it negates may declare some."""
        return WriterCase(self.nodes, self.negated, closed=False, is_loose=self.is_loose)

    def with_kind(self, kind: str) -> WriterCase:
        """The part of the case with one kind of value."""
        node = SchemaNode(self.nodes[0].pointer, self.nodes[0].raw, kinds=frozenset({kind}))
        if kind in _FINITE_VALUES:
            node.allowed = {equality_key(value): value for value in _FINITE_VALUES[kind]}
        return self.with_node(f"kind {kind}", node.seal())

    def location(self, *keywords: str) -> DocumentLocation:
        """The location of the first of the keywords that the writer has, else of the case."""
        for keyword in keywords:
            for node in self.nodes:
                if node.has_keyword(keyword):
                    return node.location(keyword)
        return next((node for node in self.nodes if node.ref is None), self.nodes[0]).location()


def _same_value_nodes(start: SchemaNode, holding_ids: frozenset[int] | None) -> Iterator[SchemaNode]:
    """A schema and those that apply to the same value through it.

    holding_ids: ids of those that hold; None: all may.
    """
    seen, pending = {id(start)}, [start]
    while pending:
        node = pending.pop()
        yield node
        for child in node.in_place_subschemas():
            is_holding = child is not node.negated and (holding_ids is None or id(child) in holding_ids)
            if is_holding and id(child) not in seen:
                seen.add(id(child))
                pending.append(child)


def _can_evaluate(node: SchemaNode, name: str) -> bool:
    """Whether a schema may evaluate a member."""
    if name in node.properties or node.additional is not None:
        return True
    return any(matches_pattern(pattern, name) is not False for pattern in node.by_pattern)


def _member_schemas(node: SchemaNode, name: str) -> Iterator[SchemaNode]:
    evaluated = False
    if name in node.properties:
        evaluated = True
        yield node.properties[name]
    for pattern, subschema in node.by_pattern.items():
        is_match = matches_pattern(pattern, name)
        # A pattern that cannot be evaluated may match or not, so it neither restricts the member nor leaves it
        # undeclared.
        evaluated = evaluated or is_match is not False
        if is_match:
            yield subschema
    if not evaluated and node.additional is not None:
        yield node.additional


def _inclusive_bound(bound: NumberBound, step: int) -> NumberBound:
    """An equivalent inclusive bound for integers. step: 1 for a lower bound, -1 for an upper one."""
    value, is_exclusive = bound
    if abs(value.adjusted()) > 20 or len(value.as_tuple().digits) > 25:
        return bound
    rounded = value.to_integral_value(ROUND_CEILING if step > 0 else ROUND_FLOOR)
    return (rounded + step if is_exclusive and rounded == value else rounded, False)


def writer_cases(start: Sequence[SchemaNode], closed: bool, base_case: WriterCase | None = None) -> list[WriterCase]:
    """The cases of a conjunction of schemas; together they cover all values that it allows.

    base_case: a case to which the schemas are added.
    """
    seed = _PartialCase({}, (), [], False)
    if base_case is not None:
        seed = _PartialCase({id(node): node for node in base_case.nodes}, base_case.negated, [], base_case.is_loose)
    first = seed.with_nodes(tuple(start), ())
    finished: list[_PartialCase] = []
    pending = [first]
    while pending:
        partial_case = pending.pop()
        if not partial_case.groups:
            finished.append(partial_case)
            continue
        (alternatives, is_loose), *other_groups = partial_case.groups
        without_first_group = _PartialCase(
            partial_case.nodes, partial_case.negated, other_groups, partial_case.is_loose or is_loose
        )
        pending.extend(without_first_group.with_nodes(nodes, negated) for nodes, negated in reversed(alternatives))
        if len(finished) + len(pending) > MAX_CASES:
            # One case as a whole. Its alternatives are unknown, so it may have members that no known schema declares.
            return [WriterCase(tuple(first.nodes.values()), first.negated, closed=False, is_loose=True)]
    cases_by_nodes = {
        frozenset(finished_case.nodes): WriterCase(
            tuple(finished_case.nodes.values()), finished_case.negated, closed, finished_case.is_loose
        )
        for finished_case in finished
    }
    if base_case is not None:
        for case in cases_by_nodes.values():
            case.has_only_declared_members = (
                base_case.has_only_declared_members
            )  # a reader's schemas declare no members
    return [case for case in cases_by_nodes.values() if case.kinds]


#: Alternatives, each with the schemas that hold and those that do not, and whether several may hold at once.
_Group = tuple[list[tuple[SchemaNodes, SchemaNodes]], bool]


@dataclass(frozen=True, slots=True)
class _PartialCase:
    nodes: dict[int, SchemaNode]
    negated: SchemaNodes
    groups: list[_Group]
    is_loose: bool

    def with_nodes(self, new_nodes: SchemaNodes, new_negated: SchemaNodes) -> _PartialCase:
        """The case with further schemas, and all schemas for the same value that they refer to."""
        nodes, groups, all_negated = dict(self.nodes), list(self.groups), [*self.negated, *new_negated]
        stack = list(reversed(new_nodes))
        while stack:
            node = stack.pop()
            if id(node) in nodes:
                continue
            nodes[id(node)] = node
            stack.extend(reversed(node.all_of))
            if node.ref is not None:
                stack.append(node.ref)
            if node.negated is not None:
                all_negated.append(node.negated)
            groups.extend(_branch_groups(node))
        return _PartialCase(nodes, tuple(all_negated), groups, self.is_loose)


def _branch_groups(node: SchemaNode) -> Iterator[_Group]:
    if node.any_of:
        yield [((branch,), ()) for branch in node.any_of], True
    if node.one_of:
        branches = node.one_of
        yield (
            [
                ((chosen_branch,), tuple(other for other in branches if other is not chosen_branch))
                for chosen_branch in branches
            ],
            False,
        )
    if node.condition is not None:
        then_nodes = (node.condition, *([node.then] if node.then else []))
        else_nodes = (node.otherwise,) if node.otherwise else ()
        yield [(then_nodes, ()), (else_nodes, (node.condition,))], False
    for name, subschema in node.dependent_schemas.items():
        never_node = SchemaNode(node.pointer, False, never=True).seal()
        absent_node = SchemaNode(node.pointer, node.raw, properties={name: never_node}).seal()
        yield [((node.requiring(name), subschema), ()), ((absent_node,), ())], False
