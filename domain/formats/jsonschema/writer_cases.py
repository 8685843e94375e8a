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

from domain.formats.contract import DocumentLocation
from domain.formats.jsonschema.instance_validation import accepts_value
from domain.formats.jsonschema.node import NumberBound, SchemaNode
from domain.formats.jsonschema.values import KINDS, NUMBERS, equality_key, matches_pattern

#: The maximum number of cases. A writer with more is compared as one case, which finds fewer changes compatible.
MAX_CASES: Final = 64
#: All values of the kinds that have only a few.
_FEW: Final = {"null": (None,), "boolean": (False, True)}

SchemaNodes = tuple[SchemaNode, ...]


@dataclass(eq=False)
class WriterCase:
    """The values that all of `nodes` allow and none of `negated` allows.

    closed: all schemas that declare members are known, so an object with declared members has no others. loose: further
    schemas may apply to the value.
    """

    nodes: SchemaNodes
    negated: SchemaNodes
    closed: bool = True
    loose: bool = False
    subs: dict[str, WriterCase] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.loose = self.loose or any(node.remote is not None for node in self.nodes)

    @cached_property
    def kinds(self) -> frozenset[str]:
        found = KINDS
        for node in self.nodes:
            if node.never:
                return frozenset()
            found = found if node.kinds is None else found & node.kinds
        return found

    @cached_property
    def values(self) -> list[Any] | None:
        """All values, where the schemas list them; else None."""
        listed = [node.allowed for node in self.nodes if node.allowed is not None]
        if not listed and not self.kinds <= _FEW.keys():
            return None
        few = {equality_key(value): value for name in sorted(self.kinds) for value in _FEW.get(name, ())}
        found = listed[0] if listed else few
        return [
            value for value in found.values() if not any(accepts_value(node, value) is False for node in self.nodes)
        ]

    @cached_property
    def lower(self) -> NumberBound | None:
        found = [node.lower for node in self.nodes if node.lower is not None]
        best = max(found, default=None)
        return best if best is None or self.kinds & NUMBERS != {"integer"} else _inclusive(best, 1)

    @cached_property
    def upper(self) -> NumberBound | None:
        found = [node.upper for node in self.nodes if node.upper is not None]
        best = min(found, key=lambda bound: (bound[0], not bound[1]), default=None)
        return best if best is None or self.kinds & NUMBERS != {"integer"} else _inclusive(best, -1)

    @cached_property
    def min_items(self) -> int:
        return max((node.min_items for node in self.nodes), default=0)

    @cached_property
    def max_items(self) -> int | None:
        stated = [node.max_items for node in self.nodes if node.max_items is not None]
        refused = (index for index in range(self.positions + 1) if any(node.never for node in self.item(index)))
        return min([*stated, *islice(refused, 1)], default=None)

    @cached_property
    def required(self) -> frozenset[str]:
        found = frozenset[str]().union(*(node.required for node in self.nodes))
        implied = [node.dependent_required for node in self.nodes if node.dependent_required]
        size = -1
        while implied and size != len(found):
            size = len(found)
            found = found.union(*(more for each in implied for name, more in each.items() if name in found))
        return found

    @cached_property
    def members(self) -> dict[str, SchemaNodes]:
        """The members that are declared by name, each with the schemas that apply to it together."""
        names = dict.fromkeys(name for node in self.nodes for name in node.properties)
        names.update(dict.fromkeys(sorted(self.required)))
        waiting = list(names)
        while waiting:  # a member that a declared member requires is declared too
            name = waiting.pop()
            needed = frozenset[str]().union(*(node.dependent_required.get(name, ()) for node in self.nodes))
            waiting += (found := sorted(needed - names.keys()))
            names.update(dict.fromkeys(found))
        return {name: self.member(name) for name in names}

    def member(self, name: str) -> SchemaNodes:
        """The schemas that apply to a member, declared or not."""
        found: dict[int, SchemaNode] = {}
        for node in self.nodes:
            for below in _of_member(node, name):
                if not below.free:
                    found[id(below)] = below
        found.update((id(below), below) for below in self._leftover(name) if not below.free)
        return tuple(found.values())

    @cached_property
    def declares(self) -> bool:
        """Whether members that no schema declares are never present."""
        return self.closed and any(
            not below.never for node in self.nodes for below in (*node.properties.values(), *node.by_pattern.values())
        )

    @cached_property
    def extras(self) -> SchemaNodes | None:
        """The schemas for members without a declared name; None where there are no such members."""
        found = [node.additional for node in self.nodes if node.additional is not None]
        found += [node.unevaluated for node in self._with_unevaluated if node.unevaluated is not None]
        if any(node.never for node in found):
            return None
        saying = tuple(node for node in found if not node.free)
        return saying if saying or not self.declares else None

    @cached_property
    def _with_unevaluated(self) -> list[SchemaNode]:
        """The schemas whose `unevaluatedProperties` may apply, because no other schema evaluates all members."""
        if self.loose and not self.closed:
            return []
        return [
            node
            for node in self.nodes
            if node.unevaluated is not None
            and not any(
                each.additional is not None or (each.unevaluated is not None and each is not node)
                for each in _same_value_nodes(node, self._inside)
            )
        ]

    def _leftover(self, name: str) -> Iterator[SchemaNode]:
        """The `unevaluatedProperties` schemas that apply to a member."""
        # An unknown alternative may evaluate a required member, so its schema must count too.
        inside = None if self.loose and name in self.required else self._inside
        for node in self._with_unevaluated:
            looked_at = any(_looks_at(each, name) for each in _same_value_nodes(node, inside))
            if node.unevaluated is not None and not looked_at:
                yield node.unevaluated

    @cached_property
    def _inside(self) -> frozenset[int]:
        return frozenset(map(id, self.nodes))

    @cached_property
    def patterns(self) -> list[tuple[str, SchemaNode]]:
        """The members that are declared by patterns, as (pattern, schema)."""
        found = [each for node in self.nodes for each in node.by_pattern.items()]
        return [(pattern, below) for pattern, below in found if not below.never]

    def may_have(self, name: str) -> bool:
        """Whether a member may be present."""
        if any(node.never for node in self.member(name)):
            return False
        if name in self.members or self.extras is not None:
            return True
        return any(matches_pattern(pattern, name) is not False for pattern, _ in self.patterns)

    def item(self, index: int) -> SchemaNodes:
        """The schemas that apply to an item; an index beyond `positions` means all further items."""
        found = []
        for node in self.nodes:
            below = node.prefix[index] if index < len(node.prefix) else node.items
            found += [below] if below is not None and not below.free else []
        return (*found, *(below for first, below in self._unevaluated_items if index >= first))

    @cached_property
    def _unevaluated_items(self) -> list[tuple[int, SchemaNode]]:
        """The schemas for items that no other schema for the same value evaluates, each with its first index."""
        found: list[tuple[int, SchemaNode]] = []
        for node in self.nodes:
            if node.unevaluated_items is not None:
                beside = list(_same_value_nodes(node, None if self.loose else self._inside))
                if not any(each.items is not None or each.contains is not None for each in beside) and not any(
                    each.unevaluated_items is not None for each in beside if each is not node
                ):
                    found.append((max(len(each.prefix) for each in beside), node.unevaluated_items))
        return found

    @cached_property
    def positions(self) -> int:
        """The number of items that have a schema of their own."""
        stated = [len(node.prefix) for node in self.nodes]
        return max(stated + [first for first, _ in self._unevaluated_items], default=0)

    def with_node(self, name: str, *nodes: SchemaNode) -> WriterCase:
        """The part of the case for which further schemas hold. name: a cache key that identifies these schemas."""
        if name not in self.subs:
            self.subs[name] = WriterCase((*self.nodes, *nodes), self.negated, self.closed, self.loose)
            self.subs[name].declares = self.declares  # the further schemas restrict members, they do not declare any
        return self.subs[name]

    @cached_property
    def as_open(self) -> WriterCase:
        """The case with undeclared members allowed, because the schemas that it negates may declare some."""
        return WriterCase(self.nodes, self.negated, closed=False, loose=self.loose)

    def with_kind(self, kind: str) -> WriterCase:
        """The part of the case with one kind of value."""
        node = SchemaNode(self.nodes[0].pointer, self.nodes[0].raw, kinds=frozenset({kind}))
        if kind in _FEW:
            node.allowed = {equality_key(value): value for value in _FEW[kind]}
        return self.with_node(f"kind {kind}", node.seal())

    def location(self, *keywords: str) -> DocumentLocation:
        """The location of the first of the keywords that the writer has, else of the case."""
        for keyword in keywords:
            for node in self.nodes:
                if node.has_keyword(keyword):
                    return node.location(keyword)
        return next((node for node in self.nodes if node.ref is None), self.nodes[0]).location()


