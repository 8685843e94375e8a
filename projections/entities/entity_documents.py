"""Reads documents of entities."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from annals.commands.store.compression.document_compression import decompress_document, document_size
from annals.commands.store.mapper import UnreadableEvent
from annals.projections.database.drivers import Database
from annals.projections.entities.rows import EntityRow

_SELECT_DOCUMENT: Final = "SELECT bytes FROM document WHERE sha256 = ?"
#: Bytes up to which a document is small: many of them are held in memory together.
SMALL_DOCUMENT_BYTES: Final = 16 << 10
_SELECT_SMALL_DOCUMENTS: Final = (
    f"SELECT sha256, bytes FROM document WHERE {{}} AND length(bytes) <= {SMALL_DOCUMENT_BYTES}"
)


class MissingDocument(LookupError):
    """An entity refers to a document that the store does not have: the store was damaged."""


def read_document(db: Database, sha256: str) -> bytes:
    """The bytes of a document. Raises: MissingDocument."""
    row = db.look_up(_SELECT_DOCUMENT, (sha256,))
    if row is None:
        raise MissingDocument(sha256)
    return decompress_document(sha256, row[0])


def read_small_documents(db: Database, sha256s: Iterable[str]) -> dict[str, bytes]:
    """The bytes of those documents that are small, in one statement. Leaves out damaged and missing ones."""
    statement = _SELECT_SMALL_DOCUMENTS.format(db.in_list("sha256"))
    return dict(_readable_documents(db.all(statement, (db.list_parameter(sha256s),))))


def document_content(row: EntityRow | None, content: Any) -> bytes:
    """The bytes of a row's document, empty if it has none. Raises: MissingDocument."""
    if row is not None and row.document is not None and content is None:
        raise MissingDocument(row.document)
    return b"" if row is None or row.document is None else decompress_document(row.document, content)


def _readable_documents(rows: Iterable[Sequence[Any]]) -> Iterator[tuple[str, bytes]]:
    for sha256, stored in rows:
        try:
            if 0 <= document_size(stored) <= SMALL_DOCUMENT_BYTES:
                yield sha256, decompress_document(sha256, stored)
        except UnreadableEvent:
            continue
