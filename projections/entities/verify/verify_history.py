"""Verifies that the current and past rows of the read model match the log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from sqlalchemy import Connection

from annals.commands.store.database import sql
from annals.commands.store.hashes import LogRow
from annals.commands.store.log import Store
from annals.commands.store.mapper import EventMapper
from annals.commands.verify.archived_states import ArchivedStates, unchecked_event
from annals.commands.verify.unchecked_rows import catch_unreadable, open_snapshot
from annals.commands.verify.verify_log import ProgressCallback, VerificationFinding
from annals.domain.registry.events import EntityDeleted
from annals.domain.values import xid as xids
from annals.projections.entities.rows import ROW_COLUMNS, entity_row, stored_row
from annals.projections.entities.tables import tables
from annals.projections.entities.verify.verify_published_versions import verify_published_versions
from annals.projections.entities.verify.verify_references import ReferenceSum

_ROW_COLUMNS: Final = ", ".join(f"r.{name}" for name in ROW_COLUMNS)
_EVENT_COLUMNS: Final = ", ".join(f"l.{name}" for name in LogRow._fields)
_NEXT_POSITION: Final = "(SELECT n.position FROM log n WHERE n.stream = l.stream AND n.revision = l.revision + 1)"
#: A row, the position that replaced it, its event, and the position of the next event in its stream.
_SELECT_ROWS: Final = (
    f"SELECT {_ROW_COLUMNS}, {{until}}, {_EVENT_COLUMNS}, {_NEXT_POSITION} FROM {{table}} r LEFT JOIN log l"
    " ON l.position = r.since"
    " WHERE (r.tree_key, r.since) > (?, ?) ORDER BY r.tree_key, r.since LIMIT ?"
)
_CURRENT_ROWS: Final = _SELECT_ROWS.format(table="entity", until="NULL")
_PAST_ROWS: Final = _SELECT_ROWS.format(table="entity_history", until="r.until")
_IN_TREE: Final = "".join(f" AND NOT (stream >= '{start}' AND stream < '{start[:-1]}0')" for start in xids.OUTSIDE_TREE)
_DELETED_TOPIC: Final = EntityDeleted.TOPIC.partition(":")[0]
_SELECT_COUNTS: Final = (
    f"SELECT (SELECT count(*) FROM log WHERE substr(topic, 1, {len(_DELETED_TOPIC)}) <> '{_DELETED_TOPIC}'{_IN_TREE}),"
    " (SELECT count(*) FROM entity) + (SELECT count(*) FROM entity_history), coalesce(max(last), 0) FROM interaction"
)
_ROW_WIDTH: Final = len(ROW_COLUMNS)
_SINCE_INDEX: Final = ROW_COLUMNS.index("since")


def verify_history(
    store: Store,
    progress: ProgressCallback = lambda done, total: None,
    archived: ArchivedStates | None = None,
) -> Iterator[VerificationFinding]:
    """Each current or past row that does not match the event at its position, or that was replaced at another time.

    Reads, once and in pages, every event that is not a deletion. Does not check rows that another program has left:
    they are rebuilt before anyone reads them. progress: receives the number of rows after each page. archived: the
    states of the archive, if they were read already; rows whose events cannot be read there are not checked.
    """
    if archived is None:
        with ArchivedStates(store) as archived:
            yield from verify_history(store, progress, archived)
            return
    unreadable_messages, log_end, references = list[str](), 0, ReferenceSum()
    with open_snapshot(store) as connection, catch_unreadable(unreadable_messages.append):
        if not tables().exist(connection):
            return
        events, rows, log_end = sql.run(connection, _SELECT_COUNTS).fetchone()
        for done, row_values in enumerate(_all_rows(connection), 1):
            references.add(row_values[:_ROW_WIDTH], row_values[_ROW_WIDTH])
            if not _is_expected_row(row_values, store.mapper, archived):
                yield VerificationFinding(
                    _claimed_position(row_values, log_end),
                    f"the row of {row_values[0]!r} is not what the log results in",
                )
            if done % sql.CHUNK == 0 or done == rows:
                progress(done, rows)
        if events != rows:
            yield VerificationFinding(
                log_end, f"the read model has {rows} rows of present and past, but the log results in {events}"
            )
        if not references.is_sum_of_table(connection):
            yield VerificationFinding(log_end, "the table reference is not what the rows of the read model result in")
        yield from verify_published_versions(connection, store.mapper, log_end, archived)
    for message in unreadable_messages:
        yield VerificationFinding(log_end, f"the database cannot read the read model's rows: {message}")


def _all_rows(connection: Connection) -> Iterator[Sequence[Any]]:
    for statement in (_CURRENT_ROWS, _PAST_ROWS):
        yield from _read_rows(connection, statement)


def _read_rows(connection: Connection, statement: str) -> Iterator[Sequence[Any]]:
    key, since = "", 0
    while page := sql.run(connection, statement, (key, since, sql.CHUNK)).fetchall():
        yield from page
        if len(page) < sql.CHUNK or not _has_advanced(end := (page[-1][0], page[-1][_SINCE_INDEX]), (key, since)):
            return
        key, since = end


def _has_advanced(end_key: tuple[Any, Any], start_key: tuple[str, int]) -> bool:
    """Whether a page advanced the key: damaged rows could repeat endlessly."""
    return isinstance(end_key[0], str) and isinstance(end_key[1], int) and end_key > start_key


def _is_expected_row(row_values: Sequence[Any], mapper: EventMapper, archived: ArchivedStates) -> bool:
    row_columns, until, log_columns, next_position = (
        row_values[:_ROW_WIDTH],
        row_values[_ROW_WIDTH],
        row_values[_ROW_WIDTH + 1 : -1],
        row_values[-1],
    )
    if archived.is_lost(log_columns[0], log_columns[-1]):
        return True
    try:
        event = mapper.event_of_row(unchecked_event(log_columns, archived))
        row, expected_row = stored_row(row_columns), entity_row(event, log_columns[0])
    except (ValueError, KeyError, TypeError):
        return False
    return not isinstance(event, EntityDeleted) and row == expected_row and until == next_position


def _claimed_position(row_values: Sequence[Any], log_end: int) -> int:
    """The position that a row claims, if it is a valid one; else the last position."""
    since = row_values[_SINCE_INDEX]
    return since if isinstance(since, int) and 0 < since <= log_end else log_end
