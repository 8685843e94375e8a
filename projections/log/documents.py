"""Documents by their hash: their bytes, and the entities they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from annals.commands.store.compression.document_compression import decompress_document
from annals.commands.store.hashes import LogRow
from annals.commands.store.mapper import EventMapper
from annals.domain.compat.legacy_apis import document_hash
from annals.projections.database.drivers import Database

_SELECT_BYTES: Final = "SELECT bytes FROM document WHERE sha256 = ?"
_HAS_REFERENCE: Final = (
    "SELECT 1 FROM (SELECT tree_key, document FROM entity"
    " UNION ALL SELECT tree_key, document FROM entity_history) AS every"
    " WHERE {} AND document = ? LIMIT 1"
)
_MAPPER: Final = EventMapper()


def referenced_document(row: LogRow) -> str | None:
    """The hash of the document that a stored event refers to; None for most, which have none.

    Raises: UnreadableEvent.
    """
    if b'"document":' not in row.state:  # parsing every event takes many times as long
        return None
    return document_hash(_MAPPER.event_of_row(row).private)


def document_bytes(db: Database, sha256: str) -> bytes | None:
    """The bytes of a document; None if it does not exist."""
    row = db.one(_SELECT_BYTES, (sha256,))
    return None if row is None else decompress_document(sha256, row[0])


def document_content(sha256: str, stored: bytes) -> bytes:
    """The bytes of a document, from the value of the database's column. Raises: an error for a damaged one."""
    return decompress_document(sha256, stored)


def is_document_among(db: Database, sha256: str, condition: str, values: Sequence[Any]) -> bool:
    """Whether one of some live or past entities has or had a document. condition: of SQL, on the column `tree_key`.

    Cost: O(entities there, including past ones).
    """
    return db.one(_HAS_REFERENCE.format(condition), (*values, sha256)) is not None
