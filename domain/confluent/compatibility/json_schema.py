"""JSON Schema: differences between an older and a newer schema, as Confluent's registry finds and judges them.

Rules CSR-805, CSR-806, CSR-808.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, Final

from annals.domain.confluent.compatibility.difference import Difference
from annals.domain.confluent.compatibility.json_schema_nodes import JsonNode
from annals.domain.confluent.compatibility.matching import maximum_matching
from annals.domain.values.json_text import dumps

#: Differences that an older schema and a newer one may have: data of the older one is valid in the newer one.
COMPATIBLE_CHANGES: Final = frozenset(
    (
        *("SCHEMA_REMOVED", "TYPE_EXTENDED", "ENUM_ARRAY_EXTENDED", "COMBINED_TYPE_EXTENDED", "SUM_TYPE_EXTENDED"),
        *("PRODUCT_TYPE_NARROWED", "NOT_TYPE_NARROWED", "MULTIPLE_OF_REDUCED", "MULTIPLE_OF_REMOVED"),
        *("PATTERN_REMOVED", "UNIQUE_ITEMS_REMOVED"),
        *(
            f"{name}_{change}"
            for name in ("MAX_LENGTH", "MAXIMUM", "EXCLUSIVE_MAXIMUM")
            for change in ("INCREASED", "REMOVED")
        ),
        *(
            f"{name}_{change}"
            for name in ("MIN_LENGTH", "MINIMUM", "EXCLUSIVE_MINIMUM")
            for change in ("DECREASED", "REMOVED")
        ),
        *(
            f"MAX_{name}_{change}"
            for name in ("PROPERTIES", "ITEMS", "CONTAINS")
            for change in ("INCREASED", "REMOVED")
        ),
        *(
            f"MIN_{name}_{change}"
            for name in ("PROPERTIES", "ITEMS", "CONTAINS")
            for change in ("DECREASED", "REMOVED")
        ),
        *("REQUIRED_ATTRIBUTE_WITH_DEFAULT_ADDED", "REQUIRED_ATTRIBUTE_REMOVED"),
        *("DEPENDENCY_ARRAY_NARROWED", "DEPENDENCY_ARRAY_REMOVED", "DEPENDENCY_SCHEMA_REMOVED"),
        *(
            f"{name}_{change}"
            for name in ("ADDITIONAL_PROPERTIES", "UNEVALUATED_PROPERTIES")
            for change in ("ADDED", "EXTENDED")
        ),
        *(f"{name}_{change}" for name in ("ADDITIONAL_ITEMS", "UNEVALUATED_ITEMS") for change in ("ADDED", "EXTENDED")),
        *("PROPERTY_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL", "PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL"),
        "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_UNOPEN_CONTENT_MODEL",
        "OPTIONAL_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL",
        "PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        "PROPERTY_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "PROPERTY_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        *("ITEM_WITH_EMPTY_SCHEMA_ADDED_TO_OPEN_CONTENT_MODEL", "ITEM_ADDED_TO_CLOSED_CONTENT_MODEL"),
        *("ITEM_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL", "ITEM_REMOVED_FROM_OPEN_CONTENT_MODEL"),
        *(
            "ITEM_ADDED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
            "ITEM_REMOVED_IS_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        ),
    )
)
#: Differences that the policy LENIENT allows besides.
LENIENT_CHANGES: Final = COMPATIBLE_CHANGES | {
    *("ADDITIONAL_PROPERTIES_NARROWED", "ADDITIONAL_PROPERTIES_REMOVED"),
    *("UNEVALUATED_PROPERTIES_NARROWED", "UNEVALUATED_PROPERTIES_REMOVED"),
    "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL",
    "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
    "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL",
    "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
    "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
}
#: Keywords with a bound, and the prefix of their differences.
_LENGTHS: Final = (("maxLength", "MAX_LENGTH"), ("minLength", "MIN_LENGTH"))
_LIMITS: Final = (("maximum", "MAXIMUM"), ("minimum", "MINIMUM"))
_EXCLUSIVE_LIMITS: Final = (("exclusiveMaximum", "EXCLUSIVE_MAXIMUM"), ("exclusiveMinimum", "EXCLUSIVE_MINIMUM"))
_SIZES: Final = (("maxProperties", "MAX_PROPERTIES"), ("minProperties", "MIN_PROPERTIES"))
_COUNTS: Final = (
    *(("maxItems", "MAX_ITEMS"), ("minItems", "MIN_ITEMS")),
    *(("maxContains", "MAX_CONTAINS"), ("minContains", "MIN_CONTAINS")),
)
_MAX_FRAGMENT: Final = 200
#: A type of difference and its path; which types are allowed depends on the policy.
_Change = tuple[str, str]


def json_differences(older: JsonNode, newer: JsonNode, is_lenient: bool = False) -> list[Difference]:
    """The incompatible differences of a newer schema, which reads, from an older one, whose data it reads."""
    comparison = _SchemaNodeComparison(LENIENT_CHANGES if is_lenient else COMPATIBLE_CHANGES)
    changes = comparison.compare(older, newer, "#")
    return [
        _describe(type, path, older, newer)
        for type, path in dict.fromkeys(changes)
        if type not in comparison.compatible_changes
    ]


class _SchemaNodeComparison:
    """Compares pairs of schemas; a pair that is being compared counts as equal, so recursive schemas end."""

    def __init__(self, compatible_changes: frozenset[str]) -> None:
        self.compatible_changes = compatible_changes
        self._running: set[tuple[tuple[int, str, str], tuple[int, str, str]]] = set()

    def is_compatible(self, changes: list[_Change]) -> bool:
        return all(type in self.compatible_changes for type, _ in changes)

    def compare(self, older: JsonNode | None, newer: JsonNode | None, path: str) -> list[_Change]:
        """The changes between two schemas, either of which may be missing."""
        if older is None or newer is None:
            return [] if older is newer else [("SCHEMA_REMOVED" if newer is None else "SCHEMA_ADDED", path)]
        pair = older.key, newer.key
        if pair in self._running:
            return []
        self._running.add(pair)
        try:
            return self._compare_kinds(older, newer, path)
        finally:
            self._running.discard(pair)

    def _compare_kinds(self, older: JsonNode, newer: JsonNode, path: str) -> list[_Change]:
        matched = self._match_combination(older, newer, path)
        if matched is not None:
            return matched
        if older.kind != newer.kind:
            is_allowed = older.kind == "false" or newer.kind in ("empty", "true") or _are_bytes(older, newer)
            return [] if is_allowed else [("TYPE_CHANGED", path)]
        compare = _COMPARISONS.get(newer.kind)
        return list(compare(self, older, newer, path)) if compare else []

    def _match_combination(self, older: JsonNode, newer: JsonNode, path: str) -> list[_Change] | None:
        """The changes if only one of two schemas is a combination and one of its parts matches the other schema."""
        if older.kind == newer.kind or "combined" not in (older.kind, newer.kind):
            return None
        combination = newer if newer.kind == "combined" else older
        is_newer, parts = combination is newer, combination.parts
        if len(parts) > 1 and (combination.criterion == "allOf") == is_newer:
            return None
        for part in parts:
            changes = self.compare(older, part, path) if is_newer else self.compare(part, newer, path)
            if self.is_compatible(changes):
                extended = (
                    [] if len(parts) == 1 else [("SUM_TYPE_EXTENDED" if is_newer else "PRODUCT_TYPE_NARROWED", path)]
                )
                return [*changes, *extended]
        return None

    # --- kinds -------------------------------------------------------------------------------------------------------

    def strings(self, older: JsonNode, newer: JsonNode, path: str) -> Iterator[_Change]:
        yield from _bounds(older, newer, path, _LENGTHS)
        before, after = older.get("pattern"), newer.get("pattern")
        if before != after:
            yield f"PATTERN_{_presence(before, after)}", f"{path}/pattern"

    def numbers(self, older: JsonNode, newer: JsonNode, path: str) -> Iterator[_Change]:
        yield from _bounds(older, newer, path, (*_LIMITS, *_EXCLUSIVE_LIMITS))
        yield from _multiple_of(older.get("multipleOf"), newer.get("multipleOf"), f"{path}/multipleOf")
        if older.requires_integer != newer.requires_integer:
            yield "TYPE_EXTENDED" if older.requires_integer else "TYPE_NARROWED", path

    def enums(self, older: JsonNode, newer: JsonNode, path: str) -> Iterator[_Change]:
        before, after = ({dumps(value) for value in node.get("enum") or ()} for node in (older, newer))
        if before != after:
            change = "EXTENDED" if before < after else "NARROWED" if before > after else "CHANGED"
            yield f"ENUM_ARRAY_{change}", f"{path}/enum"

    def constants(self, older: JsonNode, newer: JsonNode, path: str) -> Iterator[_Change]:
        if dumps(older.get("const")) != dumps(newer.get("const")):
            yield "CONST_VALUE_CHANGED", f"{path}/const"

    def negations(self, older: JsonNode, newer: JsonNode, path: str) -> Iterator[_Change]:
        # What the newer schema excludes has to be excluded already, so the two change places.
        changes = self.compare(newer.child(newer.get("not")), older.child(older.get("not")), f"{path}/not")
        is_narrowed = self.is_compatible(changes)
        yield "NOT_TYPE_NARROWED" if is_narrowed else "NOT_TYPE_EXTENDED", f"{path}/not"

    def combinations(self, older: JsonNode, newer: JsonNode, path: str) -> Iterator[_Change]:
        if older.criterion != newer.criterion:
            is_extended = _is_extended_criterion(older, newer)
            yield "COMBINED_TYPE_EXTENDED" if is_extended else "COMBINED_TYPE_CHANGED", path
            if not is_extended:
                return
        if len(older.parts) < len(newer.parts):
            yield "PRODUCT_TYPE_EXTENDED" if newer.criterion == "allOf" else "SUM_TYPE_EXTENDED", path
        elif len(older.parts) > len(newer.parts):
            yield "PRODUCT_TYPE_NARROWED" if older.criterion == "allOf" else "SUM_TYPE_NARROWED", path
        matches: dict[int, dict[int, list[_Change]]] = {}
        for index, part in enumerate(older.parts):
            pairs = (
                (other, self.compare(part, match, f"{path}/{older.criterion}/{index}"))
                for other, match in enumerate(newer.parts)
            )
            matches[index] = {other: changes for other, changes in pairs if self.is_compatible(changes)}
        matching = maximum_matching({index: list(others) for index, others in matches.items()})
        for index, other in matching.items():
            yield from matches[index][other]
        if len(matching) < min(len(older.parts), len(newer.parts)):
            yield "COMBINED_TYPE_SUBSCHEMAS_CHANGED", path

    def arrays(self, older: JsonNode, newer: JsonNode, path: str) -> Iterator[_Change]:
        yield from self.compare(_all_items(older), _all_items(newer), f"{path}/items")
        yield from self._positional_items(older, newer, path)
        keywords = _further_items(older), _further_items(newer)
        yield from self._openness(older, newer, keywords, "ADDITIONAL_ITEMS", path)
        yield from self._unevaluated(older, newer, "unevaluatedItems", "UNEVALUATED_ITEMS", path)
        yield from _bounds(older, newer, path, _COUNTS)
        if bool(older.get("uniqueItems")) != bool(newer.get("uniqueItems")):
            yield f"UNIQUE_ITEMS_{'REMOVED' if older.get('uniqueItems') else 'ADDED'}", f"{path}/uniqueItems"

    def objects(self, older: JsonNode, newer: JsonNode, path: str) -> Iterator[_Change]:
        before, after = older.children("properties"), newer.children("properties")
        required_before, required_after = (set(node.get("required") or ()) for node in (older, newer))
        for name in before:
            if name in after and (name in required_before) != (name in required_after):
                change = "REMOVED" if name in required_before else "ADDED"
                with_default = "_WITH_DEFAULT" if change == "ADDED" and after[name].has_default else ""
                yield f"REQUIRED_ATTRIBUTE{with_default}_{change}", f"{path}/required/{name}"
        for name in dict.fromkeys((*before, *after)):
            place = f"{path}/properties/{name}"
            if name not in after:
                yield from self._removed_property(before[name], newer, name, place)
            elif name not in before:
                yield from self._added_property(older, after[name], name, name in required_after, place)
            else:
                yield from self.compare(before[name], after[name], place)
        yield from self._dependencies(older, newer, f"{path}/dependencies")
        keywords = "additionalProperties", "additionalProperties"
        yield from self._openness(older, newer, keywords, "ADDITIONAL_PROPERTIES", path)
        yield from self._unevaluated(older, newer, "unevaluatedProperties", "UNEVALUATED_PROPERTIES", path)
        yield from _bounds(older, newer, path, _SIZES)

    # --- properties and items ----------------------------------------------------------------------------------------

    def _removed_property(self, before: JsonNode, newer: JsonNode, name: str, path: str) -> Iterator[_Change]:
        if _is_open(newer, "additionalProperties", "unevaluatedProperties"):
            yield "PROPERTY_REMOVED_FROM_OPEN_CONTENT_MODEL", path
        elif (covering := _covering_schema(newer, name)) is not None:
            changes = self.compare(before, covering, path)
            is_covered = "IS" if self.is_compatible(changes) else "NOT"
            yield from changes
            yield f"PROPERTY_REMOVED_{is_covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path
        elif before.kind == "false":
            yield "PROPERTY_WITH_FALSE_REMOVED_FROM_CLOSED_CONTENT_MODEL", path
        else:
            yield "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", path

    def _added_property(
        self, older: JsonNode, after: JsonNode, name: str, is_required: bool, path: str
    ) -> Iterator[_Change]:
        requirement = "OPTIONAL_PROPERTY"
        if is_required:
            requirement = "REQUIRED_PROPERTY_WITH_DEFAULT" if after.has_default else "REQUIRED_PROPERTY"
        if _is_open(older, "additionalProperties", "unevaluatedProperties"):
            is_empty = after.kind in ("empty", "true")
            yield f"{'PROPERTY_WITH_EMPTY_SCHEMA' if is_empty else requirement}_ADDED_TO_OPEN_CONTENT_MODEL", path
            return
        covering = _covering_schema(older, name)
        if covering is not None:
            changes = self.compare(covering, after, path)
            yield from changes
            is_covered = "IS" if self.is_compatible(changes) else "NOT"
            yield f"PROPERTY_ADDED_{is_covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path
        yield f"{requirement}_ADDED_TO_UNOPEN_CONTENT_MODEL", path

    def _positional_items(self, older: JsonNode, newer: JsonNode, path: str) -> Iterator[_Change]:
        before, after = _item_list(older), _item_list(newer)
        for index in range(max(len(before), len(after))):
            place = f"{path}/items/{index}"
            if index < min(len(before), len(after)):
                yield from self.compare(before[index], after[index], place)
            elif index < len(before):
                yield from self._changed_item(before[index], newer, place, is_added=False)
            else:
                yield from self._changed_item(after[index], older, place, is_added=True)

    def _changed_item(self, item: JsonNode, other: JsonNode, path: str, *, is_added: bool) -> Iterator[_Change]:
        """The changes for an item of one array schema that the other one, `other`, does not list."""
        verb, preposition = ("ADDED", "TO") if is_added else ("REMOVED", "FROM")
        further = _further_items(other)
        if _is_open(other, further, "unevaluatedItems"):
            is_empty = is_added and item.kind in ("empty", "true")
            yield f"ITEM{'_WITH_EMPTY_SCHEMA' if is_empty else ''}_{verb}_{preposition}_OPEN_CONTENT_MODEL", path
        elif (covering := other.child(other.get(further))) is not None and covering.kind != "false":
            changes = self.compare(covering, item, path) if is_added else self.compare(item, covering, path)
            is_covered = "IS" if self.is_compatible(changes) else "NOT"
            yield from changes
            yield f"ITEM_{verb}_{is_covered}_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", path
        else:
            is_false = not is_added and item.kind == "false"
            yield f"ITEM{'_WITH_FALSE' if is_false else ''}_{verb}_{preposition}_CLOSED_CONTENT_MODEL", path

    def _openness(
        self, older: JsonNode, newer: JsonNode, keywords: tuple[str, str], prefix: str, path: str
    ) -> Iterator[_Change]:
        """The changes of what schemas accept besides what they list. keywords: the one of each."""
        before, after = older.get(keywords[0]), newer.get(keywords[1])
        permits_before, permits_after = before is not False, after is not False
        place = f"{path}/{keywords[1]}"
        if permits_before != permits_after:
            yield f"{prefix}_{'ADDED' if permits_after else 'REMOVED'}", place
            return
        schema_before, schema_after = (value if isinstance(value, dict) else None for value in (before, after))
        if (schema_before is None) != (schema_after is None):
            yield f"{prefix}_{'NARROWED' if schema_before is None else 'EXTENDED'}", place
        elif schema_before is not None:
            yield from self.compare(older.child(schema_before), newer.child(schema_after), place)

    def _unevaluated(self, older: JsonNode, newer: JsonNode, keyword: str, prefix: str, path: str) -> Iterator[_Change]:
        before, after = (node.get(keyword) for node in (older, newer))
        if keyword not in (older.schema or {}) and keyword not in (newer.schema or {}):
            return
        place = f"{path}/{keyword}"
        is_false_before, is_false_after = before is False, after is False
        is_open_before, is_open_after = (value in (None, True, {}) for value in (before, after))
        if is_false_before != is_false_after:
            yield f"{prefix}_{'REMOVED' if is_false_after else 'ADDED'}", place
        elif is_open_before != is_open_after:
            yield f"{prefix}_{'NARROWED' if is_open_before else 'EXTENDED'}", place
        elif not is_open_before and not is_false_before:
            yield from self.compare(older.child(before), newer.child(after), place)

    def _dependencies(self, older: JsonNode, newer: JsonNode, path: str) -> Iterator[_Change]:
        before, after = (_dependency_lists(node) for node in (older, newer))
        for name in dict.fromkeys((*before, *after)):
            lists = before.get(name), after.get(name)
            if lists[0] == lists[1]:
                continue
            if lists[0] is None or lists[1] is None:
                change = "ADDED" if lists[0] is None else "REMOVED"
            else:
                change = "EXTENDED" if lists[0] < lists[1] else "NARROWED" if lists[0] > lists[1] else "CHANGED"
            yield f"DEPENDENCY_ARRAY_{change}", f"{path}/{name}"
        schemas_before, schemas_after = (_dependency_schemas(node) for node in (older, newer))
        for name in dict.fromkeys((*schemas_before, *schemas_after)):
            if name not in schemas_before or name not in schemas_after:
                yield f"DEPENDENCY_SCHEMA_{'ADDED' if name in schemas_after else 'REMOVED'}", f"{path}/{name}"
            else:
                yield from self.compare(schemas_before[name], schemas_after[name], f"{path}/{name}")


_COMPARISONS: Final[dict[str, Callable[[_SchemaNodeComparison, JsonNode, JsonNode, str], Iterator[_Change]]]] = {
    "string": _SchemaNodeComparison.strings,
    "number": _SchemaNodeComparison.numbers,
    "enum": _SchemaNodeComparison.enums,
    "const": _SchemaNodeComparison.constants,
    "not": _SchemaNodeComparison.negations,
    "combined": _SchemaNodeComparison.combinations,
    "array": _SchemaNodeComparison.arrays,
    "object": _SchemaNodeComparison.objects,
}


def _bounds(older: JsonNode, newer: JsonNode, path: str, keywords: tuple[tuple[str, str], ...]) -> Iterator[_Change]:
    for keyword, prefix in keywords:
        before, after = _number(older.get(keyword)), _number(newer.get(keyword))
        if before == after:
            continue
        if before is None or after is None:
            change = _presence(before, after)
        else:
            change = "INCREASED" if before < after else "DECREASED"
        yield f"{prefix}_{change}", f"{path}/{keyword}"


def _multiple_of(before: Any, after: Any, path: str) -> Iterator[_Change]:
    old, new = _number(before), _number(after)
    if old == new:
        return
    if old is None or new is None:
        change = _presence(old, new)
    elif old and new % old == 0:
        change = "EXPANDED"
    else:
        change = "REDUCED" if new and old % new == 0 else "CHANGED"
    yield f"MULTIPLE_OF_{change}", path


def _number(value: Any) -> Decimal | None:
    is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    return Decimal(str(value)) if is_number else None


def _presence(before: Any, after: Any) -> str:
    return "ADDED" if before is None else "REMOVED" if after is None else "CHANGED"


def _is_extended_criterion(older: JsonNode, newer: JsonNode) -> bool:
    is_older_single, is_newer_single = len(older.parts) == 1, len(newer.parts) == 1
    return (
        newer.criterion == "anyOf"
        or (is_older_single and (is_newer_single or newer.criterion == "oneOf"))
        or (is_newer_single and older.criterion == "allOf")
    )


def _is_open(node: JsonNode, additional: str, unevaluated: str) -> bool:
    """Whether a model accepts anything besides what it lists."""
    if node.get(additional) not in (None, True) or node.get("patternProperties"):
        return False
    is_absent_or_open: bool = node.get(unevaluated) in (None, True, {})
    return node.get(additional) is True or is_absent_or_open


def _covering_schema(node: JsonNode, name: str) -> JsonNode | None:
    """The schema that a partly open model has for properties that it does not list; None for a closed model."""
    for pattern, schema in node.children("patternProperties").items():
        try:
            if re.search(pattern, name):
                return schema
        except re.error:
            continue
    for keyword in ("additionalProperties", "unevaluatedProperties"):
        value = node.get(keyword)
        if isinstance(value, dict) and (keyword == "additionalProperties" or value):
            return node.child(value)
    return None


def _item_list(node: JsonNode) -> list[JsonNode]:
    items = node.get("prefixItems") if node.get("prefixItems") is not None else node.get("items")
    return [child for item in items if (child := node.child(item)) is not None] if isinstance(items, list) else []


def _further_items(node: JsonNode) -> str:
    """The keyword for items after the listed ones; 2020-12 lists items in `prefixItems`."""
    return "additionalItems" if node.get("prefixItems") is None else "items"


def _all_items(node: JsonNode) -> JsonNode | None:
    return node.child(node.get("items")) if node.get("prefixItems") is None else None


def _dependency_lists(node: JsonNode) -> dict[str, frozenset[str]]:
    members = {**(node.get("dependencies") or {}), **(node.get("dependentRequired") or {})}
    return {name: frozenset(value) for name, value in members.items() if isinstance(value, list)}


def _dependency_schemas(node: JsonNode) -> dict[str, JsonNode]:
    return {**node.children("dependencies"), **node.children("dependentSchemas")}


def _are_bytes(older: JsonNode, newer: JsonNode) -> bool:
    """Whether both are decimals of Kafka Connect's converter, whose schema once changed its type."""
    return bool(older.get("connect.type") == newer.get("connect.type") == "bytes")


def _describe(type: str, path: str, older: JsonNode, newer: JsonNode) -> Difference:
    text = (
        f"The {{reader}} schema differs from the {{writer}} schema at path '{path}': {type.lower().replace('_', ' ')}"
    )
    fragments = (_fragment(node.schema, path) for node in (newer, older))
    return Difference(type, path, text, "; ".join(filter(None, fragments)))


def _fragment(schema: Any, path: str) -> str:
    """The part of a text at a path, as far as the path leads into it."""
    value = schema
    for token in path.split("/")[1:]:
        if isinstance(value, dict) and token in value:
            value = value[token]
        elif isinstance(value, list) and token.isdecimal() and int(token) < len(value):
            value = value[int(token)]
        else:
            return ""
    return dumps(value).decode()[:_MAX_FRAGMENT]
