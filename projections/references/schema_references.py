"""References between schemas as Confluent's API records them: a subject and a number each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from annals.domain.confluent.facts import facts_of, subject_name
from annals.domain.confluent.schema_registry import SchemaRegistry
from annals.domain.confluent.schema_versions import NamedReference, SchemaVersion
from annals.domain.confluent.subjects import GROUPS, RESOURCES, ContextIds, EntityMembers, group_xid, parse_subject
from annals.domain.values import xid as xids
from annals.domain.values.json_text import loads_trusted
from annals.projections.entities.rows import EntityRow
from annals.projections.entities.view import View
from annals.projections.references.reference import Reference, ReferenceState

_SCHEMA_TYPE: Final = f"{GROUPS}.{RESOURCES}"
_VERSION_TYPE: Final = f"{_SCHEMA_TYPE}.versions"


class SchemaReferences:
    """Those of one moment. view: as the reader sees it."""

    def __init__(self, view: View, context_ids: ContextIds) -> None:
        self._view = view
        self._registry = SchemaRegistry(view.schemas, self._find, context_ids)

    def outgoing(self, row: EntityRow) -> Iterator[Reference]:
        """The references of a schema's default Version, or of a Version."""
        version = self._version_of(row)
        for index, reference in enumerate(version.references if version else ()):
            target = self._target(version, reference) if version else None
            yield Reference(
                self._source(row),
                target.xid if target else f"{reference.subject}:{reference.version}",
                f"references[{index}]",
                ReferenceState.RESOLVED if target else ReferenceState.DANGLING,
            )

    def incoming(self, xid: str, *, below: bool) -> Iterator[Reference]:
        """The references that lead to a Version, or to all Versions below an entity, in the order of their sources."""
        if xid != xids.REGISTRY and xids.segments(xid)[0] != GROUPS:
            return
        sources: set[str] = set()
        for version in self._versions_at(xid, below):
            sources |= {referrer.xid for referrer in self._registry.referrers(version) if referrer.is_live}
        rows = filter(None, map(self._view.entity, sources))
        for row in sorted(rows, key=lambda row: xids.tree_key(self._source(row))):
            yield from (one for one in self.outgoing(row) if one.state is ReferenceState.RESOLVED)

    def _versions_at(self, xid: str, below: bool) -> list[SchemaVersion]:
        """The versions at or below an entity; those that a Resource shows through an xref as its own."""
        resource = xids.resource_of(xid)
        if len(xids.segments(xid)) >= 4 and self._registry.xref(resource) is not None:
            row = self._view.entity(resource)
            name = subject_name(resource, facts_of(loads_trusted(row.private))) if row else ""
            shown = self._registry.versions_in(xids.segments(resource)[1], name).all
            return [version for version in shown if version.xid == xid or (below and version.resource == xid)]
        return self._view.schemas.below(xid) if below else self._view.schemas.at(xid)

    def _version_of(self, row: EntityRow) -> SchemaVersion | None:
        if row.type == _SCHEMA_TYPE:
            versionid = loads_trusted(row.attributes).get("versionid")
            xid = f"{row.xid}/versions/{versionid}"
        elif row.type == _VERSION_TYPE:
            xid = row.xid
        else:
            return None
        return next((version for version in self._view.schemas.at(xid) if version.is_live), None)

    def _target(self, version: SchemaVersion, reference: NamedReference) -> SchemaVersion | None:
        subject = parse_subject(reference.subject)
        is_qualified = reference.subject.startswith(":.")
        group = self._registry.group(subject.context) if is_qualified else version.group
        if group is None or self._find(group_xid(group)) is None:
            return None
        candidates = self._registry.versions_in(group, subject.name).with_number(reference.version)
        return next((one for one in candidates if one.is_live), None)

    def _source(self, row: EntityRow) -> str:
        """The Resource for its default Version, else the Version."""
        is_default = row.type == _VERSION_TYPE and loads_trusted(row.attributes).get("isdefault") is True
        return xids.resource_of(row.xid) if is_default else row.xid

    def _find(self, xid: str) -> EntityMembers | None:
        row = self._view.entity(xid)
        return EntityMembers(loads_trusted(row.attributes), loads_trusted(row.private)) if row is not None else None
