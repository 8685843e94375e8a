"""Writes a list as JSON, JSON lines or CSV, in pieces.

CSV follows RFC 4180: a fixed header row, and CRLF after each row. A cell has text unchanged and other values as JSON;
absent values are empty. Cells that a spreadsheet would take for a formula are not escaped.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Generic, TypeVar

from api.http.request import Request
from api.http.response import JSON
from domain.values.json_text import Json, dumps

T = TypeVar("T")
JsonMembers = dict[str, Json]

#: Approximate size of a chunk in bytes.
CHUNK_SIZE: Final = 1 << 16


class TableFormat(StrEnum):
    """The formats of a response; the values are those of the parameter `format`."""

    JSON = "json"
    NDJSON = "ndjson"
    CSV = "csv"


CONTENT_TYPES: Final[dict[TableFormat, tuple[bytes, bytes]]] = {
    TableFormat.JSON: JSON,
    TableFormat.NDJSON: (b"content-type", b"application/x-ndjson"),
    TableFormat.CSV: (b"content-type", b"text/csv; charset=utf-8; header=present"),
}
_ACCEPTED: Final = {
    "application/json": TableFormat.JSON,
    "application/*": TableFormat.JSON,
    "application/x-ndjson": TableFormat.NDJSON,
    "application/ndjson": TableFormat.NDJSON,
    "application/jsonl": TableFormat.NDJSON,
    "text/csv": TableFormat.CSV,
    "text/*": TableFormat.CSV,
}


@dataclass(frozen=True, slots=True)
class TableLayout(Generic[T]):
    """How items of one kind are written.

    members: one item as a JSON object. rows: one item as CSV rows, by column.
    """

    columns: tuple[str, ...]
    members: Callable[[T], JsonMembers]
    rows: Callable[[T], Iterable[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class ListWrapper:
    """The JSON object around a list: its other members, and the name of the list in it."""

    members: JsonMembers
    name: str


def negotiate_format(request: Request) -> TableFormat:
    """The format that the Accept header prefers; JSON if it names none of them."""
    found = [_parse_weight(item) for item in (request.header(b"accept") or "").lower().split(",")]
    usable = [(weight, _ACCEPTED[type]) for type, weight in found if type in _ACCEPTED and weight > 0]
    return max(usable, key=lambda one: one[0])[1] if usable else TableFormat.JSON


def write_table(
    format: TableFormat, table: TableLayout[T], things: Iterable[T], around: ListWrapper | None = None
) -> Iterator[bytes]:
    """The items in a format, in chunks."""
    return _chunks(_WRITERS[format](table, things, around))


def _json(table: TableLayout[T], things: Iterable[T], around: ListWrapper | None) -> Iterator[bytes]:
    yield b"[" if around is None else b'%b,"%b":[' % (dumps(around.members)[:-1], around.name.encode())
    before = b""
    for thing in things:
        yield before + dumps(table.members(thing))
        before = b","
    yield b"]" if around is None else b"]}"


def _ndjson(table: TableLayout[T], things: Iterable[T], around: ListWrapper | None) -> Iterator[bytes]:
    return (dumps(table.members(thing)) + b"\n" for thing in things)


def _csv(table: TableLayout[T], things: Iterable[T], around: ListWrapper | None) -> Iterator[bytes]:
    text = io.StringIO(newline="")
    rows = csv.writer(text)
    rows.writerow(table.columns)
    for thing in things:
        rows.writerows([_cell(row.get(column)) for column in table.columns] for row in table.rows(thing))
        yield _drain(text)
    yield _drain(text)


_WRITERS: Final[dict[TableFormat, Callable[[TableLayout[Any], Iterable[Any], ListWrapper | None], Iterator[bytes]]]] = {
    TableFormat.JSON: _json,
    TableFormat.NDJSON: _ndjson,
    TableFormat.CSV: _csv,
}


def _drain(text: io.StringIO) -> bytes:
    """The text written so far; empties the buffer."""
    found = text.getvalue().encode()
    text.seek(0)
    text.truncate()
    return found


def _cell(value: Any) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return dumps(value).decode()


def _parse_weight(item: str) -> tuple[str, float]:
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
        if length >= CHUNK_SIZE:
            yield b"".join(waiting)
            waiting, length = [], 0
    yield b"".join(waiting)
