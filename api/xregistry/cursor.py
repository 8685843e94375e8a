"""Cursors: opaque texts in page links that say where a page of a collection begins.

A cursor fixes a log position, so that all pages show the same state. It also carries the size of the set, so that the
set is counted once. A cursor is valid only for the request that it was made for.
Spec: Pagination 0.1, "link".
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode, urlsafe_b64decode, urlsafe_b64encode
from binascii import crc32
from dataclasses import dataclass
from typing import Any, Final

from annals.domain.errors.problems import BadRequest, Problem
from annals.projections.entities.filters.pages import PageKey

#: Errors of a text that no registry has made.
_MALFORMED: Final = (ValueError, TypeError, LookupError, RecursionError)


@dataclass(frozen=True, slots=True)
class Cursor:
    """position: of the log. count: members of the set. after: the key after which the page begins; None for an end.

    backwards: the page ends before the key, or at the end of the set. page_size: a page size below the limit.
    """

    position: int
    count: int
    after: PageKey | None = None
    backwards: bool = False
    page_size: int | None = None

    def text(self, request: str) -> str:
        """The text of the cursor. request: everything that the set depends on; the text contains its checksum."""
        page_key = [b64encode(self.after.value).decode(), self.after.tree_key] if self.after else None
        value = [crc32(request.encode()), self.position, self.count, page_key, self.backwards, self.page_size]
        return urlsafe_b64encode(json.dumps(value, separators=(",", ":")).encode()).decode().rstrip("=")


def position_of(text: str) -> int | None:
    """The log position that a cursor fixes; None if the text is not a cursor."""
    try:
        return _parse_natural(_members(text)[1])
    except _MALFORMED:
        return None


def parse_cursor(text: str, request: str, head: int) -> Cursor:
    """The cursor in a link. head: last position of the log. Raises: BadRequest."""
    try:
        checksum, position, count, page_key, backwards, page_size = _members(text)
        cursor = Cursor(
            _parse_natural(position),
            _parse_natural(count),
            _parse_page_key(page_key),
            backwards is True,
            page_size and _parse_natural(page_size),
        )
    except _MALFORMED:
        raise _foreign_cursor() from None
    if checksum != crc32(request.encode()):
        raise _foreign_cursor()
    if cursor.position > head:
        raise _invalid_cursor(f"it is of position {cursor.position}, but the log ends at position {head}")
    return cursor


def _members(text: str) -> Any:
    return json.loads(urlsafe_b64decode(text + "=" * (-len(text) % 4)))


def _parse_page_key(value: Any) -> PageKey | None:
    if value is None:
        return None
    page_value, key = value
    # Keys have the characters of ids; PostgreSQL refuses some others.
    if not isinstance(page_value, str) or not isinstance(key, str) or not (key.isascii() and key.isprintable()):
        raise ValueError("it is not a place")
    return PageKey(b64decode(page_value, validate=True), key)


def _parse_natural(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError("it is not a number of something")
    return value


def _foreign_cursor() -> Problem:
    return _invalid_cursor("this registry did not make it for this request")


def _invalid_cursor(reason: str) -> Problem:
    return BadRequest(error_detail=f'the parameter "cursor": {reason}')
