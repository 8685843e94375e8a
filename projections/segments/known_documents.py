"""Which documents segments have already: a set of any size, on disk, gone with its process."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator

from projections.log.documents import referenced_document
from projections.log.table_rows import LogTableRow, log_row


def document_hash_of(row: LogTableRow) -> str | None:
    """The hash of the document that an event refers to.

    Raises: UnreadableEvent.
    """
    # Most rows have none, and need not become rows of the log to say so.
    return referenced_document(log_row(row)) if '"document":' in row.state else None


class KnownDocuments:
    """Hashes of documents: those of earlier segments, and those that the segment at hand refers to."""

    def __init__(self) -> None:
        # A file without a name: SQLite keeps it in memory while it is small, and the system removes it.
        self._db = sqlite3.connect("", isolation_level=None)
        for statement in ("PRAGMA journal_mode = OFF", "PRAGMA synchronous = OFF"):
            self._db.execute(statement)
        self._db.execute("CREATE TABLE seen (sha256 TEXT PRIMARY KEY) WITHOUT ROWID")
        self._db.execute("CREATE TABLE wanted (sha256 TEXT PRIMARY KEY, position INTEGER) WITHOUT ROWID")

    def __contains__(self, digest: str) -> bool:
        """Whether an earlier segment has it."""
        return self._db.execute("SELECT 1 FROM seen WHERE sha256 = ?", (digest,)).fetchone() is not None

    def add(self, digests: Iterable[str]) -> None:
        """Takes in those of an earlier segment."""
        self._db.executemany("INSERT OR IGNORE INTO seen VALUES (?)", ((digest,) for digest in digests))

    def want(self, digest: str, position: int) -> None:
        """Takes in one that the segment at hand refers to, at a position."""
        self._db.execute("INSERT OR IGNORE INTO wanted VALUES (?, ?)", (digest, position))

    def wanted(self) -> bool:
        """Whether the segment at hand refers to any."""
        return self._db.execute("SELECT 1 FROM wanted LIMIT 1").fetchone() is not None

    def fresh(self) -> Iterator[tuple[str, int]]:
        """Those that it refers to and no earlier one has, sorted, and where it first does."""
        return self._db.execute(
            "SELECT sha256, position FROM wanted w WHERE NOT EXISTS (SELECT 1 FROM seen s WHERE s.sha256 = w.sha256)"
            " ORDER BY sha256"
        )

    def settle(self) -> None:
        """The segment at hand becomes an earlier one."""
        self._db.execute("INSERT OR IGNORE INTO seen SELECT sha256 FROM wanted")
        self._db.execute("DELETE FROM wanted")

    def close(self) -> None:
        """Gives the file back."""
        self._db.close()
