"""Writes objects of this registry to another registry through a legacy API (LEG-902 to LEG-907, LEG-909).

Before each write it checks whether the object exists there and records the intention. So an interrupted link continues
where it was. Before it changes or deletes an object it checks that the object is still the one that it wrote.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import dropwhile
from typing import Any, Final

from annals.domain.compat.ids import decode_segment, to_legacy_id
from annals.domain.compat.uris import normalize_uri
from annals.domain.decisions.compat.group_formats import is_same_group_format
from annals.domain.values import xid as xids
from annals.projections.compat.versions import CompatVersion
from annals.projections.replication.compat.client import BrokenResponse, LegacyClient
from annals.projections.replication.compat.local_names import candidate_ids
from annals.projections.replication.compat.local_registry import LegacyLocalRegistry, definition_of
from annals.projections.replication.compat.sent_checks import (
    creation_time_of,
    definition_path,
    find_version,
    group_digest,
    is_same_group,
    is_same_version,
)
from annals.projections.replication.compat.sent_objects import SentObject, SentObjects
from annals.projections.replication.link_conflicts import LinkConflicts
from annals.projections.replication.remote.remote_client import RemoteError
from annals.projections.replication.standard.response_checks import TOO_LARGE

#: Statuses that refuse one object for every caller, with a problem document.
_REFUSAL_STATUSES: Final = (400, 404, 405, 409, 413, 415, 422)
#: Those that Schema Registry 0.2 also gives without one, and what is too large for a proxy. A proxy gives the others,
#: too.
_BARE_REFUSAL_STATUSES: Final = (400, 409, *TOO_LARGE)
_NOT_FOUND: Final = 404
_SERVER_ERROR: Final = 500


class _RecordsOutdated(Exception):
    """The other registry no longer has something that was written there, so records of that Group are to be checked."""


class LegacySender:
    """Sends the objects of one link. Each method raises RemoteError for an answer that is not about one object.

    is_stopped: whether to stop early. checked: what was compared with the other registry since the link was started, so
    that an attempt after an error goes on from there.
    is_checked, of its methods: whether records of what was written are compared with the other registry first, and
    dropped if they are wrong. Otherwise they are believed, which saves requests.
    """

    def __init__(
        self,
        client: LegacyClient,
        local_registry: LegacyLocalRegistry,
        sent_objects: SentObjects,
        conflicts: LinkConflicts,
        is_stopped: Callable[[], bool],
        checked: set[str],
    ) -> None:
        self._client = client
        self._local_registry = local_registry
        self._sent_objects = sent_objects
        self._conflicts = conflicts
        self._is_stopped = is_stopped
        self._checked = checked
        self._remote_names = {local: remote for remote, local in local_registry.link.names.items()}

    def send_all(self) -> None:
        """Sends what the other registry lacks of everything in scope, and deletes there what has left it."""
        self._conflicts.clear()
        local_xids = self._local_registry.all_in_scope()
        for xid in local_xids:
            if not self._is_stopped():
                self._send(xid, is_checked=True) if xid not in self._checked else self.send(xid)
                self._checked.add(xid)
        living_keys = {xids.tree_key(xid) for xid in local_xids}
        obsolete_copies: dict[str, dict[str, SentObject]] = {}
        for key, copy in self._sent_objects.objects_below(f"/{self._local_registry.family.groups}").items():
            if (owner_key := _owner_key(key)) not in living_keys:
                obsolete_copies.setdefault(owner_key, {})[key] = copy
        for owner_key in sorted(obsolete_copies, key=lambda key: -key.count("!")):  # contents first
            copies = obsolete_copies[owner_key]
            if self._is_stopped():
                return
            end = partial(self._end_group, copies[owner_key]) if owner_key in copies else None
            self._guard(next(iter(copies.values())).remote_path, end or partial(self._remove_versions, copies))

    def send(self, xid: str) -> None:
        """Writes a Group or a definition in its current state to the other registry, or deletes it there.

        An invalid answer of the other registry is recorded as a conflict. If the other registry turns out to have lost
        something, everything in its Group is compared and sent.
        """
        try:
            self._send(xid, is_checked=False)
        except _RecordsOutdated:
            has = self._local_registry.link.scope.has
            members = (row.xid for row in self._local_registry.members(_group_of(xid)) if has(row.xid))
            for each in dict.fromkeys([xid, *members]):
                if not self._is_stopped():
                    self._send(each, is_checked=True)

    def _send(self, xid: str, *, is_checked: bool) -> None:
        send = self.send_definition if xid.count("/") > 2 else self.send_group
        self._guard(xid, partial(send, xid, is_checked=is_checked))

    def _guard(self, subject: str, action: Callable[[], object]) -> None:
        """Records an invalid answer of the other registry as a conflict."""
        try:
            action()
        except BrokenResponse as error:
            self._conflicts.add(subject, str(error))

    # --- Groups ------------------------------------------------------------------------------------------------------

    def send_group(self, xid: str, *, is_checked: bool) -> str | None:
        """Writes a Group in its current state to the other registry, or deletes it there.

        Returns its remote id, decoded. Raises: _RecordsOutdated, unless is_checked.
        """
        row = (
            self._local_registry.entity(xid) if self._local_registry.link.scope.reaches_into(xids.stream(xid)) else None
        )
        copy = self._sent_objects.get(xid)
        if row is None:
            if copy is not None:
                self._end_group(copy)
            return None
        body = self._local_registry.group_body(row)
        if copy is None:
            return self._new_group(xid, body)
        id, digest = _group_id(copy), group_digest(body)
        has_changed = copy.is_own and copy.digest != digest
        if is_checked or has_changed:
            checked_copy = self._checked_group(copy, body)
            if checked_copy is None:
                if not is_checked:
                    raise _RecordsOutdated
                self._sent_objects.delete(copy.key)
                return self._new_group(xid, body)
            if has_changed:
                self._attempt(xid, partial(self._write_group, checked_copy._replace(digest=digest), body))
        return id

    def _checked_group(self, copy: SentObject, body: Mapping[str, Any]) -> SentObject | None:
        """The record of a Group, with its time of creation; None if the remote Group is gone or is another one."""
        remote_group = self._client.group(_group_id(copy))
        if remote_group is None:
            return None
        if not copy.is_own:
            return copy if self._is_same_format(remote_group, body) else None
        if not is_same_group(copy, remote_group):
            return None
        checked_copy = copy._replace(identity=creation_time_of(remote_group))
        if checked_copy != copy:
            self._sent_objects.save(checked_copy)
        return checked_copy

    def _new_group(self, xid: str, body: Mapping[str, Any]) -> str | None:
        """Creates a remote Group. An existing Group of the same format is shared and not changed."""
        preferred_id = to_legacy_id(xids.entity_id(self._remote_names.get(xid, xid)))
        for id in candidate_ids(self._local_registry.link, preferred_id, self._local_registry.base):
            copy = SentObject(xids.tree_key(xid), group_digest(body), True, self._client.path(id))
            remote_group = self._client.group(id)
            if remote_group is None:
                self._sent_objects.save(copy)
                if self._attempt(xid, partial(self._write_group, copy, body)):
                    return id
                self._sent_objects.delete(copy.key)
                return None
            if self._is_same_format(remote_group, body):
                self._sent_objects.save(copy._replace(digest="", is_own=False))
                return id
        self._conflicts.add(xid, "a group of this name with another format exists there")
        return None

    def _write_group(self, copy: SentObject, body: Mapping[str, Any]) -> None:
        remote_group = self._client.put_group(_group_id(copy), body)
        self._sent_objects.save(copy._replace(identity=creation_time_of(remote_group) or copy.identity))

    def _is_same_format(self, remote_group: Mapping[str, Any], body: Mapping[str, Any]) -> bool:
        return is_same_group_format(self._local_registry.family, remote_group.get("format"), body.get("format"))

    def _end_group(self, copy: SentObject) -> None:
        """Deletes a Group that this link created, unless others have put something into it."""
        id = _group_id(copy)
        remote_group = self._client.group(id) if copy.is_own else None
        if remote_group is not None and is_same_group(copy, remote_group) and self._client.definitions(id) == []:
            self._attempt(copy.remote_path, partial(self._client.delete, copy.remote_path))
        self._sent_objects.delete(copy.key)

    # --- definitions -------------------------------------------------------------------------------------------------

    def send_definition(self, xid: str, *, is_checked: bool) -> None:
        """Writes a definition in its current state to the other registry, or deletes it there. xid: of the Resource.

        Raises: _RecordsOutdated, unless is_checked.
        """
        self._conflicts.resolve_tree(xid)
        versions = self._local_registry.versions(xid) if self._local_registry.link.scope.has(xid) else []
        versions_by_key = {xids.tree_key(each.row.xid): each for each in versions}
        wanted = {
            key: SentObject(key, self._local_registry.document_hash(each), False, "", each.uri)
            for key, each in versions_by_key.items()
        }
        records = self._sent_objects.objects_below(f"{xid}/versions")
        copies = {key: copy for key, copy in records.items() if not is_checked or self._is_there(copy, wanted.get(key))}
        rewritten_keys = _rewritten_keys(records, copies, wanted)
        self._remove_versions({key: copy for key, copy in copies.items() if key in rewritten_keys or key not in wanted})
        # After the removal, so that a crash between them cannot hide the gap.
        for key in records.keys() - copies.keys():
            self._sent_objects.delete(key)
        certain_keys = {key for key, copy in copies.items() if copy.is_certain} - rewritten_keys
        missing_keys = [key for key in wanted if key not in certain_keys]
        group = self.send_group(_group_of(xid), is_checked=is_checked) if missing_keys else None
        for key in missing_keys if group is not None else ():
            copy = wanted[key]._replace(is_own=key in copies and key not in rewritten_keys)
            self._send_version(group or "", versions_by_key[key], copy, is_checked=is_checked)

    def _is_there(self, copy: SentObject, wanted: SentObject | None) -> bool:
        """Whether the other registry still has a Version that is not going to be removed or written anyway."""
        if wanted is None or not copy.is_certain or not _is_current(copy, wanted):
            return True
        known_copy = copy._replace(identity=wanted.identity)
        try:
            remote_version = find_version(self._client, known_copy)
        except RemoteError as error:
            if error.status != _SERVER_ERROR:
                raise
            self._conflicts.add(copy.remote_path, str(error))
            return True  # the other registry cannot read it, which must not hold up all others
        is_there = remote_version is not None and is_same_version(known_copy, remote_version)
        if is_there and known_copy != copy:
            self._sent_objects.save(known_copy)
        return is_there

    def _send_version(self, group: str, compat_version: CompatVersion, copy: SentObject, *, is_checked: bool) -> None:
        """Writes a Version. copy: its `is_own` says whether a write of it was begun before."""
        xid, version = compat_version.row.xid, self._local_registry.legacy_version(compat_version)
        if version is None:
            self._conflicts.add(xid, "its document is stored outside of this registry")
            return
        if normalize_uri(version.authority).rstrip("/") == normalize_uri(self._client.base):
            return  # LEG-906
        remote_version = self._client.version_by_uri(version.uri)
        if remote_version is None:
            self._add_version(group, compat_version, copy, is_checked=is_checked)
        elif remote_version.content == version.content:
            self._sent_objects.save(copy._replace(remote_path=remote_version.path))
        else:
            self._conflicts.add(xid, f"another document exists there under its URI {version.uri}")

    def _add_version(self, group: str, compat_version: CompatVersion, copy: SentObject, *, is_checked: bool) -> None:
        xid, version = compat_version.row.xid, self._local_registry.legacy_version(compat_version)
        assert version is not None, "its document is stored here"
        preferred_id = to_legacy_id(xids.segments(xid)[3])
        for id in candidate_ids(self._local_registry.link, preferred_id, version.authority):
            authority = self._client.authority(group, id)
            if authority is None and not is_checked and self._has_written_to(xid, self._client.path(group, id)):
                raise _RecordsOutdated
            if authority is None or normalize_uri(authority) == normalize_uri(version.authority):
                pending_copy = copy._replace(is_own=True, remote_path=self._client.lookup_path(version.uri))
                self._sent_objects.save(pending_copy)
                refusal = self._refusal_of(partial(self._client.add_version, group, id, version))
                if refusal is None:
                    if remote_version := self._client.version_by_uri(version.uri):
                        self._sent_objects.save(pending_copy._replace(remote_path=remote_version.path))
                    return
                self._sent_objects.delete(copy.key)
                if refusal.status == _NOT_FOUND and not is_checked:
                    raise _RecordsOutdated
                self._conflicts.add(xid, str(refusal))
                return
        self._conflicts.add(xid, "its name belongs to a definition of another authority there")

    def _has_written_to(self, xid: str, remote_definition: str) -> bool:
        """Whether Versions of a remote definition are recorded. xid: of a Version of the local one."""
        copies = self._sent_objects.objects_below(f"{definition_of(xid)}/versions").values()
        return any(definition_path(copy.remote_path) == remote_definition for copy in copies)

    def _remove_versions(self, copies: Mapping[str, SentObject]) -> None:
        """Deletes Versions that this link wrote. A definition is deleted as a whole if all its Versions are."""
        written_by_definition: dict[str, list[str]] = {}
        for copy in copies.values():
            if copy.is_own and (path := self._written_path(copy)):
                written_by_definition.setdefault(definition_path(path), []).append(path)
        for definition, written_paths in written_by_definition.items():
            remote_paths = {f"{definition}/versions/{number}" for number in self._client.version_numbers_at(definition)}
            for path in [definition] if remote_paths <= set(written_paths) else written_paths:
                self._attempt(path, partial(self._client.delete, path))
        for key in copies:
            self._sent_objects.delete(key)

    def _written_path(self, copy: SentObject) -> str:
        """The path of a Version that this link wrote, or may have been writing; empty if it does not exist any more."""
        remote_version = find_version(self._client, copy)
        if remote_version is None:
            return ""
        if is_same_version(copy, remote_version):
            return remote_version.path
        if copy.identity:
            reason = f"it has the URI {copy.identity}, but this link did not write it, so it is not deleted"
            self._conflicts.add(remote_version.path, reason)
        return ""

    def _attempt(self, subject: str, action: Callable[[], object]) -> bool:
        """Whether the other registry accepts an action. A refusal is recorded as a conflict. Raises: RemoteError."""
        refusal = self._refusal_of(action)
        if refusal is not None:
            self._conflicts.add(subject, str(refusal))
        return refusal is None

    def _refusal_of(self, action: Callable[[], object]) -> RemoteError | None:
        """The answer with which the other registry refuses an action. Raises: RemoteError if it is about more."""
        try:
            action()
        except RemoteError as error:
            if error.status not in (_REFUSAL_STATUSES if error.problem else _BARE_REFUSAL_STATUSES):
                raise
            return error
        return None


def _rewritten_keys(
    records: Mapping[str, SentObject], copies: Mapping[str, SentObject], wanted: Mapping[str, SentObject]
) -> set[str]:
    """The keys of Versions to write again, because they or earlier ones have changed or are lost.

    Remote version numbers only increase, so a Version that is written again needs all later ones written again too.
    copies: the records that are not lost. wanted: by ascending number.
    """

    def is_kept(key: str) -> bool:
        return key not in records or (key in copies and _is_current(copies[key], wanted[key]))

    return set(dropwhile(is_kept, wanted))


def _is_current(copy: SentObject, wanted: SentObject) -> bool:
    """Whether what was written of a Version is what the Version is now."""
    return copy.digest == wanted.digest and copy.identity in ("", wanted.identity)


def _group_of(xid: str) -> str:
    """The xid of a Group, by its own or by that of something in it."""
    return xids.join(*xids.segments(xid)[:2])


def _group_id(copy: SentObject) -> str:
    """The remote id of a written Group, decoded."""
    return decode_segment(copy.remote_path.rpartition("/")[2])


def _owner_key(key: str) -> str:
    """The key of the Group or definition to which a key belongs."""
    parts = key.split("!")
    return "!".join(parts[:3] if len(parts) == 3 else parts[:5])
