"""Translates the types of JSON Structure into `SchemaNode`, so that documents compare like those of JSON Schema."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any, Final, TypeGuard

from annals.domain.formats.jsonschema.node import NumberBound, SchemaNode
from annals.domain.formats.jsonschema.values import NUMBERS, equality_key, kinds_of_type, to_decimal
from annals.domain.values import json_text
from annals.domain.values.json_pointer import join_pointer

#: Types that are numbers in JSON, with their bounds.
_INTEGER_BOUNDS: Final = {f"int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32)} | {
    f"uint{bits}": (0, 2**bits - 1) for bits in (8, 16, 32)
}
_FLOAT_LIMITS: Final = {"float8": "3.4E+3", "float": "3.4028234663852886E+38", "double": "1.7976931348623157E+308"}
#: Types that are strings in JSON; only their names distinguish them.
_STRING_TYPES: Final = frozenset(
    {"int64", "uint64", "int128", "uint128", "decimal", "date", "datetime", "time", "duration", "uuid", "uri"}
    | {"binary", "jsonpointer"}
)
#: Keywords of the validation extension that are compared for equality only.
_EQUALITY_KEYWORDS: Final = (
    *("has", "patternKeys", "keyNames", "propertyNames", "patternProperties", "minEntries", "maxEntries"),
    *("contains", "minContains", "maxContains", "dependentRequired", "contentCompression"),
)

#: Keywords that `fill_value_keywords` and `fill_combinations` handle.
_RESTRICTING_KEYWORDS: Final = frozenset(
    {"enum", "const", "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "multipleOf", "pattern"}
    | {"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "uniqueItems"}
    | {"format", "contentEncoding", "contentMediaType", "precision", "scale", *_EQUALITY_KEYWORDS}
)
_COMBINING_KEYWORDS: Final = frozenset({"allOf", "anyOf", "oneOf", "not", "if"})

NodeFactory = Callable[..., SchemaNode]


def fill_primitive(node: SchemaNode, name: str) -> None:
    """Fills a node from the name of a type; `any` and compound types change nothing here."""
    if name in _INTEGER_BOUNDS or name == "integer":
        minimum, maximum = _INTEGER_BOUNDS["int32" if name == "integer" else name]
        node.kinds, node.lower, node.upper = (
            frozenset({"integer"}),
            (Decimal(minimum), False),
            (Decimal(maximum), False),
        )
    elif name in _FLOAT_LIMITS or name == "number":
        node.kinds = NUMBERS
        if name in _FLOAT_LIMITS:
            largest = Decimal(_FLOAT_LIMITS[name])
            node.lower, node.upper = (-largest, False), (largest, False)
    elif name in _STRING_TYPES:
        node.kinds, node.marks = frozenset({"string"}), frozenset({("type", name)})
    elif name in {"string", "null", "boolean"}:
        node.kinds = kinds_of_type(name)


def fill_value_keywords(node: SchemaNode, raw: dict[str, Any]) -> None:
    """Fills a node with `enum`, `const` and the keywords that restrict single values."""
    if _RESTRICTING_KEYWORDS.isdisjoint(raw):
        return
    if isinstance(raw.get("enum"), list):
        node.allowed = {equality_key(value): value for value in raw["enum"]}
    if "const" in raw:
        node.allowed = {equality_key(raw["const"]): raw["const"]}
    for name, bound_name in (("minimum", "lower"), ("exclusiveMinimum", "lower"), ("maximum", "upper")):
        _set_bound(node, raw, name, bound_name)
    _set_bound(node, raw, "exclusiveMaximum", "upper")
    if _is_number(raw.get("multipleOf")):
        node.multiples = frozenset({to_decimal(raw["multipleOf"])})
    node.precision, node.scale = _read_count(raw, "precision"), _read_count(raw, "scale")
    node.min_length, node.max_length = _read_count(raw, "minLength") or 0, _read_count(raw, "maxLength")
    node.min_items, node.max_items = _read_count(raw, "minItems") or 0, _read_count(raw, "maxItems")
    node.min_properties, node.max_properties = _read_count(raw, "minProperties") or 0, _read_count(raw, "maxProperties")
    node.unique = node.unique or raw.get("uniqueItems") is True
    if isinstance(raw.get("pattern"), str):
        node.patterns = frozenset({raw["pattern"]})
    annotation_pairs = {(name, raw[name]) for name in ("format", "contentEncoding", "contentMediaType") if name in raw}
    node.marks |= {(name, value) for name, value in annotation_pairs if isinstance(value, str)}
    node.others = frozenset((name, json_text.dumps(raw[name]).decode()) for name in _EQUALITY_KEYWORDS if name in raw)


def fill_combinations(node: SchemaNode, raw: dict[str, Any], make: NodeFactory) -> None:
    """Fills a node with the keywords of the extension for conditional composition."""
    if _COMBINING_KEYWORDS.isdisjoint(raw):
        return
    for name, attribute in (("allOf", "all_of"), ("anyOf", "any_of"), ("oneOf", "one_of")):
        if isinstance(raw.get(name), list):
            setattr(node, attribute, tuple(make(name, index) for index in range(len(raw[name]))))
    if isinstance(raw.get("not"), dict):
        node.negated = make("not")
    if isinstance(raw.get("if"), dict):
        node.condition = make("if")
        node.then = make("then") if isinstance(raw.get("then"), dict) else None
        node.otherwise = make("else") if isinstance(raw.get("else"), dict) else None


def fill_required(node: SchemaNode, raw: dict[str, Any], other_nodes: Iterable[SchemaNode]) -> list[SchemaNode]:
    """Fills a node with required properties.

    Returns `other_nodes` and the nodes of alternatives, of which one must hold.
    """
    required = raw.get("required", [])
    node.required |= {name for name in required if isinstance(name, str)}
    alternatives = [alternative for alternative in required if isinstance(alternative, list)]
    if alternatives:
        node.one_of = tuple(
            SchemaNode(node.pointer, raw, required=frozenset(alternative)) for alternative in alternatives
        )
    return [*other_nodes, *node.one_of]


def tagged_alternative(node: SchemaNode, name: str, member_schema: SchemaNode) -> SchemaNode:
    """One alternative of a tagged union: an object with a single member."""
    no_members = SchemaNode(node.pointer, False, never=True)
    return SchemaNode(
        join_pointer(node.pointer, "choices", name),
        member_schema.raw,
        kinds=frozenset({"object"}),
        properties={name: member_schema},
        required=frozenset({name}),
        additional=no_members,
    )


def _set_bound(node: SchemaNode, raw: dict[str, Any], name: str, bound_name: str) -> None:
    if not _is_number(raw.get(name)):
        return
    new_bound: NumberBound = (to_decimal(raw[name]), name.startswith("exclusive"))
    current_bound: NumberBound | None = getattr(node, bound_name)
    is_stronger = current_bound is None or (
        new_bound[0] > current_bound[0] if bound_name == "lower" else new_bound[0] < current_bound[0]
    )
    if is_stronger or (current_bound is not None and new_bound[0] == current_bound[0] and new_bound[1]):
        setattr(node, bound_name, new_bound)


def _is_number(value: object) -> TypeGuard[int | float | Decimal]:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def _read_count(raw: dict[str, Any], name: str) -> int | None:
    value = raw.get(name)
    return int(min(max(to_decimal(value), Decimal(0)), Decimal(10**18))) if _is_number(value) else None
