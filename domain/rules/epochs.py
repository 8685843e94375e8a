"""Optimistic locking: an `epoch` in a request names the state that its author saw (ENT-50 to 52)."""

from __future__ import annotations

from decimal import Decimal

from domain.jsontext import Json
from domain.problems import InvalidAttribute, MismatchedEpoch


def check_epoch(xid: str, given: Json, current: int | None) -> None:
    """Nothing, if a request's epoch may stand.

    given: None is no check. current: None for an entity that does not exist yet; then only the type is checked.
    Raises: InvalidAttribute, MismatchedEpoch.
    """
    if given is None:
        return
    if isinstance(given, bool) or not isinstance(given, int | Decimal) or given < 0:
        raise InvalidAttribute(xid, name="epoch", error_detail="it has to be an unsigned integer")
    if current is not None and given != current:
        raise MismatchedEpoch(xid, bad_epoch=given, epoch=current)


def parse_epoch(xid: str, text: str) -> int:
    """The value of an `epoch` flag. Raises: InvalidAttribute."""
    if not (text.isascii() and text.isdigit()):
        raise InvalidAttribute(xid, name="epoch", error_detail="it has to be an unsigned integer")
    return int(text) if len(text) < 20 else 1 << 64  # beyond any epoch there is
