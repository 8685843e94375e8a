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

from annals.api.http.request import Request
from annals.api.http.response import JSON
from annals.domain.values.json_text import Json, dumps

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
_FORMATS_BY_MEDIA_TYPE: Final = {
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
    weighted_types = [_parse_weight(item) for item in (request.header(b"accept") or "").lower().split(",")]
    weighted_formats = [
        (weight, _FORMATS_BY_MEDIA_TYPE[type])
        for type, weight in weighted_types
        if type in _FORMATS_BY_MEDIA_TYPE and weight > 0
    ]
    return max(weighted_formats, key=lambda one: one[0])[1] if weighted_formats else TableFormat.JSON


def write_table(
    format: TableFormat, table: TableLayout[T], items: Iterable[T], wrapper: ListWrapper | None = None
) -> Iterator[bytes]:
    """The items in a format, in chunks."""
    return _join_chunks(_WRITERS[format](table, items, wrapper))


def _write_json(table: TableLayout[T], items: Iterable[T], wrapper: ListWrapper | None) -> Iterator[bytes]:
    yield b"[" if wrapper is None else b'%b,"%b":[' % (dumps(wrapper.members)[:-1], wrapper.name.encode())
    separator = b""
    for item in items:
        yield separator + dumps(table.members(item))
        separator = b","
    yield b"]" if wrapper is None else b"]}"


def _write_ndjson(table: TableLayout[T], items: Iterable[T], wrapper: ListWrapper | None) -> Iterator[bytes]:
    return (dumps(table.members(item)) + b"\n" for item in items)


def _write_csv(table: TableLayout[T], items: Iterable[T], wrapper: ListWrapper | None) -> Iterator[bytes]:
    text = io.StringIO(newline="")
    rows = csv.writer(text)
    rows.writerow(table.columns)
    for item in items:
        rows.writerows([_cell_text(row.get(column)) for column in table.columns] for row in table.rows(item))
        yield _drain(text)
    yield _drain(text)


_WRITERS: Final[dict[TableFormat, Callable[[TableLayout[Any], Iterable[Any], ListWrapper | None], Iterator[bytes]]]] = {
    TableFormat.JSON: _write_json,
    TableFormat.NDJSON: _write_ndjson,
    TableFormat.CSV: _write_csv,
}


def _drain(text: io.StringIO) -> bytes:
    """The text written so far; empties the buffer."""
    written = text.getvalue().encode()
    text.seek(0)
    text.truncate()
    return written


def _cell_text(value: Any) -> str:
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


def _join_chunks(pieces: Iterable[bytes]) -> Iterator[bytes]:
    pending: list[bytes] = []
    length = 0
    for piece in pieces:
        pending.append(piece)
        length += len(piece)
        if length >= CHUNK_SIZE:
            yield b"".join(pending)
            pending, length = [], 0
    yield b"".join(pending)
