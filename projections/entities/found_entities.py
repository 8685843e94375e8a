"""What a look-up of one entity finds, by one statement for all that an answer needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from annals.domain.values.xid import CAPABILITIES, MODEL, tree_key
from annals.projections.entities.collection_stream import ENTITY_SINCE
from annals.projections.entities.entity_documents import document_content
from annals.projections.entities.rows import ROW_COLUMNS, EntityRow, stored_row
from annals.projections.log.positions import checked_position

ROW_WIDTH: Final = len(ROW_COLUMNS)
#: Columns with the positions of the last events of the model and of the capabilities.
DEFINITIONS: Final = ", ".join(ENTITY_SINCE.format(tree_key(name)) for name in (MODEL, CAPABILITIES))
#: A column with the position of the read model.
POSITION: Final = "(SELECT position FROM projection WHERE name = 'entities')"
#: Statements for `found_entity`.
WITH_DEFINITIONS: Final = (
    f"SELECT entity.*, {DEFINITIONS}, {POSITION} FROM (SELECT 1) AS always LEFT JOIN entity ON entity.tree_key = ?"
)
WITH_DOCUMENT: Final = (
    f"SELECT entity.*, {DEFINITIONS}, {POSITION}, document.bytes FROM (SELECT 1) AS always"
    " LEFT JOIN entity ON entity.tree_key = ? LEFT JOIN document ON document.sha256 = entity.document"
)
#: `WITH_DEFINITIONS` and `WITH_DOCUMENT` for the keys of a `Database.list_table`; the key comes first.
MANY_WITH_DEFINITIONS: Final = (
    f"SELECT k.key, entity.*, {DEFINITIONS}, {POSITION} FROM {{}} AS k LEFT JOIN entity ON entity.tree_key = k.key"
)
MANY_WITH_DOCUMENTS: Final = (
    f"SELECT k.key, entity.*, {DEFINITIONS}, {POSITION}, document.bytes FROM {{}} AS k"
    " LEFT JOIN entity ON entity.tree_key = k.key LEFT JOIN document ON document.sha256 = entity.document"
)


class FoundEntity(NamedTuple):
    """An entity, or None; the positions of the model and the capabilities (see `View.definitions`); its document.

    position: of the state in which it was found. content: empty if the entity has no document, or if it was not wanted.
    """

    row: EntityRow | None
    definitions: tuple[int, int]
    position: int
    content: bytes = b""


def found_entity(values: Sequence[Any], xid: str) -> FoundEntity:
    """The look-up with some values: the columns of a row, three positions, and the document if it was wanted.

    Raises: MissingDocument.
    """
    row = exact_row(values[:ROW_WIDTH], xid)
    model, capabilities, position, *contents = values[ROW_WIDTH:]
    content = document_content(row, contents[0]) if contents else b""
    return FoundEntity(row, (model or 0, capabilities or 0), checked_position(position or 0), content)


def exact_row(values: Any, xid: str) -> EntityRow | None:
    """The row with some values; None if there are none, or if its xid differs in letter case."""
    return stored_row(values) if values is not None and values[1] == xid else None
