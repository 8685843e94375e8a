"""Writes objects of this registry to another registry through a legacy API (LEG-902 to LEG-907, LEG-909).

Before each write it checks whether the object exists there and records the intention. So an interrupted link continues
where it was, and only objects that this link wrote are changed or deleted there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from hashlib import sha256
from typing import Any, Final

from annals.domain.compat.ids import decode_segment, to_legacy_id
from annals.domain.compat.uris import normalize_uri
from annals.domain.decisions.compat.group_formats import is_same_group_format
from annals.domain.values import xid as xids
from annals.domain.values.json_text import dumps
from annals.projections.compat.versions import CompatVersion
from annals.projections.replication.compat.client import BrokenResponse, LegacyClient
from annals.projections.replication.compat.local_names import candidate_ids
from annals.projections.replication.compat.local_registry import LegacyLocalRegistry
from annals.projections.replication.compat.sent_objects import SentObject, SentObjects
from annals.projections.replication.link_conflicts import LinkConflicts
from annals.projections.replication.remote.remote_client import RemoteError
from annals.projections.replication.standard.response_checks import TOO_LARGE

#: Statuses that refuse one object for every caller, with a problem document.
_REFUSAL_STATUSES: Final = (400, 404, 405, 409, 413, 415, 422)
#: Those that Schema Registry 0.2 also gives without one, and what is too large for a proxy. A proxy gives the others,
#: too.
_BARE_REFUSAL_STATUSES: Final = (400, 409, *TOO_LARGE)


class LegacySender:
    """Sends the objects of one link. Each method raises RemoteError for an answer that is not about one object."""

    def __init__(
        self,
        client: LegacyClient,
        local_registry: LegacyLocalRegistry,
        sent_objects: SentObjects,
        conflicts: LinkConflicts,
    ) -> None:
        self._client = client
        self._local_registry = local_registry
        self._sent_objects = sent_objects
        self._conflicts = conflicts
        self._remote_names = {local: remote for remote, local in local_registry.link.names.items()}

    def send_all(self, is_stopped: Callable[[], bool]) -> None:
        """Sends everything in scope and deletes what has left it. is_stopped: whether to stop early."""
        self._conflicts.clear()
        local_xids = self._local_registry.all_in_scope()
        for xid in local_xids:
            if not is_stopped():
                self.send(xid)
        living_keys = {xids.tree_key(xid) for xid in local_xids}
        copies = self._sent_objects.objects_below(f"/{self._local_registry.family.groups}")
        obsolete_copies = {key: copy for key, copy in copies.items() if _owner_key(key) not in living_keys}
        self._remove_versions({key: copy for key, copy in obsolete_copies.items() if _owner_key(key) != key})
        for key, copy in obsolete_copies.items():
            if _owner_key(key) == key:
                self._end_group(copy)

    def send(self, xid: str) -> None:
        """Writes a Group or a definition in its current state to the other registry, or deletes it there.

        An invalid answer of the other registry is recorded as a conflict.
        """
        try:
            self.send_definition(xid) if xid.count("/") > 2 else self.send_group(xid)
        except BrokenResponse as error:
            self._conflicts.add(xid, str(error))

    # --- Groups ------------------------------------------------------------------------------------------------------

    def send_group(self, xid: str) -> str | None:
        """Writes a Group in its current state to the other registry, or deletes it there.

        Returns its remote id, decoded.
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
        digest = sha256(dumps(body)).hexdigest()
        if copy is None:
            return self._new_group(xid, body, digest)
        id = decode_segment(copy.remote_path.rpartition("/")[2])
        if copy.is_own and copy.digest != digest and self._attempt(xid, partial(self._client.put_group, id, body)):
            self._sent_objects.save(copy._replace(digest=digest))
        return id

    def _new_group(self, xid: str, body: Mapping[str, Any], digest: str) -> str | None:
        """Creates a remote Group. An existing Group of the same format is shared and not changed."""
        preferred_id = to_legacy_id(xids.entity_id(self._remote_names.get(xid, xid)))
        for id in candidate_ids(self._local_registry.link, preferred_id, self._local_registry.base):
            copy, remote_group = SentObject(xids.tree_key(xid), "", True, self._client.path(id)), self._client.group(id)
            if remote_group is None:
                self._sent_objects.save(copy)
                if self._attempt(xid, partial(self._client.put_group, id, body)):
                    self._sent_objects.save(copy._replace(digest=digest))
                    return id
                self._sent_objects.delete(copy.key)
                return None
            if is_same_group_format(self._local_registry.family, remote_group.get("format"), body.get("format")):
                self._sent_objects.save(copy._replace(is_own=False))
                return id
        self._conflicts.add(xid, "a group of this name with another format exists there")
        return None

    def _end_group(self, copy: SentObject) -> None:
        """Deletes a Group that this link created, unless others have put something into it."""
        id = decode_segment(copy.remote_path.rpartition("/")[2])
        if copy.is_own and self._client.definitions(id) == []:
            self._attempt(copy.remote_path, partial(self._client.delete, copy.remote_path))
        self._sent_objects.delete(copy.key)

    # --- definitions -------------------------------------------------------------------------------------------------

    def send_definition(self, xid: str) -> None:
        """Writes a definition in its current state to the other registry, or deletes it there. xid: of the Resource."""
        self._conflicts.resolve_tree(xid)
        copies = dict(self._sent_objects.objects_below(f"{xid}/versions"))
        versions = self._local_registry.versions(xid) if self._local_registry.link.scope.has(xid) else []
        versions_by_key = {
            xids.tree_key(compat_version.row.xid): (compat_version, self._local_registry.document_hash(compat_version))
            for compat_version in versions
        }
        has_changed = any(
            key in versions_by_key and versions_by_key[key][1] != copy.digest for key, copy in copies.items()
        )
        # Remote version numbers only increase, so a Version that is written again needs all later ones written again
        # too.
        obsolete_copies = {key: copy for key, copy in copies.items() if has_changed or key not in versions_by_key}
        self._remove_versions(obsolete_copies)
        missing_keys = [
            key for key in versions_by_key if key in obsolete_copies or key not in copies or not copies[key].is_certain
        ]
        group = self.send_group(xids.join(*xids.segments(xid)[:2])) if missing_keys else None
        for key in missing_keys if group is not None else ():
            self._send_version(
                group or "",
                versions_by_key[key][0],
                SentObject(key, versions_by_key[key][1], key in copies and key not in obsolete_copies, ""),
            )

    def _send_version(self, group: str, compat_version: CompatVersion, copy: SentObject) -> None:
        """Writes a Version. copy: its `own` says whether a write of it was begun before."""
        xid, version = compat_version.row.xid, self._local_registry.legacy_version(compat_version)
        if version is None:
            self._conflicts.add(xid, "its document is stored outside of this registry")
            return
        if normalize_uri(version.authority).rstrip("/") == normalize_uri(self._client.base):
            return  # LEG-906
        remote_version = self._client.version_by_uri(version.uri)
        if remote_version is None:
            self._add_version(group, compat_version, copy)
        elif remote_version.content == version.content:
            self._sent_objects.save(copy._replace(remote_path=remote_version.path))
        else:
            self._conflicts.add(xid, f"another document exists there under its URI {version.uri}")

    def _add_version(self, group: str, compat_version: CompatVersion, copy: SentObject) -> None:
        xid, version = compat_version.row.xid, self._local_registry.legacy_version(compat_version)
        assert version is not None, "its document is stored here"
        preferred_id = to_legacy_id(xids.segments(xid)[3])
        for id in candidate_ids(self._local_registry.link, preferred_id, version.authority):
            authority = self._client.authority(group, id)
            if authority is None or normalize_uri(authority) == normalize_uri(version.authority):
                pending_copy = copy._replace(is_own=True, remote_path=self._client.lookup_path(version.uri))
                self._sent_objects.save(pending_copy)
                if self._attempt(xid, partial(self._client.add_version, group, id, version)):
                    if remote_version := self._client.version_at(pending_copy.remote_path):
                        self._sent_objects.save(pending_copy._replace(remote_path=remote_version.path))
                else:
                    self._sent_objects.delete(copy.key)
                return
        self._conflicts.add(xid, "its name belongs to a definition of another authority there")

    def _remove_versions(self, copies: Mapping[str, SentObject]) -> None:
        """Deletes Versions that this link wrote. A definition is deleted as a whole if all its Versions are."""
        written_by_definition: dict[str, list[str]] = {}
        for copy in copies.values():
            if copy.is_own and (path := self._remote_path(copy)):
                written_by_definition.setdefault(path.rpartition("/versions/")[0], []).append(path)
        for definition, written_paths in written_by_definition.items():
            remote_paths = {f"{definition}/versions/{number}" for number in self._client.version_numbers_at(definition)}
            for path in [definition] if remote_paths <= set(written_paths) else written_paths:
                self._attempt(path, partial(self._client.delete, path))
        for key in copies:
            self._sent_objects.delete(key)

    def _remote_path(self, copy: SentObject) -> str:
        """The path of a Version, also after an interrupted write; empty if it does not exist."""
        if copy.is_certain or not copy.remote_path:
            return copy.remote_path
        remote_version = self._client.version_at(copy.remote_path)
        return remote_version.path if remote_version else ""

    def _attempt(self, subject: str, action: Callable[[], object]) -> bool:
        """Whether the other registry accepts an action. A refusal is recorded as a conflict. Raises: RemoteError."""
        try:
            action()
        except RemoteError as error:
            if error.status not in (_REFUSAL_STATUSES if error.problem else _BARE_REFUSAL_STATUSES):
                raise
            self._conflicts.add(subject, str(error))
            return False
        return True


def _owner_key(key: str) -> str:
    """The key of the Group or definition to which a key belongs."""
    parts = key.split("!")
    return "!".join(parts[:3] if len(parts) == 3 else parts[:5])
