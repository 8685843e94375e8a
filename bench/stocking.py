"""A store that takes its log over from segments: rows as they lie there, without deciding anything again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final, TypeVar

import orjson

from annals.commands.store import hashes
from annals.commands.store.compression.document_compression import compress_document
from annals.commands.store.compression.state_compression import compress_state
from annals.commands.store.database import sql, tables
from annals.commands.store.hashes import LogRow
from annals.commands.store.log import Store
from annals.domain.registry.events import EntityDeleted
from annals.domain.values import xid as xids
from annals.projections.log.table_rows import LogTableRow, interaction_of, log_row
from annals.projections.segments import read
from annals.projections.segments.folder import SegmentFolder

T = TypeVar("T")

#: Rows of one transaction.
_TOGETHER: Final = 10_000
_MOVE: Final = (
    "ON CONFLICT (tree_key) DO UPDATE SET position = excluded.position, revision = excluded.revision,"
    " xid = excluded.xid, live = excluded.live, hash = excluded.hash"
)


def stock(store: Store, folder: SegmentFolder) -> None:
    """Puts the log of segments, with its documents, into an empty store. No Resource in it may stand for another.

    The read model is left alone; `annals.projections.entities.rebuild.rebuild` makes it.
    """
    store.create()
    for some in _batches(read.documents(folder)):
        with store.writing() as tx:
            sql.insert(tx.connection, tables.document, [(name, compress_document(content)) for name, content in some])
    for rows in _batches(read.rows(folder)):
        ended = [interaction_of(row) for row in rows if row.position == row.last]
        with store.writing() as tx:
            sql.insert(tx.connection, tables.log, [_stored(log_row(row)) for row in rows])
            sql.insert(tx.connection, tables.interaction, ended)
            sql.insert(tx.connection, tables.head, list(_heads(rows)), _MOVE)


def _stored(row: LogRow) -> LogRow:
    """A row as the table has it."""
    return row._replace(state=compress_state(row.state))


def _heads(rows: Iterable[LogTableRow]) -> Iterator[tuple[Any, ...]]:
    """Where the streams of some rows stand behind them."""
    for row in {row.stream: row for row in rows}.values():
        state = row.state.encode()
        members = orjson.loads(state)
        live = row.topic != EntityDeleted.TOPIC
        hash = hashes.entity_hash(hashes.extract_image(state)) if live else b""
        key = xids.tree_key(row.stream)
        yield key, row.position, row.revision, members["xid"], members["type"], live, hash, None


def _batches(items: Iterable[T]) -> Iterator[list[T]]:
    left = iter(items)
    while some := list(islice(left, _TOGETHER)):
        yield some
