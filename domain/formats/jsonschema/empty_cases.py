"""Detects cases without values where no search is needed: contradicting bounds, or impossible required members."""

from __future__ import annotations

from annals.domain.formats.jsonschema.comparison import JsonSchemaComparison
from annals.domain.formats.jsonschema.instance_validation import accepts_value
from annals.domain.formats.jsonschema.writer_cases import SchemaNodes, WriterCase


def has_no_values(comparison: JsonSchemaComparison, case: WriterCase, known: WriterCase | None) -> bool:
    """Whether a case certainly has no values; see `JsonSchemaComparison.is_empty`."""
    if case.values is not None:
        return not case.values
    if all(_is_kind_empty(comparison, case, known or case, kind) for kind in case.kinds):
        return True
    return known is not None and any(
        not comparison.case_incompatibilities(negated_node, case.as_open) for negated_node in case.negated
    )


def _is_kind_empty(comparison: JsonSchemaComparison, case: WriterCase, known: WriterCase, kind: str) -> bool:
    match kind:
        case "integer" | "fraction":
            return _has_crossed_bounds(case)
        case "string":
            max_length = min((node.max_length for node in case.nodes if node.max_length is not None), default=None)
            return max_length is not None and max_length < max(node.min_length for node in case.nodes)
        case "array":
            return _is_array_empty(comparison, case)
        case "object":
            return _is_object_empty(comparison, case, known)
    return False


def _has_crossed_bounds(case: WriterCase) -> bool:
    if case.lower is None or case.upper is None:
        return False
    (lower_value, lower_is_exclusive), (upper_value, upper_is_exclusive) = case.lower, case.upper
    return lower_value > upper_value or (lower_value == upper_value and (lower_is_exclusive or upper_is_exclusive))


def _is_array_empty(comparison: JsonSchemaComparison, case: WriterCase) -> bool:
    if case.max_items is not None and case.max_items < case.min_items:
        return True
    first = range(min(case.min_items, case.positions + 1))
    return any(_is_nothing_allowed(comparison, case.item(index), case.closed) for index in first)


def _is_object_empty(comparison: JsonSchemaComparison, case: WriterCase, known: WriterCase) -> bool:
    max_properties = min((node.max_properties for node in case.nodes if node.max_properties is not None), default=None)
    if max_properties is not None and max_properties < max(
        len(case.required), *(node.min_properties for node in case.nodes)
    ):
        return True
    for name in case.required:
        if not known.can_have(name) or _is_nothing_allowed(comparison, case.member(name), case.closed):
            return True
        if any(accepts_value(node.names, name) is False for node in case.nodes if node.names is not None):
            return True
    return False


def _is_nothing_allowed(comparison: JsonSchemaComparison, nodes: SchemaNodes, closed: bool) -> bool:
    return bool(nodes) and all(comparison.is_empty(writer_case) for writer_case in comparison.cases(nodes, closed))
