"""Translates the keywords of each JSON Schema draft into fields of `SchemaNode`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from annals.domain.formats.jsonschema.node import NO_NODES, NumberBound, SchemaNode
from annals.domain.formats.jsonschema.values import KINDS, equality_key, kinds_of_type, to_decimal


@dataclass(frozen=True, slots=True)
class SubschemaFactory:
    """Creates the nodes below a schema, by the path to them."""

    node: Callable[..., SchemaNode]

    def subschema(self, raw: dict[str, Any], name: str) -> SchemaNode | None:
        return self.node(name) if isinstance(raw.get(name), (dict, bool)) else None

    def subschemas(self, raw: dict[str, Any], name: str) -> tuple[SchemaNode, ...]:
        members = raw.get(name)
        return tuple(self.node(name, index) for index in range(len(members))) if isinstance(members, list) else ()

    def subschemas_by_name(self, raw: dict[str, Any], name: str) -> dict[str, SchemaNode]:
        members = raw.get(name)
        return {member: self.node(name, member) for member in members} if isinstance(members, dict) else NO_NODES


def fill_node(node: SchemaNode, draft: int, subschemas: SubschemaFactory) -> None:
    """Fills a node from its schema object, except for references, which `graph.py` resolves.

    draft: 4, 6, 7, 2019 or 2020. Keywords that a draft does not define are ignored.
    """
    raw: dict[str, Any] = node.raw
    for definitions in ("definitions", "$defs") if draft >= 2019 else ("definitions",):
        subschemas.subschemas_by_name(raw, definitions)
    if draft <= 7 and "$ref" in raw:
        return  # in these drafts, `$ref` disables the keywords next to it
    _fill_any_kind(node, raw, draft, subschemas)
    _fill_numbers(node, raw, draft)
    _fill_strings(node, raw, draft)
    _fill_arrays(node, raw, draft, subschemas)
    _fill_objects(node, raw, draft, subschemas)
    _fill_dependencies(node, raw, draft, subschemas)


def _fill_any_kind(node: SchemaNode, raw: dict[str, Any], draft: int, subschemas: SubschemaFactory) -> None:
    if "type" in raw:
        names = raw["type"] if isinstance(raw["type"], list) else [raw["type"]]
        kinds = frozenset[str]().union(*(kinds_of_type(name) for name in names))
        node.kinds = None if kinds == KINDS else kinds
    if "enum" in raw:
        node.allowed = {equality_key(value): value for value in raw["enum"]}
    if "const" in raw and draft >= 6:
        const = equality_key(raw["const"])
        # A value must satisfy both `enum` and `const`.
        node.allowed = {const: raw["const"]} if node.allowed is None or const in node.allowed else {}
    node.all_of = subschemas.subschemas(raw, "allOf")
    node.any_of = subschemas.subschemas(raw, "anyOf")
    node.one_of = subschemas.subschemas(raw, "oneOf")
    node.negated = subschemas.subschema(raw, "not")
    if draft >= 7:
        node.condition = subschemas.subschema(raw, "if")
        then, otherwise = subschemas.subschema(raw, "then"), subschemas.subschema(raw, "else")
        if node.condition is not None:
            node.then, node.otherwise = then, otherwise
            if then is None and otherwise is None and draft <= 7:
                node.condition = None  # from 2019-09 on, it still marks items and members as evaluated


def _fill_numbers(node: SchemaNode, raw: dict[str, Any], draft: int) -> None:
    node.lower = _read_bound(raw, "minimum", "exclusiveMinimum", draft, max)
    node.upper = _read_bound(raw, "maximum", "exclusiveMaximum", draft, min)
    if "multipleOf" in raw:
        node.multiples = frozenset({to_decimal(raw["multipleOf"])})


def _read_bound(
    raw: dict[str, Any],
    inclusive_name: str,
    exclusive_name: str,
    draft: int,
    pick_stronger: Callable[[Decimal, Decimal], Decimal],
) -> NumberBound | None:
    if draft == 4:
        return (to_decimal(raw[inclusive_name]), raw.get(exclusive_name) is True) if inclusive_name in raw else None
    bounds = [
        (to_decimal(raw[name]), name == exclusive_name) for name in (inclusive_name, exclusive_name) if name in raw
    ]
    if len(bounds) < 2:
        return bounds[0] if bounds else None
    (inclusive_value, _), (exclusive_value, _) = bounds
    return (
        (exclusive_value, True)
        if inclusive_value == exclusive_value or pick_stronger(inclusive_value, exclusive_value) == exclusive_value
        else (inclusive_value, False)
    )


def _fill_strings(node: SchemaNode, raw: dict[str, Any], draft: int) -> None:
    node.min_length = _read_count(raw, "minLength") or 0
    node.max_length = _read_count(raw, "maxLength")
    if "pattern" in raw:
        node.patterns = frozenset({raw["pattern"]})
    annotation_names = ("format", "contentEncoding", "contentMediaType") if draft >= 7 else ("format",)
    node.marks = frozenset((name, raw[name]) for name in annotation_names if isinstance(raw.get(name), str))


def _fill_arrays(node: SchemaNode, raw: dict[str, Any], draft: int, subschemas: SubschemaFactory) -> None:
    if draft >= 2020:
        node.prefix, node.items = subschemas.subschemas(raw, "prefixItems"), subschemas.subschema(raw, "items")
    elif isinstance(raw.get("items"), list):
        node.prefix, node.items = subschemas.subschemas(raw, "items"), subschemas.subschema(raw, "additionalItems")
    else:
        node.items = subschemas.subschema(raw, "items")
    node.min_items = _read_count(raw, "minItems") or 0
    node.max_items = _read_count(raw, "maxItems")
    node.unique = raw.get("uniqueItems") is True
    if draft >= 6:
        node.contains = subschemas.subschema(raw, "contains")
    if draft >= 2019:
        node.unevaluated_items = subschemas.subschema(raw, "unevaluatedItems")
        if node.contains is not None:
            node.max_contains = _read_count(raw, "maxContains")
            node.min_contains = 1 if "minContains" not in raw else _read_count(raw, "minContains") or 0


def _fill_objects(node: SchemaNode, raw: dict[str, Any], draft: int, subschemas: SubschemaFactory) -> None:
    node.properties = subschemas.subschemas_by_name(raw, "properties")
    node.by_pattern = subschemas.subschemas_by_name(raw, "patternProperties")
    node.additional = subschemas.subschema(raw, "additionalProperties")
    node.required = frozenset(raw.get("required", ()))
    node.min_properties = _read_count(raw, "minProperties") or 0
    node.max_properties = _read_count(raw, "maxProperties")
    if draft >= 6:
        node.names = subschemas.subschema(raw, "propertyNames")
    if draft >= 2019:
        node.unevaluated = subschemas.subschema(raw, "unevaluatedProperties")


def _fill_dependencies(node: SchemaNode, raw: dict[str, Any], draft: int, subschemas: SubschemaFactory) -> None:
    if draft >= 2019:
        node.dependent_schemas = subschemas.subschemas_by_name(raw, "dependentSchemas")
        required_by_name = raw.get("dependentRequired", {})
        node.dependent_required = {
            name: frozenset(dependency) for name, dependency in required_by_name.items()
        } or NO_NODES
    # Newer drafts replace this keyword, but validators and meta-schemas still accept it. The new keywords win.
    for name, dependency in raw.get("dependencies", {}).items():
        if isinstance(dependency, list):
            required_names = frozenset(dependency) | node.dependent_required.get(name, frozenset())
            node.dependent_required = node.dependent_required | {name: required_names}
        elif name not in node.dependent_schemas:
            node.dependent_schemas = node.dependent_schemas | {name: subschemas.node("dependencies", name)}


def _read_count(raw: dict[str, Any], name: str) -> int | None:
    """A count, limited to 10**18: larger values make no difference, and may have a million digits."""
    return int(min(to_decimal(raw[name]), Decimal(10**18))) if name in raw else None
