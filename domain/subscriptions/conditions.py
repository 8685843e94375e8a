"""What has to hold of an event so that a filter can be true, as an index can look it up.

Conditions are necessary and not enough: an event for which none of them holds need not be tried, one for which some
does still has to be.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Final, NamedTuple

from domain.cesql import like
from domain.cesql.syntax import Attribute, Binary, Chain, In, Like, Literal, Node, Step
from domain.cesql.values import DEFINED

#: Characters of a beginning that are looked at; the rest is for the filter itself.
_LOOKED_AT: Final = 128
#: Conditions of one filter, more of which an index would rather not have.
_MOST: Final = 100
#: Attributes that leave more events out come first; `source` is the same in most events of a registry.
_WORTH: Final = {"id": 0, "subject": 1, "type": 4, "source": 6, "specversion": 8}
_OTHER: Final = 2


class Condition(NamedTuple):
    """An attribute, as its canonical string, is a text, or begins with it where it need not be the whole."""

    attribute: str
    text: str
    whole: bool


#: One of these holds for every event that a filter lets pass; None where no such thing is known.
Needs = frozenset[Condition] | None


def equal(attribute: str, text: str) -> Needs:
    """What it takes for an attribute to be a text."""
    return frozenset((Condition(attribute, text, True),))


def beginning(attribute: str, text: str) -> Needs:
    """What it takes for an attribute to begin with a text."""
    return frozenset((Condition(attribute, text[:_LOOKED_AT], False),)) if text else None


def all_of(needs: Iterable[Needs]) -> Needs:
    """What it takes for several filters to be true at once: the one that leaves most events out stands for all."""
    return min((each for each in needs if each is not None), key=_width, default=None)


def any_of(needs: Iterable[Needs]) -> Needs:
    """What it takes for one of several filters to be true."""
    found: set[Condition] = set()
    for each in needs:
        if each is None or len(found) + len(each) > _MOST:
            return None
        found |= each
    return frozenset(found)


def of_expression(node: Node) -> Needs:
    """What it takes for an expression to be true and free of errors."""
    if not isinstance(node, Chain):
        return None
    first, steps = node.first, node.steps
    if isinstance(first, Attribute) and len(steps) == 1 and (found := _of_attribute(first.name, steps[0])) is not None:
        return found
    if isinstance(steps[0], Binary) and steps[0].operator in ("and", "or", "xor"):
        return reduce(_joined, steps, of_expression(first))
    return None


def _of_attribute(name: str, step: Step) -> Needs:
    match step:
        case Binary(operator="=", operand=Literal(value=str(text))):
            return equal(name, text)
        case Like(pattern=pattern, negated=False):
            parsed = like.parse(pattern)
            return equal(name, parsed.start) if parsed.exact else beginning(name, parsed.start)
        # The elements become what the attribute is, so more than one text can mean the same Integer or Boolean.
        case In(elements=elements, negated=False) if name in DEFINED:
            texts = [each.value for each in elements if isinstance(each, Literal) and isinstance(each.value, str)]
            return any_of(equal(name, text) for text in texts) if len(texts) == len(elements) else None
    return None


def _joined(left: Needs, step: Step) -> Needs:
    """An expression goes from left to right; whatever stands behind `xor` says nothing."""
    match step:
        case Binary(operator="and", operand=operand):
            return all_of((left, of_expression(operand)))
        case Binary(operator="or", operand=operand):
            return any_of((left, of_expression(operand)))
    return None


def _width(needs: frozenset[Condition]) -> tuple[int, int]:
    """How many events needs let through, to compare them by."""
    return max(map(_reach, needs), default=0), len(needs)


def _reach(condition: Condition) -> int:
    narrow = 0 if condition.whole else 2 if len(condition.text) > 8 else 5
    return _WORTH.get(condition.attribute, _OTHER) + narrow
