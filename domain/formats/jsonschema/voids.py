"""Cases that have no values, as far as that can be told without a search: bounds that cross, members that cannot be."""

from __future__ import annotations

from domain.formats.jsonschema.accepting import accepts
from domain.formats.jsonschema.case import Case, Nodes
from domain.formats.jsonschema.comparison import Comparison


def is_void(comparison: Comparison, case: Case, known: Case | None) -> bool:
    """Whether it is certain that a case has no values; see `Comparison.is_void`."""
    if case.values is not None:
        return not case.values
    if all(_no_value(comparison, case, known or case, kind) for kind in case.kinds):
        return True
    return known is not None and any(not comparison.accepts(refused, case.opened) for refused in case.negated)


def _no_value(comparison: Comparison, case: Case, known: Case, kind: str) -> bool:
    match kind:
        case "integer" | "fraction":
            return _crossed(case)
        case "string":
            longest = min((node.max_length for node in case.nodes if node.max_length is not None), default=None)
            return longest is not None and longest < max(node.min_length for node in case.nodes)
        case "array":
            return _no_array(comparison, case)
        case "object":
            return _no_object(comparison, case, known)
    return False


def _crossed(case: Case) -> bool:
    if case.lower is None or case.upper is None:
        return False
    (low, above), (high, below) = case.lower, case.upper
    return low > high or (low == high and (above or below))


def _no_array(comparison: Comparison, case: Case) -> bool:
    if case.max_items is not None and case.max_items < case.min_items:
        return True
    first = range(min(case.min_items, case.positions + 1))
    return any(_nothing(comparison, case.item(index), case.closed) for index in first)


def _no_object(comparison: Comparison, case: Case, known: Case) -> bool:
    most = min((node.max_properties for node in case.nodes if node.max_properties is not None), default=None)
    if most is not None and most < max(len(case.required), *(node.min_properties for node in case.nodes)):
        return True
    for name in case.required:
        if not known.may_have(name) or _nothing(comparison, case.member(name), case.closed):
            return True
        if any(accepts(node.names, name) is False for node in case.nodes if node.names is not None):
            return True
    return False


def _nothing(comparison: Comparison, nodes: Nodes, closed: bool) -> bool:
    return bool(nodes) and all(comparison.is_void(below) for below in comparison.cases(nodes, closed))
