"""Reads the documents of many rows together.

A document of its own statement costs a round trip on PostgreSQL, which is several times the cost of finding it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from annals.domain.values.batched import batched
from annals.projections.entities.filters.selection import BATCH_MEMBERS
from annals.projections.entities.rows import EntityRow
from annals.projections.entities.view import View


class DocumentBatches:
    """The documents of the rows of one response."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._unread: frozenset[str] = frozenset()
        self._contents: Mapping[str, bytes] = {}

    def read_ahead(self, rows: Iterable[EntityRow]) -> Iterator[EntityRow]:
        """The same rows, with a batch of them in memory."""
        for batch in batched(rows, BATCH_MEMBERS):
            self._unread = frozenset(row.document for row in batch if row.document)
            yield from batch

    def read(self, sha256: str) -> bytes:
        """The document of one of the last rows. The first call in a batch of rows reads all small documents of these.

        Raises: MissingDocument.
        """
        if sha256 in self._unread and sha256 not in self._contents:
            self._contents, self._unread = self._view.small_documents(self._unread), frozenset()
        content = self._contents.get(sha256)
        return self._view.document(sha256) if content is None else content
