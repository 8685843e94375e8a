"""Findings about the entities of the read model, computed at each read, so they are always current."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple

from annals.domain.messaging.findings import (
    MESSAGES,
    BaseChains,
    Finding,
    SchemaCheck,
    ValidatedEntity,
    entity_findings,
    kinds_by_type,
)
from annals.domain.model import Model
from annals.domain.values import xid as xids
from annals.domain.values.json_text import loads
from annals.projections.entities.rows import EntityRow
from annals.projections.entities.view import View
from annals.projections.entities.xref import RESOLVED_XREF, resource_types

#: The number of cached entities that others refer to: neighbours share their Groups and their bases.
CACHE_SIZE: Final = 256

Attributes = Mapping[str, Any]
Reads = Callable[[str], bool]


class FindingCursor(NamedTuple):
    """The finding to continue after: an entity, and the number of its findings already returned."""

    xid: str
    number: int


class LocatedFinding(NamedTuple):
    """A finding, and the cursor after it."""

    finding: Finding
    cursor: FindingCursor


class StoredEntities:
    """The entities of one moment: an `EntityLookup`.

    may_read: whether the caller may read an entity; to the caller, other entities do not exist.
    """

    def __init__(self, view: View, may_read: Reads) -> None:
        self._view = view
        self._may_read = may_read
        self._cache: dict[str, Attributes | None] = {}

    def get(self, xid: str) -> Attributes | None:
        """See `EntityLookup`."""
        if xid not in self._cache:
            if len(self._cache) >= CACHE_SIZE:
                self._cache.clear()
            self._cache[xid] = self._read(xid)
        return self._cache[xid]

    def members(self, collection: str) -> Collection[str]:
        """See `EntityLookup`."""
        if not self._may_read(collection):
            return ()
        return [row.xid for row in self._view.subtree(collection, {xids.type_of(collection)})]

    def _read(self, xid: str) -> Attributes | None:
        row = self._view.resolved_entity(xid) if self._may_read(xid) else None
        return _attributes_of_row(row) if row is not None else None


def read_findings(
    view: View, xid: str, model: Model, check: SchemaCheck, may_read: Reads, after: FindingCursor | None = None
) -> Iterator[LocatedFinding]:
    """The findings of an entity or collection and of everything below it, in tree order, streamed.

    A message has those of its default Version; its other Versions have their own. after: the cursor to continue from.
    Cost: reads every entity there that has rules, and those it refers to.
    """
    kinds = _kinds_with_versions(model)
    lookup, chains = StoredEntities(view, may_read), BaseChains()
    start_key = xids.tree_key(after.xid) if after else ""
    for row in _entity_rows(view, xid, model, kinds):
        attributes = _attributes_of_row(row) if row.tree_key >= start_key else None
        if attributes is None or (row.xid != xid and _is_duplicate(row, attributes)):
            continue
        skipped_count = after.number if after and row.tree_key == start_key else 0
        subject = ValidatedEntity(row.xid, attributes, lookup, check, chains)
        for number, finding in enumerate(entity_findings(kinds[row.type], subject), 1):
            if number > skipped_count:
                yield LocatedFinding(finding, FindingCursor(row.xid, number))


def _entity_rows(view: View, xid: str, model: Model, kinds: Mapping[str, str]) -> Iterator[EntityRow]:
    if xid == xids.REGISTRY:  # Groups of other types are not read
        for plural in sorted({type.partition(".")[0] for type in kinds}):
            of_plural = {type: kind for type, kind in kinds.items() if type.partition(".")[0] == plural}
            yield from _entity_rows(view, f"/{plural}", model, of_plural)
        return
    own_row = view.resolved_entity(xid) if len(xids.segments(xid)) % 2 == 0 else None
    if own_row is not None and own_row.type in kinds:
        yield own_row
    referencing_types = resource_types({type.partition(".")[0]: (MESSAGES,) for type in kinds if "." in type}, xid)
    yield from view.subtree_lister(xid, referencing_types)(
        xid, [type for type in kinds if not _is_only_version(type, model)]
    )


def _kinds_with_versions(model: Model) -> dict[str, str]:
    """The kind of each type that has rules, including Versions."""
    kinds = kinds_by_type(model)
    return kinds | {f"{type}.versions": kind for type, kind in kinds.items() if "." in type}


def _is_only_version(type: str, model: Model) -> bool:
    """Whether a type is that of Versions of which a Resource has only one, whose findings are the Resource's."""
    group, *child_names = type.split(".")
    return len(child_names) == 2 and model.groups[group].resources[child_names[0]].maxversions == 1


def _is_duplicate(row: EntityRow, attributes: Attributes) -> bool:
    """Whether a row repeats the Resource above it, or is shown through an xref."""
    return row.private == RESOLVED_XREF or (row.type.count(".") == 2 and attributes.get("isdefault") is True)


def _attributes_of_row(row: EntityRow) -> Attributes | None:
    """The attributes of a row; None for an xref without a target, which has nothing to check."""
    attributes: dict[str, Any] = loads(row.attributes)
    is_dangling = row.type.count(".") == 1 and "versionid" not in attributes
    return None if is_dangling else attributes
