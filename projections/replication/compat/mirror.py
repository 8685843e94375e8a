"""Copies another registry's legacy API into this one, object by object, in its current state.

Whatever triggers a copy, it fetches the current state. So notifications may be late, repeated or out of order.
Rules LEG-902, LEG-907, LEG-909, LEG-912, LEG-913.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

from annals.domain.compat.errors import Conflict
from annals.domain.compat.ids import decode_segment, to_registry_id
from annals.domain.compat.legacy_apis import LegacyApi
from annals.domain.decisions.compat.group_formats import is_same_group_format
from annals.domain.values import xid as xids
from annals.projections.entities.rows import EntityRow
from annals.projections.replication.compat.client import BrokenResponse, LegacyClient
from annals.projections.replication.compat.definition_copier import DefinitionCopier
from annals.projections.replication.compat.local_names import local_group_xids
from annals.projections.replication.compat.local_registry import LegacyLocalRegistry
from annals.projections.replication.link_conflicts import LinkConflicts
from annals.projections.replication.remote.remote_client import RemoteError

_FORBIDDEN: Final = 403


class Mirror:
    """Copies the objects of one link. Ids are those of the other registry, decoded."""

    def __init__(self, client: LegacyClient, local_registry: LegacyLocalRegistry, conflicts: LinkConflicts) -> None:
        self._client = client
        self._local_registry = local_registry
        self._conflicts = conflicts
        self._scope = local_registry.link.scope
        self._definition_copier = DefinitionCopier(client, local_registry, conflicts)
        # Local xids of the objects found in the other registry.
        self._groups: dict[str, str] = {}
        self._definitions: dict[tuple[str, str], set[str]] = {}

    def copy_all(self, is_stopped: Callable[[], bool]) -> None:
        """Copies everything in scope and deletes copies whose originals no longer exist (LEG-913).

        is_stopped: whether to stop early.
        Raises: RemoteError.
        """
        self._conflicts.clear()
        self._groups.clear()
        self._definitions.clear()
        unreadable_groups = [
            id for id in self._client.groups() if not is_stopped() and not self._copy_with_members(id, is_stopped)
        ]
        for path, reason in self._client.broken_ids.items():
            self._conflicts.add(path, reason)
        self._client.broken_ids.clear()
        if not is_stopped():
            self._remove_others([local_xid for id in unreadable_groups for local_xid in self._local_group_xids(id)])

    def copy_subjects(self, subjects: Iterable[str]) -> None:
        """Copies, or deletes, the objects that events of the other registry name. Raises: RemoteError."""
        for ids in sorted({_ids_of_subject(self._local_registry.family, subject) for subject in subjects}):
            try:
                if len(ids) == 2:
                    self.copy_definition(*ids)
                elif ids:
                    self.copy_group(*ids)
            except BrokenResponse as error:
                self._conflicts.add(self._client.path(*ids), str(error))

    def copy_group(self, id: str) -> str | None:
        """Copies a Group without its contents, or deletes its copy. Returns its local xid. Raises: RemoteError."""
        xid = self._remote_xid(id)
        if xid is None or not self._scope.reaches_into(xids.stream(xid)):
            return None
        path, body = self._client.path(id), self._client.group(id)
        if body is None:
            self._conflicts.resolve_tree(path)
            if (copy := self._groups.pop(id, None)) is not None:
                self._remove_group(copy)
            return None
        for local_xid in self._local_group_xids(id):
            row = self._local_registry.entity(local_xid)
            if row is None or self._local_registry.came_over_link(row):
                is_written = self._conflicts.attempt(path, partial(self._put_group, local_xid, row, body))
                return self._record_group(id, local_xid) if is_written or row is not None else None
            if self._has_format(row, body):
                return self._record_group(id, local_xid)
        self._conflicts.add(path, "a group of this name with another format exists here")
        return None

    def _put_group(self, xid: str, row: EntityRow | None, body: Mapping[str, Any]) -> None:
        """Writes a Group; deletes it first if the format differs, which cannot change with members. Raises: Problem."""
        try:
            self._local_registry.put_group(xid, body)
        except Conflict:
            if row is None or self._has_format(row, body) or not self._is_whole_copy(xid):
                raise
            self._remove_group(xid)
            self._local_registry.put_group(xid, body)

    def _has_format(self, group: EntityRow, body: Mapping[str, Any]) -> bool:
        """Whether a Group here has the format of one there."""
        if not isinstance(body.get("format"), str | None):
            return False
        return is_same_group_format(self._local_registry.family, self._local_registry.format(group), body.get("format"))

    def copy_definition(self, group: str, id: str) -> None:
        """Copies a definition with its Versions, or deletes its copy. A broken original leaves its copy unchanged.

        Raises: RemoteError; BrokenResponse for its Group.
        """
        xid = self._remote_xid(group, id)
        if xid is None or not self._scope.has(xid):
            return
        local_group = self._groups.get(group) or self.copy_group(group)
        self._conflicts.resolve_tree(self._client.path(group, id))
        try:
            local_definitions = (
                self._definition_copier.copy_definition(group, id, local_group) if local_group is not None else set()
            )
        except BrokenResponse as error:
            self._conflicts.add(self._client.path(group, id), str(error))
            local_definitions = self._possible_copies(xid, local_group or "")
        for obsolete_copy in self._definitions.get((group, id), set()) - local_definitions:
            self._remove_copy(obsolete_copy)
        self._definitions[group, id] = local_definitions

    def _possible_copies(self, xid: str, local_group: str) -> set[str]:
        """The possible copies of a definition, under its own name or with an authority mark.

        xid: in the other registry.
        """
        name = xids.entity_id(xid).lower()
        ids = {row.xid: xids.entity_id(row.xid).lower() for row in self._local_registry.members(local_group)}
        return {copy for copy, id in ids.items() if id == name or id.startswith(f"{name}.")}

    def _copy_with_members(self, id: str, is_stopped: Callable[[], bool]) -> bool:
        """Copies a Group with all its contents. False if the Group may exist but cannot be read."""
        xid = self._remote_xid(id)
        if xid is None or not self._scope.reaches_into(xids.stream(xid)):
            return True
        try:
            definitions = self._client.definitions(id)
            local_xid = self.copy_group(id)
        except BrokenResponse as error:
            self._conflicts.add(self._client.path(id), str(error))
            return False
        except RemoteError as error:
            if error.status != _FORBIDDEN:
                raise
            self._conflicts.add(self._client.path(id), "this registry is not allowed to read it")
            return False
        if local_xid is not None:
            for definition in definitions or ():
                if not is_stopped():
                    self.copy_definition(id, definition)
        return True

    # --- removing ----------------------------------------------------------------------------------------------------

    def _remove_others(self, unreadable_groups: list[str]) -> None:
        """Deletes copies whose originals were not found.

        Originals that cannot be read may still exist, so their copies stay.
        """
        kept_xids = {
            *self._groups.values(),
            *unreadable_groups,
            *(xid for local_definitions in self._definitions.values() for xid in local_definitions),
        }
        for row in self._local_registry.copies():
            group = xids.join(*xids.segments(row.xid)[:2])
            if row.xid in kept_xids or group in unreadable_groups:
                continue
            if row.xid == group:
                self._remove_group(group)
            else:
                self._remove_copy(row.xid)

    def _remove_group(self, xid: str) -> None:
        """Deletes a Group and its contents as far as they came over the link. Other contents stay."""
        members = (member.xid for member in self._local_registry.members(xid))
        for copied_xid in [xid] if self._is_whole_copy(xid) else list(members):
            self._remove_copy(copied_xid)

    def _is_whole_copy(self, xid: str) -> bool:
        """Whether a Group and all of its contents came over the link."""
        return self._local_registry.came_over_link_at(xid) and all(
            map(self._local_registry.came_over_link, self._local_registry.members(xid))
        )

    def _remove_copy(self, xid: str) -> None:
        row = self._local_registry.entity(xid)
        if row is not None and self._local_registry.came_over_link(row):
            self._conflicts.attempt(xid, partial(self._local_registry.remove, xid))

    # --- names -------------------------------------------------------------------------------------------------------

    def _record_group(self, id: str, xid: str) -> str:
        self._groups[id] = xid
        return xid

    def _remote_xid(self, group: str, id: str | None = None) -> str | None:
        """The xid of an object in the other registry; None if its name is not a valid id."""
        family = self._local_registry.family
        try:
            resource_segments = () if id is None else (family.resources, to_registry_id(id))
            return xids.join(family.groups, to_registry_id(group), *resource_segments)
        except ValueError as error:
            self._conflicts.add(self._client.path(group, id), str(error))
            return None

    def _local_group_xids(self, id: str) -> list[str]:
        xid = self._remote_xid(id)
        return local_group_xids(self._local_registry.link, xid, self._client.base) if xid is not None else []


def _ids_of_subject(family: LegacyApi, subject: str) -> tuple[str, ...]:
    """The ids of the Group and the definition that an event's subject names; empty for other subjects."""
    parts = subject.split("/")
    if parts[:2] != ["", family.path]:
        return ()
    try:
        return tuple(decode_segment(segment) for segment in parts[2:5:2])
    except ValueError:
        return ()