def _same_value_nodes(start: SchemaNode, inside: frozenset[int] | None) -> Iterator[SchemaNode]:
    """A schema and those that apply to the same value through it. inside: ids of those that hold; None: all may."""
    seen, waiting = {id(start)}, [start]
    while waiting:
        node = waiting.pop()
        yield node
        for below in node.in_place_subschemas():
            held = below is not node.negated and (inside is None or id(below) in inside)
            if held and id(below) not in seen:
                seen.add(id(below))
                waiting.append(below)


def _looks_at(node: SchemaNode, name: str) -> bool:
    """Whether a schema may evaluate a member."""
    if name in node.properties or node.additional is not None:
        return True
    return any(matches_pattern(pattern, name) is not False for pattern in node.by_pattern)


def _of_member(node: SchemaNode, name: str) -> Iterator[SchemaNode]:
    evaluated = False
    if name in node.properties:
        evaluated = True
        yield node.properties[name]
    for pattern, below in node.by_pattern.items():
        found = matches_pattern(pattern, name)
        # A pattern that cannot be evaluated may match or not, so it neither restricts the member nor leaves it
        # undeclared.
        evaluated = evaluated or found is not False
        if found:
            yield below
    if not evaluated and node.additional is not None:
        yield node.additional


def _inclusive(bound: NumberBound, step: int) -> NumberBound:
    """An equivalent inclusive bound for integers. step: 1 for a lower bound, -1 for an upper one."""
    value, excluded = bound
    if abs(value.adjusted()) > 20 or len(value.as_tuple().digits) > 25:
        return bound
    whole = value.to_integral_value(ROUND_CEILING if step > 0 else ROUND_FLOOR)
    return (whole + step if excluded and whole == value else whole, False)


