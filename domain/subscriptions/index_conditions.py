"""What has to hold of an event so that a filter can be true, as an index can look it up.

Conditions are necessary and not enough: an event for which none of them holds need not be tried, one for which some
does still has to be.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Final, NamedTuple

from domain.cesql import like_pattern
from domain.cesql.syntax import (
    BinaryStep,
    ChainStep,
    ContextAttribute,
    InStep,
    LikeStep,
    LiteralValue,
    OperatorChain,
    SyntaxNode,
)
from domain.cesql.values import SPEC_ATTRIBUTES

#: Characters of a beginning that are looked at; the rest is for the filter itself.
_LOOKED_AT: Final = 128
#: Conditions of one filter, more of which an index would rather not have.
_MOST: Final = 100
#: Attributes that leave more events out come first; `source` is the same in most events of a registry.
_WORTH: Final = {"id": 0, "subject": 1, "type": 4, "source": 6, "specversion": 8}
_OTHER: Final = 2


class IndexCondition(NamedTuple):
    """An attribute, as its canonical string, is a text, or begins with it where it need not be the whole."""

    attribute: str
    text: str
    whole: bool


#: One of these holds for every event that a filter lets pass; None where no such thing is known.
IndexConditions = frozenset[IndexCondition] | None


def attribute_equals(attribute: str, text: str) -> IndexConditions:
    """What it takes for an attribute to be a text."""
    return frozenset((IndexCondition(attribute, text, True),))


def attribute_starts_with(attribute: str, text: str) -> IndexConditions:
    """What it takes for an attribute to begin with a text."""
    return frozenset((IndexCondition(attribute, text[:_LOOKED_AT], False),)) if text else None


def all_conditions(needs: Iterable[IndexConditions]) -> IndexConditions:
    """What it takes for several filters to be true at once: the one that leaves most events out stands for all."""
    return min((each for each in needs if each is not None), key=_width, default=None)


def any_condition(needs: Iterable[IndexConditions]) -> IndexConditions:
    """What it takes for one of several filters to be true."""
    found: set[IndexCondition] = set()
    for each in needs:
        if each is None or len(found) + len(each) > _MOST:
            return None
        found |= each
    return frozenset(found)


def expression_conditions(node: SyntaxNode) -> IndexConditions:
    """What it takes for an expression to be true and free of errors."""
    if not isinstance(node, OperatorChain):
        return None
    first, steps = node.first, node.steps
    if (
        isinstance(first, ContextAttribute)
        and len(steps) == 1
        and (found := _of_attribute(first.name, steps[0])) is not None
    ):
        return found
    if isinstance(steps[0], BinaryStep) and steps[0].operator in ("and", "or", "xor"):
        return reduce(_joined, steps, expression_conditions(first))
    return None


def _of_attribute(name: str, step: ChainStep) -> IndexConditions:
    match step:
        case BinaryStep(operator="=", operand=LiteralValue(value=str(text))):
            return attribute_equals(name, text)
        case LikeStep(pattern=pattern, negated=False):
            parsed = like_pattern.parse_pattern(pattern)
            return attribute_equals(name, parsed.start) if parsed.exact else attribute_starts_with(name, parsed.start)
        # The elements become what the attribute is, so more than one text can mean the same Integer or Boolean.
        case InStep(elements=elements, negated=False) if name in SPEC_ATTRIBUTES:
            texts = [each.value for each in elements if isinstance(each, LiteralValue) and isinstance(each.value, str)]
            return (
                any_condition(attribute_equals(name, text) for text in texts) if len(texts) == len(elements) else None
            )
    return None


def _joined(left: IndexConditions, step: ChainStep) -> IndexConditions:
    """An expression goes from left to right; whatever stands behind `xor` says nothing."""
    match step:
        case BinaryStep(operator="and", operand=operand):
            return all_conditions((left, expression_conditions(operand)))
        case BinaryStep(operator="or", operand=operand):
            return any_condition((left, expression_conditions(operand)))
    return None


def _width(needs: frozenset[IndexCondition]) -> tuple[int, int]:
    """How many events needs let through, to compare them by."""
    return max(map(_reach, needs), default=0), len(needs)


def _reach(condition: IndexCondition) -> int:
    narrow = 0 if condition.whole else 2 if len(condition.text) > 8 else 5
    return _WORTH.get(condition.attribute, _OTHER) + narrow
