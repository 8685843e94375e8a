"""Reading the REST read model.

A View is one consistent look through one connection: all that it returns belongs to one position of the log.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager

from projections.entities.rows import Row


class View:
    """The read model as of one moment, over a DB-API connection (SQLite or PostgreSQL)."""

    def definitions(self) -> tuple[int, int]:
        """Positions of the last events of the model and of the capabilities: what a cache of them checks first."""
        raise NotImplementedError

    def entity(self, xid: str) -> Row | None:
        """The live entity with exactly this xid, letter case included. One look-up by primary key."""
        raise NotImplementedError

    def entities(self, xids: Sequence[str]) -> list[Row]:
        """Those of the named entities that live, in the order asked for."""
        raise NotImplementedError

    def subtree(self, xid: str, types: Collection[str] | None = None) -> Iterator[Row]:
        """The entities below an entity or collection, itself left out, in tree order, streamed; of some types only."""
        raise NotImplementedError

    def document(self, sha256: str) -> bytes:
        """The bytes of a document. Raises: KeyError when it is not stored."""
        raise NotImplementedError


class Readers:
    """Views for readers outside the write transaction.

    `view()` gives one in a read transaction of its own (a snapshot) and takes it back at the end; `quick()` gives the
    calling thread's own long-lived connection for single look-ups, each of which sees the latest commit.
    """

    def view(self) -> AbstractContextManager[View]:
        raise NotImplementedError

    def quick(self) -> View:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError
