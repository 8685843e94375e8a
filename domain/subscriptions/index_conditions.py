"""Necessary conditions for a filter to match an event, in a form that an index can look up.

The conditions are necessary, not sufficient: if none of them holds, the filter cannot match. If one holds, the filter
still has to be evaluated.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Final, NamedTuple

from annals.domain.cesql import like_pattern
from annals.domain.cesql.syntax import (
    BinaryStep,
    ChainStep,
    ContextAttribute,
    InStep,
    LikeStep,
    LiteralValue,
    OperatorChain,
    SyntaxNode,
)
from annals.domain.cesql.values import SPEC_ATTRIBUTES

#: The number of characters of a prefix that the index compares; the filter itself compares the rest.
_MAX_PREFIX_LENGTH: Final = 128
#: The maximum number of conditions of one filter, to limit the size of the index.
_MAX_CONDITIONS: Final = 100
#: The selectivity of attributes, the most selective first; `source` is equal in most events of a registry.
_ATTRIBUTE_BREADTH: Final = {"id": 0, "subject": 1, "type": 4, "source": 6, "specversion": 8}
_OTHER_BREADTH: Final = 2


class IndexCondition(NamedTuple):
    """An attribute, as its canonical string, equals a text (`is_exact`) or starts with it."""

    attribute: str
    text: str
    is_exact: bool


#: At least one of these holds for every event that a filter matches; None if no conditions are known.
IndexConditions = frozenset[IndexCondition] | None


def attribute_equals(attribute: str, text: str) -> IndexConditions:
    """The conditions for an attribute to equal a text."""
    return frozenset((IndexCondition(attribute, text, True),))


def attribute_starts_with(attribute: str, text: str) -> IndexConditions:
    """The conditions for an attribute to start with a text."""
    return frozenset((IndexCondition(attribute, text[:_MAX_PREFIX_LENGTH], False),)) if text else None


def all_conditions(conditions_of_filters: Iterable[IndexConditions]) -> IndexConditions:
    """The conditions for several filters to match at once: those of the most selective filter are sufficient."""
    return min(
        (conditions for conditions in conditions_of_filters if conditions is not None),
        key=_conditions_breadth,
        default=None,
    )


def any_condition(alternatives: Iterable[IndexConditions]) -> IndexConditions:
    """The conditions for one of several filters to match."""
    union: set[IndexCondition] = set()
    for conditions in alternatives:
        if conditions is None or len(union) + len(conditions) > _MAX_CONDITIONS:
            return None
        union |= conditions
    return frozenset(union)


def expression_conditions(node: SyntaxNode) -> IndexConditions:
    """The conditions for an expression to be true and free of errors."""
    if not isinstance(node, OperatorChain):
        return None
    first, steps = node.first, node.steps
    if (
        isinstance(first, ContextAttribute)
        and len(steps) == 1
        and (attribute_conditions := _attribute_conditions(first.name, steps[0])) is not None
    ):
        return attribute_conditions
    if isinstance(steps[0], BinaryStep) and steps[0].operator in ("and", "or", "xor"):
        return reduce(_join_conditions, steps, expression_conditions(first))
    return None


def _attribute_conditions(name: str, step: ChainStep) -> IndexConditions:
    match step:
        case BinaryStep(operator="=", operand=LiteralValue(value=str(text))):
            return attribute_equals(name, text)
        case LikeStep(pattern=pattern, negated=False):
            parsed = like_pattern.parse_pattern(pattern)
            return (
                attribute_equals(name, parsed.prefix) if parsed.is_exact else attribute_starts_with(name, parsed.prefix)
            )
        # The elements are converted to the attribute's type, so several texts can mean the same Integer or Boolean.
        case InStep(elements=elements, negated=False) if name in SPEC_ATTRIBUTES:
            texts = [
                element.value
                for element in elements
                if isinstance(element, LiteralValue) and isinstance(element.value, str)
            ]
            return (
                any_condition(attribute_equals(name, text) for text in texts) if len(texts) == len(elements) else None
            )
    return None


def _join_conditions(left_conditions: IndexConditions, step: ChainStep) -> IndexConditions:
    """The conditions of a chain, evaluated from left to right; an operand of `xor` adds none."""
    match step:
        case BinaryStep(operator="and", operand=operand):
            return all_conditions((left_conditions, expression_conditions(operand)))
        case BinaryStep(operator="or", operand=operand):
            return any_condition((left_conditions, expression_conditions(operand)))
    return None


def _conditions_breadth(conditions: frozenset[IndexCondition]) -> tuple[int, int]:
    """A measure of how many events match the conditions, for comparisons."""
    return max(map(_condition_breadth, conditions), default=0), len(conditions)


def _condition_breadth(condition: IndexCondition) -> int:
    selectivity = 0 if condition.is_exact else 2 if len(condition.text) > 8 else 5
    return _ATTRIBUTE_BREADTH.get(condition.attribute, _OTHER_BREADTH) + selectivity
