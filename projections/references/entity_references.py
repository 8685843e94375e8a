"""The references of entities, and those that lead to them, now or as of a moment.

Both directions are computed from the entities that have the references, so they always agree. Those that lead to an
entity are found by the table `reference`, see `annals.projections.entities.references`. A hidden entity is as if it did
not exist: it has no references, and those that lead to it are dangling (ACC-71).
Rule UI-77.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from typing import Any

from annals.domain.messaging.findings.finding import is_xid
from annals.domain.messaging.findings.payloads import schema_candidates
from annals.domain.model import Model
from annals.domain.model.references import reference_values
from annals.domain.values import dot_path
from annals.domain.values import xid as xids
from annals.domain.values.json_text import loads_trusted
from annals.projections.entities.references import is_default_version
from annals.projections.entities.rows import EntityRow
from annals.projections.entities.view import View
from annals.projections.references.reference import Reference, ReferenceState
from annals.projections.references.schema_references import SchemaReferences

_DETAILS = "$details"
_META = "/meta"


class EntityReferences:
    """The references of one moment. view: as the reader sees it. model: of the moment. schemas: those between schemas.

    All iterators are in the order of the tree keys of `Reference.source`, and continue after a given key.
    """

    def __init__(self, view: View, model: Model, schemas: SchemaReferences) -> None:
        self._view = view
        self._model = model
        self._schemas = schemas
        self._exists: dict[str, bool] = {}

    def outgoing(self, xid: str, after_key: str = "", *, below: bool = False) -> Iterator[Reference]:
        """The references that an entity has; a Resource has those of its Versions.

        below: also of everything below it. after_key: only of entities from this tree key on.
        """
        own_row = self._view.entity(xid)
        if own_row is not None and own_row.tree_key >= after_key:
            yield from self._references_of(own_row)
        if below or _is_resource(xid):
            rows = self._view.subtree(xid)
            others = (row for row in rows if row.tree_key >= after_key and not is_default_version(row))
            for row in others:
                yield from self._references_of(row)

    def incoming(self, xid: str, after_key: str = "", *, below: bool = False) -> Iterator[Reference]:
        """The references that lead to an entity; to a Resource also those to its Versions.

        below: also those to everything below it. after_key: only of entities from this tree key on.
        """
        has_more = below or _is_resource(xid)

        def leads_here(reference: Reference) -> bool:
            target = reference.target
            return reference.state is ReferenceState.RESOLVED and (
                target == xid or (has_more and target.startswith(f"{xid.rstrip('/')}/"))
            )

        named = (
            reference
            for row in self._view.references.rows(xid, after_key, below=has_more)
            for reference in self._references_by_name(row)
        )
        of_schemas = (
            reference
            for reference in self._schemas.incoming(xid, below=has_more)
            if xids.tree_key(reference.source) >= after_key
        )
        yield from filter(leads_here, heapq.merge(named, of_schemas, key=_source_key))

    def exists(self, xid: str) -> bool:
        """Whether the reader sees an entity with exactly this xid."""
        if xid not in self._exists:
            self._exists[xid] = is_xid(xid) and self._view.resolved_entity(xid) is not None
        return self._exists[xid]

    def _references_of(self, row: EntityRow) -> Iterator[Reference]:
        yield from self._references_by_name(row)
        yield from self._schemas.outgoing(row)

    def _references_by_name(self, row: EntityRow) -> Iterator[Reference]:
        """The references that are values of attributes."""
        attributes: dict[str, Any] = loads_trusted(row.attributes)
        source = xids.resource_of(row.xid) if is_default_version(row) else row.xid
        for path, uri in reference_values(self._model, row.type, attributes):
            # A path of one segment names a collection, or what belongs to the registry as a whole.
            if not uri.startswith("/") or uri.startswith("//"):
                yield Reference(source, uri, dot_path.text(path), ReferenceState.EXTERNAL)
            elif uri.count("/") > 1:
                target = next(filter(self.exists, target_candidates(uri)), None)
                state = ReferenceState.DANGLING if target is None else ReferenceState.RESOLVED
                yield Reference(source, target or uri, dot_path.text(path), state)


def target_candidates(uri: str) -> Iterator[str]:
    """The xids that a reference within this registry may mean, the best one first.

    What follows an xid, as `#Name`, `:Name` or `$details`, names a part or a form of the entity (SC-20).
    """
    if uri.startswith("/schemagroups/"):
        yield from (xid for xid, _ in schema_candidates(uri))
    path = uri.partition("#")[0].removesuffix(_DETAILS)
    yield path.removesuffix(_META) if path.count("/") == 5 else path


def _is_resource(xid: str) -> bool:
    return len(xids.segments(xid)) == 4


def _source_key(reference: Reference) -> str:
    return xids.tree_key(reference.source)
