"""Copies another registry's entities as commands, one for each Group or Resource that differs.

A local entity that did not come over this link is never written. If it has the same xid and creation time as the remote
one, both are the same entity, which has come round through a cycle of links; that is no conflict. Otherwise it is one.
Rules LEG-902, LEG-906, LEG-907, LEG-909, LEG-910.
"""

from __future__ import annotations

from typing import Final, TypeVar

from annals.domain.decisions.commands import Command, DeleteEntities, WriteMethod, WriteTree
from annals.domain.replication.link import Link
from annals.domain.replication.xid_mapping import add_authority_mark, remove_authority_mark
from annals.domain.values import xid as xids
from annals.projections.replication.link_conflicts import LinkConflicts
from annals.projections.replication.link_worker import LinkWorkerContext
from annals.projections.replication.standard.comparable import (
    BrokenEntity,
    ComparableGroup,
    ComparableResource,
    ResourceWrite,
    map_xref,
)
from annals.projections.replication.standard.local_registry import LocalEntity, LocalRegistry
from annals.projections.replication.standard.source import ListedGroup, StandardSource

_SKIP: Final = "skip"
_UNEQUAL_REASON: Final = "it cannot be stored here as it is there"
ComparableT = TypeVar("ComparableT", ComparableGroup, ComparableResource)


