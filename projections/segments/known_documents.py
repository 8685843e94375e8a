"""The documents that segments already contain: a set of any size, in a temporary file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator

from annals.projections.log.documents import referenced_document
from annals.projections.log.table_rows import LogTableRow, log_row


def document_hash_of(row: LogTableRow) -> str | None:
    """The hash of the document that an event refers to.

    Raises: UnreadableEvent.
    """
    # Most rows have none, so they are not converted to rows of the log.
    return referenced_document(log_row(row)) if '"document":' in row.state else None


class KnownDocuments:
    """Hashes of documents: those of earlier segments, and those that the current segment refers to."""

    def __init__(self) -> None:
        # An unnamed file: SQLite keeps it in memory while it is small, and the system removes it.
        self._db = sqlite3.connect("", isolation_level=None)
        for statement in ("PRAGMA journal_mode = OFF", "PRAGMA synchronous = OFF"):
            self._db.execute(statement)
        self._db.execute("CREATE TABLE seen (sha256 TEXT PRIMARY KEY) WITHOUT ROWID")
        self._db.execute("CREATE TABLE wanted (sha256 TEXT PRIMARY KEY, position INTEGER) WITHOUT ROWID")

    def __contains__(self, digest: str) -> bool:
        """Whether an earlier segment has it."""
        return self._db.execute("SELECT 1 FROM seen WHERE sha256 = ?", (digest,)).fetchone() is not None

    def add(self, digests: Iterable[str]) -> None:
        """Adds hashes of an earlier segment."""
        self._db.executemany("INSERT OR IGNORE INTO seen VALUES (?)", ((digest,) for digest in digests))

    def add_reference(self, digest: str, position: int) -> None:
        """Adds a hash that the current segment refers to at a position."""
        self._db.execute("INSERT OR IGNORE INTO wanted VALUES (?, ?)", (digest, position))

    def has_references(self) -> bool:
        """Whether the current segment refers to any document."""
        return self._db.execute("SELECT 1 FROM wanted LIMIT 1").fetchone() is not None

    def new_references(self) -> Iterator[tuple[str, int]]:
        """Hashes that the current segment refers to and no earlier one has, sorted, with the first position of each."""
        return self._db.execute(
            "SELECT sha256, position FROM wanted w WHERE NOT EXISTS (SELECT 1 FROM seen s WHERE s.sha256 = w.sha256)"
            " ORDER BY sha256"
        )

    def merge_references(self) -> None:
        """Turns the current segment into an earlier one."""
        self._db.execute("INSERT OR IGNORE INTO seen SELECT sha256 FROM wanted")
        self._db.execute("DELETE FROM wanted")

    def close(self) -> None:
        """Closes the file."""
        self._db.close()
