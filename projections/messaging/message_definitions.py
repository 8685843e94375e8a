"""Looks up message definitions in the read model, for resolving and matching them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from annals.domain.messaging.effective_messages import MESSAGES
from annals.domain.messaging.resolve import MessageDefinition
from annals.domain.registry.explicit_values import DEFAULT_MARKS
from annals.domain.values import xid as xids
from annals.domain.values.json_text import loads
from annals.projections.entities.rows import EntityRow
from annals.projections.entities.view import View
from annals.projections.entities.xref import xref_of


class MessageDefinitions:
    """The messages of one moment. Lookups are cached, because many messages share their bases."""

    def __init__(self, view: View, may_read: Callable[[str], bool]) -> None:
        """may_read: whether the caller may read an entity; to the caller, other entities do not exist."""
        self._view = view
        self._may_read = may_read
        self._cache: dict[str, MessageDefinition | None] = {}

    def definition(self, xid: str) -> MessageDefinition | None:
        """See `DefinitionLookup`. An xref yields its target."""
        if xid not in self._cache:
            self._cache[xid] = self._read_definition(xid)
        return self._cache[xid]

    def messages(self, group: str) -> Sequence[str] | None:
        """See `GroupLookup`."""
        if not self._may_read(group) or self._view.entity(group) is None:
            return None
        collection = f"{group}/{MESSAGES}"
        return [row.xid for row in self._view.subtree(collection, {xids.type_of(collection)})]

    def _read_definition(self, xid: str) -> MessageDefinition | None:
        segments = xids.segments(xid)
        if len(segments) not in (4, 6) or segments[2] != MESSAGES or not self._may_read(xid):
            return None
        row = self._xref_target(self._view.entity(xids.join(*segments[:4])))
        if row is None:
            return None
        versionid = segments[5] if len(segments) == 6 else loads(row.attributes)["versionid"]
        version = self._view.entity(f"{row.xid}/versions/{versionid}")
        if version is None:
            return None
        return MessageDefinition(version.xid, loads(version.attributes), loads(version.private).get(DEFAULT_MARKS, {}))

    def _xref_target(self, row: EntityRow | None) -> EntityRow | None:
        """The Resource whose Versions are shown: an xref's target, None if that has an xref too."""
        target = xref_of(row)
        if target is None:
            return row
        target_row = self._view.entity(target)
        return None if xref_of(target_row) is not None else target_row
