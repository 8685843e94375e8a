"""Optimistic locking: an `epoch` in a request names the state that the client saw (ENT-50 to 52)."""

from __future__ import annotations

from decimal import Decimal

from annals.domain.errors.problems import InvalidAttribute, MismatchedEpoch
from annals.domain.values.json_text import Json


def check_epoch(xid: str, requested: Json, current: int | None) -> None:
    """Checks a request's epoch.

    requested: None skips the check. current: None for an entity that does not exist yet; then only the type is checked.
    Raises: InvalidAttribute, MismatchedEpoch.
    """
    if requested is None:
        return
    if (
        isinstance(requested, bool)
        or not isinstance(requested, int | float | Decimal)
        or not _is_whole(Decimal(requested))
    ):
        raise InvalidAttribute(xid, name="epoch", error_detail="it has to be an unsigned integer")
    if current is not None and requested != current:
        raise MismatchedEpoch(xid, bad_epoch=requested, epoch=current)


def parse_epoch(xid: str, text: str) -> int | Decimal:
    """The value of an `epoch` flag. Raises: InvalidAttribute."""
    if not (text.isascii() and text.isdigit()):
        raise InvalidAttribute(xid, name="epoch", error_detail="it has to be an unsigned integer")
    return int(text) if len(text) < 20 else Decimal(text)  # higher than any epoch, and longer than int accepts


def _is_whole(number: Decimal) -> bool:
    # `1.0` is the integer 1, as for every integer attribute (TRAP-1).
    return number >= 0 and number == number.to_integral_value()
