"""Copies another registry's entities as commands, one for each Group or Resource that differs.

A local entity that did not come over this link is never written. If it has the same xid and creation time as the remote
one, both are the same entity, which has come round through a cycle of links; that is no conflict. Otherwise it is one.
Rules LEG-902, LEG-906, LEG-907, LEG-909, LEG-910.
"""

from __future__ import annotations

from typing import Final, TypeVar

from domain.decisions.commands import Command, DeleteEntities, WriteMethod, WriteTree
from domain.errors.problems import Problem
from domain.replication.link import Link
from domain.values import xid as xids
from projections.replication.link_worker import LinkWorkerContext
from projections.replication.standard.comparable import BrokenEntity, ComparableGroup, ComparableResource, map_xref
from projections.replication.standard.conflicts import Conflicts
from projections.replication.standard.local_registry import LocalEntity, LocalRegistry
from projections.replication.standard.source import ListedGroup, StandardSource
from projections.replication.standard.xid_mapping import XidMapping, add_authority_mark, remove_authority_mark

_SKIP: Final = "skip"
_UNEQUAL: Final = "it cannot be stored here as it is there"
ComparableT = TypeVar("ComparableT", ComparableGroup, ComparableResource)


class EntityCopier:
    """One pass over the other registry.

    tried: hashes of entities that this registry could not store exactly, by xid, kept from pass to pass. They are not
    written again until either side changes.
    """

    def __init__(
        self,
        link: Link,
        tools: LinkWorkerContext,
        source: StandardSource,
        tried: dict[str, tuple[bytes, bytes]],
        conflicts: Conflicts,
    ) -> None:
        self.conflicts = conflicts
        self._link = link
        self._tools = tools
        self._source = source
        self._tried = tried
        self._names = XidMapping(link.names)
        self._here = LocalRegistry(tools.readers.quick_view())
        self._source_xids: set[str] = set()
        others = {each.id for each in tools.readers.quick_view().links.all()} - {link.id}
        self._brings = others | {None}

    def copy_group(self, listed: ListedGroup) -> None:
        """Copies a Group and its contents in scope. Deletes copies whose originals no longer exist."""
        xid = self._names.to_local(listed.xid)
        self._source_xids.add(xid)
        if isinstance(listed.form, BrokenEntity):
            self._report_broken(xid, listed.form)
            if self._here.group(xid) is None:
                return
        elif not self._group(xid, listed.form):
            return
        pointers: list[tuple[str, ComparableResource]] = []
        for other, form in listed.resources:
            if self._tools.stopping.is_set():
                return
            if not self._link.scope.has(other):
                continue
            if isinstance(form, ComparableResource) and "xref" in form.meta:
                pointers.append((other, map_xref(form, self._names.local)))
            else:
                self._copy_listed(other, form)
        for pointer, form in pointers:
            self._copy_listed(pointer, form)
        if not isinstance(listed.form, BrokenEntity):
            self._prune(xid)

    def remove_missing(self, root: str) -> None:
        """Deletes Groups that no longer exist, after everything at and below the registry or a Group was copied."""
        below = None if root == xids.REGISTRY else self._names.to_local(root)
        for xid in list(self._here.groups()):
            there = self._names.to_remote(xid)
            if below in (None, xid) and xid not in self._source_xids and self._link.scope.reaches_into(there.lower()):
                self._delete_copy(xid)

    def _group(self, xid: str, form: ComparableGroup) -> bool:
        """Whether the Group exists afterwards, so that contents can be written."""
        held = self._here.group(xid)
        if held is None:
            return not self._was_deleted_here(xid, form) and self._do(xid, _put_command(xid, form.write_body()))
        if held.form == form:
            return True
        if held.link != self._link.id:
            if not self._is_own(xid, form):
                self.conflicts.add(xid, "a Group of this name exists here already and is not changed")
            return True
        if self._new(xid, form.content_hash(), held.form.content_hash()):
            self._do(xid, _put_command(xid, form.write_body()))
            self._compare(xid, form, self._here.group(xid))
        else:
            self.conflicts.add(xid, _UNEQUAL)
        return True

    def _copy_listed(self, other: str, form: ComparableResource | BrokenEntity | None) -> None:
        """Copies a Resource. other: its remote xid. form: None if it is unchanged.

        After a conflict it is read again in the next pass, because the cause may disappear.
        """
        xid, met = self._names.to_local(other), self.conflicts.count_added
        try:
            if isinstance(form, ComparableResource):
                self._resource(xid, form)
            else:
                self._source_xids |= {xid, add_authority_mark(xid, self._link.url)}
            if isinstance(form, BrokenEntity):
                self._report_broken(xid, form)
        except BrokenEntity as error:  # of a document, which is read late
            self._source_xids |= {xid, add_authority_mark(xid, self._link.url)}
            self._report_broken(xid, error)
        if self.conflicts.count_added > met:
            self._source.forget_hash(other)

    def _report_broken(self, xid: str, error: BrokenEntity) -> None:
        """Records a broken entity and leaves its copy unchanged. The conflict names the broken part, if it is known."""
        self.conflicts.add(self._names.to_local(error.xid) if error.xid else xid, str(error))

    def _resource(self, xid: str, form: ComparableResource) -> None:
        place = self._target_xid(xid, form)
        if place is not None:
            self._source_xids.add(place)
            self._write(place, form, self._here.resource(place))

    def _target_xid(self, xid: str, form: ComparableResource) -> str | None:
        """The xid at which to write a Resource; None if it must not be written."""
        held = self._here.resource(xid)
        if held is None:
            return None if self._was_deleted_here(xid, form) or self._came_back(xid, form) else xid
        if held.link == self._link.id:
            return xid
        if form.is_copy_of(held.form):
            return None
        if self._is_own(xid, form):
            if form.last_modified > held.form.last_modified:
                self.conflicts.add(xid, "it was changed there, but does not come from this link")
            return None
        if self._link.conflicts == _SKIP or "xref" in form.meta:
            self.conflicts.add(xid, "a Resource of this name exists here already")
            return None
        place = add_authority_mark(xid, self._link.url)
        self.conflicts.add(xid, f"a Resource of this name exists here already; it comes as {place}")
        held = self._here.resource(place)
        return place if held is None or held.link == self._link.id else None

    def _is_own(self, xid: str, form: ComparableGroup | ComparableResource) -> bool:
        """Whether a remote entity came from this registry or over another of its links, through a cycle of links."""
        births = self._here.creation_records(xid) if form.createdat else []
        return any(birth.createdat == form.createdat and birth.link in self._brings for birth in births)

    def _was_deleted_here(self, xid: str, form: ComparableGroup | ComparableResource) -> bool:
        """Whether an entity that existed in this registry first was deleted in it."""
        if not self._is_own(xid, form):
            return False
        self.conflicts.add(xid, "it was deleted here, but does not come from this link")
        return True

    def _came_back(self, xid: str, form: ComparableResource) -> bool:
        """Whether it is an entity of this registry that the other one renamed after a conflict."""
        return remove_authority_mark(xid) != xid and self._is_own(remove_authority_mark(xid), form)

    def _write(self, xid: str, form: ComparableResource, held: LocalEntity[ComparableResource] | None) -> None:
        if held is not None and form.is_copy_of(held.form):
            return
        if held is not None and not self._new(xid, form.content_hash(), held.form.content_hash()):
            self.conflicts.add(xid, _UNEQUAL)
            return
        if self._do(xid, *self._commands(xid, form, held)):
            self._compare(xid, form, self._here.resource(xid))

    def _commands(
        self, xid: str, form: ComparableResource, held: LocalEntity[ComparableResource] | None
    ) -> list[Command]:
        type = self._here.type_of(xid)
        if held is None or "xref" in form.meta or "xref" in held.form.meta:
            return [_put_command(xid, form.write_body(type))]
        found: list[Command] = []
        changed = form.changed_versions(held.form)
        if changed:
            tree = {id: each.write_body(type) for id, each in changed.items()}
            found.append(WriteTree(f"{xid}/versions", tree, WriteMethod.POST, keepids=True))
        if form.meta != held.form.meta:
            found.append(_put_command(f"{xid}/meta", form.meta_write_body()))
        gone = held.form.versions.keys() - form.versions.keys()
        if gone:
            found.append(DeleteEntities(f"{xid}/versions", {id: {} for id in sorted(gone)}))
        return found

    def _new(self, xid: str, form: bytes, held: bytes) -> bool:
        return self._tried.get(xid) != (form, held)

    def _compare(self, xid: str, form: ComparableT, held: LocalEntity[ComparableT] | None) -> None:
        if held is None or form.is_copy_of(held.form):
            self._tried.pop(xid, None)
        else:
            self._tried[xid] = form.content_hash(), held.form.content_hash()

    def _prune(self, group: str) -> None:
        for xid, link in self._here.resources(group):
            mine = link == self._link.id and xid not in self._source_xids
            if (
                mine
                and self._link.scope.has(self._names.to_remote(remove_authority_mark(xid)))
                and not self._is_still_there(xid)
            ):
                self._do(xid, DeleteEntities(xid))

    def _is_still_there(self, xid: str) -> bool:
        """Whether an entity missing in lists still exists remotely: pages can miss entries during changes."""
        base = remove_authority_mark(xid)
        if base != xid and base in self._source_xids:
            return False  # its own name is free now
        return any(self._source.has(self._names.to_remote(each)) for each in {xid, base})

    def _delete_copy(self, xid: str) -> None:
        held = self._here.group(xid)
        if held is None or held.link != self._link.id or self._source.has(self._names.to_remote(xid)):
            return
        below = self._here.resources(xid)
        if all(link == self._link.id for _, link in below):
            self._do(xid, DeleteEntities(xid))
            return
        self.conflicts.add(xid, "it no longer exists there, but has something here that does not come from this link")
        for resource, link in below:
            if link == self._link.id:
                self._do(resource, DeleteEntities(resource))

    def _do(self, xid: str, *commands: Command) -> bool:
        """Whether all commands succeed. A Problem is recorded as a conflict."""
        try:
            for command in commands:
                self._tools.execute(self._link, command)
        except Problem as problem:
            self.conflicts.add(xid, problem.text())
            return False
        return True


def _put_command(xid: str, tree: dict[str, object]) -> WriteTree:
    return WriteTree(xid, tree, WriteMethod.PUT, keepids=True)
