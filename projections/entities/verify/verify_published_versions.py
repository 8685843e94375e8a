"""Verifies that what the legacy APIs and Confluent's API publish of Versions in the read model matches the log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import Any, Final

from sqlalchemy import Connection

from annals.commands.store.database import sql
from annals.commands.store.hashes import LogRow
from annals.commands.store.mapper import EventMapper
from annals.commands.verify.archived_states import ArchivedStates, unchecked_event
from annals.commands.verify.unchecked_rows import unchecked_row
from annals.commands.verify.verify_log import VerificationFinding
from annals.domain.compat.legacy_apis import FACADE, LEGACY_APIS, legacy_api_of
from annals.domain.compat.publications import fold_publications
from annals.domain.confluent.facts import CONFLUENT
from annals.domain.confluent.schema_versions import fold_schema_versions
from annals.domain.confluent.subjects import VERSIONS_TYPE
from annals.domain.registry.events import EntityDeleted
from annals.domain.values import xid as xids
from annals.projections.database import drivers
from annals.projections.entities.rows import PUBLICATION_COLUMNS, publication_row
from annals.projections.entities.schema_version_rows import SCHEMA_VERSION_COLUMNS, schema_version_row

_EVENT_COLUMNS: Final = ", ".join(LogRow._fields)
_SELECT_EVENTS: Final = (
    f"SELECT {_EVENT_COLUMNS} FROM log WHERE (stream, revision) > (?, ?) AND stream < ? ORDER BY stream,"
    " revision LIMIT ?"
)
#: The columns of the tables. The first is the tree key, the second the position by which its rows are in order.
_TABLES: Final = {"published": PUBLICATION_COLUMNS, "schema_version": SCHEMA_VERSION_COLUMNS}
#: The streams whose rows are read together.
_STREAM_BATCH: Final = 500
#: The number of slashes in the stream of a Version.
_VERSION_DEPTH: Final = 6
_DELETED_TOPIC: Final = EntityDeleted.TOPIC.partition(":")[0]
_MEMBERS: Final = tuple(b'"%b":' % name.encode() for name in (FACADE, CONFLUENT))


def verify_published_versions(
    connection: Connection, mapper: EventMapper, log_end: int, archived: ArchivedStates
) -> Iterator[VerificationFinding]:
    """Each stream whose rows do not match its events, and rows without a stream. log_end: position of the log's end.

    Reads, once and in pages, every event of what the legacy APIs show; nothing if the archive cannot be read.
    """
    if archived.failures or archived.damage:
        return
    counts = dict.fromkeys(_TABLES, 0)
    streams = _version_streams(connection, archived)
    while batch := [*islice(streams, _STREAM_BATCH)]:
        stored = {table: _stored_rows(connection, table, [stream for stream, _ in batch]) for table in _TABLES}
        for stream, rows in batch:
            for table, expected in _expected_rows(rows, mapper).items():
                counts[table] += len(expected)
                if stored[table].get(xids.tree_key(stream), []) != expected:
                    yield VerificationFinding(log_end, f"what is published of {stream} is not what the log results in")
    for table, expected_count in counts.items():
        stored_count = sql.scalar(connection, f"SELECT count(*) FROM {table}")
        if stored_count != expected_count:
            yield VerificationFinding(
                log_end,
                f"the read model has {stored_count} rows of published versions in the table {table}, but the log"
                f" results in {expected_count}",
            )


def _version_streams(connection: Connection, archived: ArchivedStates) -> Iterator[tuple[str, list[LogRow]]]:
    """The streams of Versions with their events, if these can affect publications."""
    for stream, rows in groupby(_version_rows(connection, archived), key=lambda row: row.stream):
        stream_rows = list(rows)
        if any(_can_affect_publications(row) for row in stream_rows):
            yield stream, stream_rows


def _stored_rows(connection: Connection, table: str, streams: Iterable[str]) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of some streams by tree key, in their order."""
    db, columns = drivers.database_of(connection), _TABLES[table]
    select = f"SELECT {', '.join(columns)} FROM {table} WHERE {db.in_list('tree_key')} ORDER BY {columns[1]}"
    found: dict[str, list[tuple[Any, ...]]] = {}
    for row in db.all(select, (db.list_parameter(map(xids.tree_key, streams)),)):
        found.setdefault(row[0], []).append(tuple(row))
    return found


def _version_rows(connection: Connection, archived: ArchivedStates) -> Iterator[LogRow]:
    for family in LEGACY_APIS:
        stream, revision = f"/{family.groups}/", 0
        while page := sql.run(
            connection, _SELECT_EVENTS, (stream, revision, f"/{family.groups}0", sql.CHUNK)
        ).fetchall():
            rows = [unchecked_row(LogRow, row) for row in page]
            yield from (unchecked_event(row, archived) for row in rows if _is_version(row.stream))
            if (rows[-1].stream, rows[-1].revision) <= (stream, revision):
                return  # a damaged key may repeat endlessly
            stream, revision = rows[-1].stream, rows[-1].revision


def _is_version(stream: str) -> bool:
    """Whether a stream is that of a Version that a legacy API shows; its Groups may have Resources of other types."""
    return stream.count("/") == _VERSION_DEPTH and legacy_api_of(stream) is not None


def _can_affect_publications(row: LogRow) -> bool:
    return row.topic.partition(":")[0] == _DELETED_TOPIC or any(member in row.state for member in _MEMBERS)


def _expected_rows(rows: Sequence[LogRow], mapper: EventMapper) -> dict[str, list[tuple[Any, ...]]]:
    """The expected rows of a stream by table; none if an event cannot be read, which another check reports."""
    try:
        events = [(row.position, mapper.event_of_row(row)) for row in rows]
    except (ValueError, KeyError, TypeError):
        return {}
    schemas = fold_schema_versions(events) if events[0][1].type == VERSIONS_TYPE else []
    expected = {
        "published": [tuple(publication_row(publication)) for publication in fold_publications(events)],
        "schema_version": [tuple(schema_version_row(version)) for version in schemas],
    }
    return {table: sorted(found, key=lambda values: int(values[1])) for table, found in expected.items()}
