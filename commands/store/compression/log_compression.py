"""Compresses the states and documents that older programs have stored as they are, while the registry is in use.

It goes from the newest state to the oldest, and through documents by their hashes: a batch in each transaction, which
also records the progress. The next run continues an interrupted one, and several at once share the work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeVar

from sqlalchemy import Connection

from annals.commands.store.compression.document_compression import MAX_PLAIN, compress_document, decompress_document
from annals.commands.store.compression.state_compression import compress_state, decompress_state
from annals.commands.store.database import sql
from annals.commands.store.database.migrations import PLAIN_DOCUMENTS_AFTER, PLAIN_UNTIL
from annals.commands.store.log import Store
from annals.commands.store.mapper import UnreadableEvent

Key = TypeVar("Key", str, int)

#: Called with the number of finished events and of all.
ProgressCallback = Callable[[int, int], None]

#: The maximum events of a transaction; writers wait some ten milliseconds for one.
BATCH: Final = 500
#: The maximum documents of a transaction, which are larger.
DOCUMENT_BATCH: Final = 20

_SELECT_SETTING: Final = "SELECT value FROM store WHERE key = ?"
_SET_SETTING: Final = "UPDATE store SET value = ? WHERE key = ?"
_DELETE_SETTING: Final = "DELETE FROM store WHERE key = ?"
_STATE_SIZES: Final = (
    "SELECT position, length(state) FROM log WHERE position > ? AND position <= ? ORDER BY position DESC"
)
_SELECT_STATES: Final = "SELECT position, state FROM log WHERE position > ? AND position <= ?"
_UPDATE_STATE: Final = "UPDATE log SET state = ? WHERE position = ?"
_UPDATE_STATES: Final = (
    "UPDATE log SET state = compressed.state FROM unnest(%b::bytea[], %b::bigint[]) AS compressed (state, position)"
    " WHERE log.position = compressed.position"
)
_PLAIN_DOCUMENTS: Final = f"FROM document WHERE sha256 > ? AND length(bytes) > {MAX_PLAIN}"
_COUNT_DOCUMENTS: Final = f"SELECT count(*) {_PLAIN_DOCUMENTS}"
_DOCUMENT_SIZES: Final = f"SELECT sha256, length(bytes) {_PLAIN_DOCUMENTS} ORDER BY sha256 LIMIT ?"
_SELECT_DOCUMENTS: Final = "SELECT sha256, bytes FROM document WHERE sha256 {among}"
_UPDATE_DOCUMENT: Final = "UPDATE document SET bytes = ? WHERE sha256 = ?"


class CompressionReport(NamedTuple):
    """What was compressed: the number of states or documents, and their bytes before and after."""

    compressed: int = 0
    before: int = 0
    after: int = 0


def compress_log(
    store: Store,
    progress: ProgressCallback = lambda done, total: None,
    batch: int = BATCH,
    max_bytes: int = sql.MAX_BLOB_BYTES,
) -> CompressionReport:
    """Compresses the states that are still plain; the hashes of the log stay as they are.

    batch, max_bytes: the maximum events of a transaction, and of bytes unless a single state has more.
    """
    report, total = CompressionReport(), 0
    while True:
        with store.writing() as transaction:
            connection = transaction.connection
            until = _plain_until(connection)
            if not until:
                return report
            total = total or until
            start = _batch_start(connection, until, batch, max_bytes)
            report = _compress_states(connection, start, until, report)
            if start:
                sql.run(connection, _SET_SETTING, (str(start), PLAIN_UNTIL))
            else:
                sql.run(connection, _DELETE_SETTING, (PLAIN_UNTIL,))
        progress(total - start, total)


def compress_documents(
    store: Store,
    progress: ProgressCallback = lambda done, total: None,
    batch: int = DOCUMENT_BATCH,
    max_bytes: int = sql.MAX_BLOB_BYTES,
) -> CompressionReport:
    """Compresses the documents that are still plain. batch, max_bytes: as in `compress_log`, of documents."""
    report, done, total = CompressionReport(), 0, 0
    while True:
        with store.writing() as transaction:
            connection = transaction.connection
            start = sql.scalar(connection, _SELECT_SETTING, (PLAIN_DOCUMENTS_AFTER,))
            if start is None:
                return report
            total = total or sql.scalar(connection, _COUNT_DOCUMENTS, (start,))
            sizes = sql.run(connection, _DOCUMENT_SIZES, (start, batch)).fetchall()
            hashes = _first_within(max_bytes, sizes)
            report = _compress_documents(connection, hashes, report)
            if len(hashes) == batch or len(hashes) < len(sizes):
                sql.run(connection, _SET_SETTING, (hashes[-1], PLAIN_DOCUMENTS_AFTER))
            else:
                sql.run(connection, _DELETE_SETTING, (PLAIN_DOCUMENTS_AFTER,))
        done += len(hashes)
        progress(done, max(done, total))


def _first_within(max_bytes: int, sizes: Sequence[tuple[Key, int]]) -> list[Key]:
    """The first keys of values that have at most so many bytes together; at least one key, if there are any."""
    keys, total = list[Key](), 0
    for key, size in sizes:
        total += size
        if keys and total > max_bytes:
            break
        keys.append(key)
    return keys


def _compress_documents(connection: Connection, hashes: Sequence[str], report: CompressionReport) -> CompressionReport:
    """Compresses some documents. Returns the grown report."""
    hash_list = sql.list_parameter(connection, hashes)
    for sha256, stored in sql.run(connection, _SELECT_DOCUMENTS, (hash_list,)).fetchall():
        try:
            content = decompress_document(sha256, stored)
        except UnreadableEvent:  # left as it is, so that a verification still shows what is there
            continue
        frame = compress_document(content)
        if len(frame) < len(stored) and decompress_document(sha256, frame) == content:
            sql.run(connection, _UPDATE_DOCUMENT, (frame, sha256))
            report = CompressionReport(report.compressed + 1, report.before + len(stored), report.after + len(frame))
    return report


def _plain_until(connection: Connection) -> int:
    """The last position that may be plain; 0 when none is."""
    return int(sql.scalar(connection, _SELECT_SETTING, (PLAIN_UNTIL,)) or 0)


def _batch_start(connection: Connection, until: int, batch: int, max_bytes: int) -> int:
    """The position before the events of a batch that ends at a position."""
    start = max(0, until - batch)
    sizes = sql.run(connection, _STATE_SIZES, (start, until)).fetchall()
    positions = _first_within(max_bytes, sizes)
    return positions[-1] - 1 if len(positions) < len(sizes) else start


def _compress_states(connection: Connection, start: int, until: int, report: CompressionReport) -> CompressionReport:
    """Compresses the events after a position up to another one. Returns the grown report."""
    changes, before = [], 0
    for position, stored in sql.run(connection, _SELECT_STATES, (start, until)).fetchall():
        if (frame := _shorter_form(stored)) is not None:
            changes.append((frame, position))
            before += len(stored)
    update_states(connection, changes)
    after = sum(len(frame) for frame, _ in changes)
    return CompressionReport(report.compressed + len(changes), report.before + before, report.after + after)


def _shorter_form(stored: Any) -> bytes | None:
    """The compressed form of a stored state; None if it is as short already, or damaged."""
    try:
        state = decompress_state(stored)
        frame = compress_state(state)
        is_better = len(frame) < len(stored) and decompress_state(frame) == state
    except UnreadableEvent:  # left as it is, so that a verification still shows what is there
        return None
    return frame if is_better else None


def update_states(connection: Connection, changes: Sequence[tuple[bytes, int]]) -> None:
    """Replaces the stored states at some positions."""
    driver: Any = connection.connection.driver_connection
    if connection.dialect.name == "sqlite":
        driver.executemany(_UPDATE_STATE, changes)
    elif changes:
        driver.execute(_UPDATE_STATES, [list(column) for column in zip(*changes, strict=True)])