class EntityCopier:
    """One pass over the other registry.

    unequal_hashes: hashes of entities that this registry could not store exactly, by xid, kept from pass to pass. They
    are not written again until either side changes.
    """

    def __init__(
        self,
        link: Link,
        context: LinkWorkerContext,
        source: StandardSource,
        unequal_hashes: dict[str, tuple[bytes, bytes]],
        conflicts: LinkConflicts,
    ) -> None:
        self.conflicts = conflicts
        self._link = link
        self._context = context
        self._source = source
        self._unequal_hashes = unequal_hashes
        self._mapping = link.mapping
        self._local_registry = LocalRegistry(context.readers.quick_view())
        self._source_xids: set[str] = set()
        other_links = {other_link.id for other_link in context.readers.quick_view().links.all()} - {link.id}
        self._accepted_links = other_links | {None}

    def copy_group(self, listed_group: ListedGroup) -> None:
        """Copies a Group and its contents in scope. Deletes copies whose originals no longer exist."""
        xid = self._mapping.to_local(listed_group.xid)
        if xid in self._source_xids:
            self.conflicts.add(xid, f"{listed_group.xid} would have this name, but another Group there has it already")
            return
        self._source_xids.add(xid)
        if isinstance(listed_group.comparable, BrokenEntity):
            self._report_broken(xid, listed_group.comparable)
            if self._local_registry.group(xid) is None:
                return
        elif not self._copy_group_attributes(xid, listed_group.comparable):
            return
        pointers: list[tuple[str, ComparableResource]] = []
        for remote_xid, comparable in listed_group.resources:
            if self._context.stopping.is_set():
                return
            if not self._link.scope.has(remote_xid):
                continue
            if isinstance(comparable, ComparableResource) and "xref" in comparable.meta:
                pointers.append((remote_xid, map_xref(comparable, self._mapping.local_xids)))
            else:
                self._copy_listed(remote_xid, comparable)
        for pointer, comparable in pointers:
            self._copy_listed(pointer, comparable)
        if not isinstance(listed_group.comparable, BrokenEntity):
            self._remove_obsolete(xid)

    def remove_missing(self, root: str) -> None:
        """Deletes Groups that no longer exist, after everything at and below the registry or a Group was copied."""
        local_root = None if root == xids.REGISTRY else self._mapping.to_local(root)
        for xid in list(self._local_registry.groups()):
            remote_xid = self._mapping.to_remote(xid)
            if (
                local_root in (None, xid)
                and xid not in self._source_xids
                and self._link.scope.reaches_into(remote_xid.lower())
            ):
                self._delete_copy(xid)

    def _copy_group_attributes(self, xid: str, comparable: ComparableGroup) -> bool:
        """Whether the Group exists afterwards, so that contents can be written."""
        local_entity = self._local_registry.group(xid)
        if local_entity is None:
            return not self._is_deleted_locally(xid, comparable) and self._execute(
                xid, _put_command(xid, comparable.write_body())
            )
        if local_entity.comparable == comparable:
            return True
        if local_entity.link != self._link.id:
            if not self._is_own(xid, comparable):
                self.conflicts.add(xid, "a Group of this name exists here already and is not changed")
            return True
        if self._is_new_difference(xid, comparable.content_hash(), local_entity.comparable.content_hash()):
            self._execute(xid, _put_command(xid, comparable.write_body()))
            self._remember_difference(xid, comparable, self._local_registry.group(xid))
        else:
            self.conflicts.add(xid, _UNEQUAL_REASON)
        return True

    def _copy_listed(self, remote_xid: str, comparable: ComparableResource | BrokenEntity | None) -> None:
        """Copies a Resource. remote_xid: its remote xid. comparable: None if it is unchanged.

        After a conflict it is read again in the next pass, because the cause may disappear.
        """
        xid, previous_conflicts = self._mapping.to_local(remote_xid), self.conflicts.added_count
        try:
            if isinstance(comparable, ComparableResource):
                self._copy_resource(xid, comparable)
            else:
                self._source_xids |= {xid, add_authority_mark(xid, self._link.url)}
            if isinstance(comparable, BrokenEntity):
                self._report_broken(xid, comparable)
        except BrokenEntity as error:  # of a document, which is read late
            self._source_xids |= {xid, add_authority_mark(xid, self._link.url)}
            self._report_broken(xid, error)
        if self.conflicts.added_count > previous_conflicts:
            self._source.forget_hash(remote_xid)

    def _report_broken(self, xid: str, error: BrokenEntity) -> None:
        """Records a broken entity and leaves its copy unchanged. The conflict names the broken part, if it is known."""
        self.conflicts.add(self._mapping.to_local(error.xid) if error.xid else xid, str(error))

    def _copy_resource(self, xid: str, comparable: ComparableResource) -> None:
        local_xid = self._target_xid(xid, comparable)
        if local_xid is not None:
            self._source_xids.add(local_xid)
            self._write_resource(local_xid, comparable, self._local_registry.resource(local_xid))

    def _target_xid(self, xid: str, comparable: ComparableResource) -> str | None:
        """The xid at which to write a Resource; None if it must not be written."""
        local_entity = self._local_registry.resource(xid)
        if local_entity is None:
            return None if self._is_deleted_locally(xid, comparable) or self._is_renamed_own(xid, comparable) else xid
        if local_entity.link == self._link.id:
            return xid
        if comparable.is_copy_of(local_entity.comparable):
            return None
        if self._is_own(xid, comparable):
            if comparable.last_modified > local_entity.comparable.last_modified:
                self.conflicts.add(xid, "it was changed there, but does not come from this link")
            return None
        if self._link.conflicts == _SKIP or "xref" in comparable.meta:
            self.conflicts.add(xid, "a Resource of this name exists here already")
            return None
        marked_xid = add_authority_mark(xid, self._link.url)
        self.conflicts.add(xid, f"a Resource of this name exists here already; it comes as {marked_xid}")
        local_entity = self._local_registry.resource(marked_xid)
        return marked_xid if local_entity is None or local_entity.link == self._link.id else None

    def _is_own(self, xid: str, comparable: ComparableGroup | ComparableResource) -> bool:
        """Whether a remote entity came from this registry or over another of its links, through a cycle of links."""
        creation_records = self._local_registry.creation_records(xid) if comparable.createdat else []
        return any(
            creation_record.createdat == comparable.createdat and creation_record.link in self._accepted_links
            for creation_record in creation_records
        )

    def _is_deleted_locally(self, xid: str, comparable: ComparableGroup | ComparableResource) -> bool:
        """Whether an entity that existed in this registry first was deleted in it."""
        if not self._is_own(xid, comparable):
            return False
        self.conflicts.add(xid, "it was deleted here, but does not come from this link")
        return True

    def _is_renamed_own(self, xid: str, comparable: ComparableResource) -> bool:
        """Whether it is an entity of this registry that the other one renamed after a conflict."""
        return remove_authority_mark(xid) != xid and self._is_own(remove_authority_mark(xid), comparable)

    def _write_resource(
        self, xid: str, comparable: ComparableResource, local_entity: LocalEntity[ComparableResource] | None
    ) -> None:
        if local_entity is not None and comparable.is_copy_of(local_entity.comparable):
            return
        if local_entity is not None and not self._is_new_difference(
            xid, comparable.content_hash(), local_entity.comparable.content_hash()
        ):
            self.conflicts.add(xid, _UNEQUAL_REASON)
            return
        writes = comparable.writes(local_entity.comparable if local_entity else None, self._local_registry.type_of(xid))
        if self._execute(xid, *(_command(xid + write.path, write) for write in writes)):
            self._remember_difference(xid, comparable, self._local_registry.resource(xid))

    def _is_new_difference(self, xid: str, remote_hash: bytes, local_hash: bytes) -> bool:
        return self._unequal_hashes.get(xid) != (remote_hash, local_hash)

    def _remember_difference(
        self, xid: str, comparable: ComparableT, local_entity: LocalEntity[ComparableT] | None
    ) -> None:
        if local_entity is None or comparable.is_copy_of(local_entity.comparable):
            self._unequal_hashes.pop(xid, None)
        else:
            self._unequal_hashes[xid] = comparable.content_hash(), local_entity.comparable.content_hash()

    def _remove_obsolete(self, group: str) -> None:
        for xid, link in self._local_registry.resources(group):
            is_obsolete_copy = link == self._link.id and xid not in self._source_xids
            if (
                is_obsolete_copy
                and self._link.scope.has(self._mapping.to_remote(remove_authority_mark(xid)))
                and not self._exists_remotely(xid)
            ):
                self._execute(xid, DeleteEntities(xid))

    def _exists_remotely(self, xid: str) -> bool:
        """Whether an entity missing in lists still exists remotely: pages can miss entries during changes."""
        unmarked_xid = remove_authority_mark(xid)
        if unmarked_xid != xid and unmarked_xid in self._source_xids:
            return False  # its own name is free now
        return any(self._source.has(self._mapping.to_remote(local_xid)) for local_xid in {xid, unmarked_xid})

    def _delete_copy(self, xid: str) -> None:
        local_entity = self._local_registry.group(xid)
        if local_entity is None or local_entity.link != self._link.id or self._source.has(self._mapping.to_remote(xid)):
            return
        resources = self._local_registry.resources(xid)
        if all(link == self._link.id for _, link in resources):
            self._execute(xid, DeleteEntities(xid))
            return
        self.conflicts.add(xid, "it no longer exists there, but has something here that does not come from this link")
        for resource, link in resources:
            if link == self._link.id:
                self._execute(resource, DeleteEntities(resource))

    def _execute(self, xid: str, *commands: Command) -> bool:
        """Whether all commands succeed. See `LinkConflicts.attempt`."""

        def execute() -> None:
            for command in commands:
                self._context.execute(self._link, command)

        return self.conflicts.attempt(xid, execute)


def _command(xid: str, write: ResourceWrite) -> Command:
    if write.method == "DELETE":
        return DeleteEntities(xid, write.body)
    return WriteTree(xid, write.body, WriteMethod[write.method], keepids=True)


def _put_command(xid: str, tree: dict[str, object]) -> WriteTree:
    return WriteTree(xid, tree, WriteMethod.PUT, keepids=True)
