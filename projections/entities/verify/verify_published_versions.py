"""Verifies that the publications of the legacy APIs in the read model match the log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from sqlalchemy import Connection

from annals.commands.store.database import sql
from annals.commands.store.hashes import LogRow
from annals.commands.store.mapper import EventMapper
from annals.commands.verify.archived_states import ArchivedStates, unchecked_event
from annals.commands.verify.verify_log import VerificationFinding
from annals.domain.compat.legacy_apis import FACADE, LEGACY_APIS
from annals.domain.compat.publications import fold_publications
from annals.domain.registry.events import EntityDeleted
from annals.domain.values import xid as xids
from annals.projections.entities.rows import PUBLICATION_COLUMNS, publication_row

_EVENT_COLUMNS: Final = ", ".join(LogRow._fields)
_SELECT_EVENTS: Final = (
    f"SELECT {_EVENT_COLUMNS} FROM log WHERE (stream, revision) > (?, ?) AND stream < ? ORDER BY stream,"
    " revision LIMIT ?"
)
_SELECT_ROWS: Final = f"SELECT {', '.join(PUBLICATION_COLUMNS)} FROM published WHERE tree_key = ? ORDER BY born"
_SELECT_COUNT: Final = "SELECT count(*) FROM published"
#: The number of slashes in the stream of a Version.
_VERSION_DEPTH: Final = 6
_DELETED_TOPIC: Final = EntityDeleted.TOPIC.partition(":")[0]
_FACADE_MEMBER: Final = b'"%b":' % FACADE.encode()


def verify_published_versions(
    connection: Connection, mapper: EventMapper, log_end: int, archived: ArchivedStates
) -> Iterator[VerificationFinding]:
    """Each stream whose rows do not match its events, and rows without a stream. log_end: position of the log's end.

    Reads, once and in pages, every event of what the legacy APIs show; nothing if the archive cannot be read.
    """
    if archived.failures or archived.damage:
        return
    expected_count = 0
    for stream, rows in _version_streams(connection, archived):
        expected = _expected_rows(rows, mapper)
        expected_count += len(expected)
        if [*map(tuple, sql.run(connection, _SELECT_ROWS, (xids.tree_key(stream),)))] != expected:
            yield VerificationFinding(log_end, f"what is published of {stream} is not what the log results in")
    stored_count = sql.scalar(connection, _SELECT_COUNT)
    if stored_count != expected_count:
        yield VerificationFinding(
            log_end,
            f"the read model has {stored_count} rows of published versions, but the log results in {expected_count}",
        )


def _version_streams(connection: Connection, archived: ArchivedStates) -> Iterator[tuple[str, list[LogRow]]]:
    """The streams of Versions with their events, if these can affect publications."""
    for stream, rows in groupby(_version_rows(connection, archived), key=lambda row: row.stream):
        stream_rows = list(rows)
        if any(_can_affect_publications(row) for row in stream_rows):
            yield stream, stream_rows


def _version_rows(connection: Connection, archived: ArchivedStates) -> Iterator[LogRow]:
    for family in LEGACY_APIS:
        stream, revision = f"/{family.groups}/", 0
        while page := sql.run(
            connection, _SELECT_EVENTS, (stream, revision, f"/{family.groups}0", sql.CHUNK)
        ).fetchall():
            rows = [unchecked_event(row, archived) for row in page]
            yield from (row for row in rows if row.stream.count("/") == _VERSION_DEPTH)
            if (rows[-1].stream, rows[-1].revision) <= (stream, revision):
                return  # a damaged key may repeat endlessly
            stream, revision = rows[-1].stream, rows[-1].revision


def _can_affect_publications(row: LogRow) -> bool:
    return row.topic.partition(":")[0] == _DELETED_TOPIC or _FACADE_MEMBER in row.state


def _expected_rows(rows: Sequence[LogRow], mapper: EventMapper) -> list[tuple[Any, ...]]:
    """The expected rows of a stream; none if an event cannot be read, which another check reports."""
    try:
        events = [(row.position, mapper.event_of_row(row)) for row in rows]
    except (ValueError, KeyError, TypeError):
        return []
    return sorted(
        (tuple(publication_row(publication)) for publication in fold_publications(events)),
        key=lambda values: int(values[1]),
    )
