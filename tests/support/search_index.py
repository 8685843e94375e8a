"""The search index of a store without a server, and the expected results, by a scan of all entities."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from annals.commands.documents.document_checker import DocumentChecker
from annals.domain.decisions.checks.document_checks import FormatCheck, parse_document
from annals.domain.formats import InvalidDocument, find_format
from annals.domain.formats.fields import SchemaField, schema_fields
from annals.domain.search.matching import ResultKey, rank
from annals.domain.search.query import Query
from annals.domain.search.texts import SearchedEntity, is_searched, searched_entity
from annals.domain.values import xid as xids
from annals.domain.values.json_text import loads_trusted
from annals.projections.database.state_database import StateDatabase
from annals.projections.entities.rows import EntityRow
from annals.projections.entities.view import View
from annals.projections.entities.view_pool import ViewPool
from annals.projections.search.index_writer import IndexWriter


@contextmanager
def index_writer(url: str) -> Iterator[IndexWriter]:
    """The index writer of a database whose tables exist."""
    checker = DocumentChecker()
    with closing(ViewPool(url)) as readers, closing(StateDatabase(url)) as store:
        try:
            yield IndexWriter(readers, store, checker.check)
        finally:
            checker.stop()


def catch_up(url: str) -> None:
    """Updates the index of a database to the end of the log."""
    with index_writer(url) as writer:
        write_pending(writer)


def write_pending(writer: IndexWriter) -> None:
    """Writes and merges blocks until none is left to write or merge."""
    while writer.catch_up() or writer.merge():
        pass


def scan(view: View, query: Query, all_versions: bool = False) -> list[ResultKey]:
    """The keys of the entities that match a query, in order, found by a scan of all entities of a view."""
    keys = []
    for entity in _entities(view):
        if all_versions or not entity.is_version:
            found = rank(query, entity)
            if found is not None:
                keys.append(ResultKey(found, xids.tree_key(entity.xid)))
    return sorted(keys)


def _entities(view: View) -> Iterator[SearchedEntity]:
    for row in view.subtree(xids.REGISTRY):
        attributes = loads_trusted(row.attributes)
        if is_searched(row.type, attributes):
            yield searched_entity(row.xid, row.type, attributes, _fields(view, row, attributes.get("format")))


def _fields(view: View, row: EntityRow, format: str | None) -> list[SchemaField]:
    if not row.document or format is None or find_format(format) is None:
        return []
    try:
        parsed = parse_document(FormatCheck(format.lower(), row.document), view.document(row.document))
    except InvalidDocument:
        return []
    return list(schema_fields(format, parsed))
