"""Optimistic locking: an `epoch` in a request names the state that its author saw (ENT-50 to 52)."""

from __future__ import annotations

from decimal import Decimal

from domain.errors.problems import InvalidAttribute, MismatchedEpoch
from domain.values.json_text import Json


def check_epoch(xid: str, given: Json, current: int | None) -> None:
    """Nothing, if a request's epoch may stand.

    given: None is no check. current: None for an entity that does not exist yet; then only the type is checked.
    Raises: InvalidAttribute, MismatchedEpoch.
    """
    if given is None:
        return
    if isinstance(given, bool) or not isinstance(given, int | float | Decimal) or not _whole(Decimal(given)):
        raise InvalidAttribute(xid, name="epoch", error_detail="it has to be an unsigned integer")
    if current is not None and given != current:
        raise MismatchedEpoch(xid, bad_epoch=given, epoch=current)


def parse_epoch(xid: str, text: str) -> int | Decimal:
    """The value of an `epoch` flag. Raises: InvalidAttribute."""
    if not (text.isascii() and text.isdigit()):
        raise InvalidAttribute(xid, name="epoch", error_detail="it has to be an unsigned integer")
    return int(text) if len(text) < 20 else Decimal(text)  # beyond any epoch there is, and what int takes


def _whole(number: Decimal) -> bool:
    # `1.0` is the integer 1, as for every attribute that is an integer (TRAP-1).
    return number >= 0 and number == number.to_integral_value()
