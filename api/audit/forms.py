"""How a list of things is written: JSON, JSON lines or CSV, a piece at a time.

CSV follows RFC 4180: a header row that is always the same, CRLF behind each row. A cell holds text as it is, other
values as JSON; what is not there is empty. Nothing is done about cells that a spreadsheet would take for a formula.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Generic, TypeVar

from api.answer import JSON
from api.request import Request
from domain.jsontext import Json, dumps

T = TypeVar("T")
Members = dict[str, Json]

#: Bytes of a chunk, about.
CHUNK: Final = 1 << 16


class Format(StrEnum):
    """What an answer can be written as; the value is that of the parameter `format`."""

    JSON = "json"
    NDJSON = "ndjson"
    CSV = "csv"


CONTENT_TYPES: Final[dict[Format, tuple[bytes, bytes]]] = {
    Format.JSON: JSON,
    Format.NDJSON: (b"content-type", b"application/x-ndjson"),
    Format.CSV: (b"content-type", b"text/csv; charset=utf-8; header=present"),
}
_ACCEPTED: Final = {
    "application/json": Format.JSON,
    "application/*": Format.JSON,
    "application/x-ndjson": Format.NDJSON,
    "application/ndjson": Format.NDJSON,
    "application/jsonl": Format.NDJSON,
    "text/csv": Format.CSV,
    "text/*": Format.CSV,
}


@dataclass(frozen=True, slots=True)
class Table(Generic[T]):
    """How things of one kind are written.

    members: one thing as a JSON object. rows: the same as rows of CSV, by column.
    """

    columns: tuple[str, ...]
    members: Callable[[T], Members]
    rows: Callable[[T], Iterable[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class Around:
    """What stands around a list in JSON: members of an object, and the name that the list has in it."""

    members: Members
    name: str


def format_of(request: Request) -> Format:
    """The format that the Accept header likes best; JSON where it knows none of them."""
    found = [_weighed(item) for item in (request.header(b"accept") or "").lower().split(",")]
    usable = [(weight, _ACCEPTED[type]) for type, weight in found if type in _ACCEPTED and weight > 0]
    return max(usable, key=lambda one: one[0])[1] if usable else Format.JSON


def written(format: Format, table: Table[T], things: Iterable[T], around: Around | None = None) -> Iterator[bytes]:
    """The things in a format, in chunks."""
    return _chunks(_WRITERS[format](table, things, around))


def _json(table: Table[T], things: Iterable[T], around: Around | None) -> Iterator[bytes]:
    yield b"[" if around is None else b'%b,"%b":[' % (dumps(around.members)[:-1], around.name.encode())
    before = b""
    for thing in things:
        yield before + dumps(table.members(thing))
        before = b","
    yield b"]" if around is None else b"]}"


def _ndjson(table: Table[T], things: Iterable[T], around: Around | None) -> Iterator[bytes]:
    return (dumps(table.members(thing)) + b"\n" for thing in things)


def _csv(table: Table[T], things: Iterable[T], around: Around | None) -> Iterator[bytes]:
    text = io.StringIO(newline="")
    rows = csv.writer(text)
    rows.writerow(table.columns)
    for thing in things:
        rows.writerows([_cell(row.get(column)) for column in table.columns] for row in table.rows(thing))
        yield _taken(text)
    yield _taken(text)


_WRITERS: Final[dict[Format, Callable[[Table[Any], Iterable[Any], Around | None], Iterator[bytes]]]] = {
    Format.JSON: _json,
    Format.NDJSON: _ndjson,
    Format.CSV: _csv,
}


def _taken(text: io.StringIO) -> bytes:
    """What has been written so far, taken out."""
    found = text.getvalue().encode()
    text.seek(0)
    text.truncate()
    return found


def _cell(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return dumps(value).decode()


def _weighed(item: str) -> tuple[str, float]:
    type, *parameters = (part.strip() for part in item.split(";"))
    weights = [part.partition("=")[2] for part in parameters if part.startswith("q=")]
    try:
        return type, float(weights[0]) if weights else 1.0
    except ValueError:
        return type, 0.0


def _chunks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    waiting: list[bytes] = []
    length = 0
    for piece in pieces:
        waiting.append(piece)
        length += len(piece)
        if length >= CHUNK:
            yield b"".join(waiting)
            waiting, length = [], 0
    yield b"".join(waiting)