def writer_cases(start: Sequence[SchemaNode], closed: bool, base: WriterCase | None = None) -> list[WriterCase]:
    """The cases of a conjunction of schemas; together they cover all values that it allows.

    base: a case to which the schemas are added.
    """
    seed = _PartialCase({}, (), [], False)
    if base is not None:
        seed = _PartialCase({id(node): node for node in base.nodes}, base.negated, [], base.loose)
    first = seed.grown(tuple(start), ())
    done: list[_PartialCase] = []
    waiting = [first]
    while waiting:
        partial = waiting.pop()
        if not partial.groups:
            done.append(partial)
            continue
        (alternatives, loose), *rest = partial.groups
        rested = _PartialCase(partial.nodes, partial.negated, rest, partial.loose or loose)
        waiting.extend(rested.grown(nodes, negated) for nodes, negated in reversed(alternatives))
        if len(done) + len(waiting) > MAX_CASES:
            # One case as a whole. Its alternatives are unknown, so it may have members that no known schema declares.
            return [WriterCase(tuple(first.nodes.values()), first.negated, closed=False, loose=True)]
    found = {frozenset(p.nodes): WriterCase(tuple(p.nodes.values()), p.negated, closed, p.loose) for p in done}
    if base is not None:
        for case in found.values():
            case.declares = base.declares  # a reader's schemas declare no members
    return [case for case in found.values() if case.kinds]


#: Alternatives, each with the schemas that hold and those that do not, and whether several may hold at once.
_Group = tuple[list[tuple[SchemaNodes, SchemaNodes]], bool]


@dataclass(frozen=True, slots=True)
class _PartialCase:
    nodes: dict[int, SchemaNode]
    negated: SchemaNodes
    groups: list[_Group]
    loose: bool

    def grown(self, more: SchemaNodes, negated: SchemaNodes) -> _PartialCase:
        """The case with further schemas, and all schemas for the same value that they refer to."""
        nodes, groups, refused = dict(self.nodes), list(self.groups), [*self.negated, *negated]
        stack = list(reversed(more))
        while stack:
            node = stack.pop()
            if id(node) in nodes:
                continue
            nodes[id(node)] = node
            stack.extend(reversed(node.all_of))
            if node.ref is not None:
                stack.append(node.ref)
            if node.negated is not None:
                refused.append(node.negated)
            groups.extend(_groups(node))
        return _PartialCase(nodes, tuple(refused), groups, self.loose)


def _groups(node: SchemaNode) -> Iterator[_Group]:
    if node.any_of:
        yield [((branch,), ()) for branch in node.any_of], True
    if node.one_of:
        branches = node.one_of
        yield [((one,), tuple(other for other in branches if other is not one)) for one in branches], False
    if node.condition is not None:
        then = (node.condition, *([node.then] if node.then else []))
        otherwise = (node.otherwise,) if node.otherwise else ()
        yield [(then, ()), (otherwise, (node.condition,))], False
    for name, below in node.dependent_schemas.items():
        never = SchemaNode(node.pointer, False, never=True).seal()
        absent = SchemaNode(node.pointer, node.raw, properties={name: never}).seal()
        yield [((node.requiring(name), below), ()), ((absent,), ())], False
