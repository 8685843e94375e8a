"""Copies one definition of another registry with its Versions (LEG-902 to LEG-907)."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from annals.domain.compat.uris import default_version_path, normalize_uri
from annals.projections.replication.compat.client import LegacyClient, LegacyVersion, VersionUnchanged
from annals.projections.replication.compat.local_names import local_xids
from annals.projections.replication.compat.local_registry import LegacyLocalRegistry
from annals.projections.replication.link_conflicts import LinkConflicts


class _EqualVersion(NamedTuple):
    """A Version that was equal in both registries. definition: xid of its local definition."""

    etag: str
    uri: str
    definition: str


class _DocumentChanged(Exception):
    """A Version that came over the link has another document now, so its definition was replaced."""

    def __init__(self, definition: str) -> None:
        super().__init__(definition)
        self.definition = definition


class DefinitionCopier:
    """Copies definitions. Remembers Versions that were equal, to avoid fetching them again."""

    def __init__(self, client: LegacyClient, local_registry: LegacyLocalRegistry, conflicts: LinkConflicts) -> None:
        self._client = client
        self._local_registry = local_registry
        self._conflicts = conflicts
        self._equal_versions: dict[str, _EqualVersion] = {}

    def copy_definition(self, group: str, id: str, local_group: str) -> set[str]:
        """Copies a definition as it is now. Returns the local xids that hold its Versions.

        group, id: in the other registry, decoded.
        local_group: xid of the local Group.
        Raises: RemoteError.
        """
        try:
            return self._copy_versions(group, id, local_group)
        except _DocumentChanged as error:
            # Known URIs with other documents: it was deleted and created again, or written through another API.
            self._conflicts.attempt(error.definition, partial(self._local_registry.remove, error.definition))
            self._equal_versions.clear()
        try:
            return self._copy_versions(group, id, local_group)
        except _DocumentChanged as error:
            return {error.definition}

    def _copy_versions(self, group: str, id: str, local_group: str) -> set[str]:
        local_definitions: set[str] = set()
        uris: set[str] = set()
        for number in self._client.version_numbers(group, id):
            version = self._fetch_version(group, id, number)
            if version is None:
                continue
            uris.add(normalize_uri(version.uri))
            xid = (
                version.definition
                if isinstance(version, _EqualVersion)
                else self._copy_version(version, id, local_group)
            )
            if xid is not None:
                local_definitions.add(xid)
        for xid in local_definitions:
            self._prune(xid, uris)
        return local_definitions

    def _fetch_version(self, group: str, id: str, number: int) -> LegacyVersion | _EqualVersion | None:
        path = default_version_path(self._local_registry.family, group, id, number)
        equal_version = self._equal_versions.pop(path, None)
        if equal_version is None or not self._local_registry.has_uri(equal_version.uri):
            return self._client.version(group, id, number)
        try:
            return self._client.version(group, id, number, equal_version.etag)
        except VersionUnchanged:
            self._equal_versions[path] = equal_version
            return equal_version

    def _copy_version(self, version: LegacyVersion, id: str, local_group: str) -> str | None:
        """The local definition of a Version, after adding it; None if it must not be copied.

        Raises: _DocumentChanged.
        """
        if self._local_registry.is_own(version.authority):
            return None
        if version.content is None:
            self._conflicts.add(version.path, "its document is stored outside of the other registry")
            return None
        local_version = self._local_registry.version_by_uri(version.uri)
        if local_version is None:
            return self._add_version(version, id, local_group)
        if local_version.content != version.content:
            if self._local_registry.came_over_link_at(local_version.definition):
                raise _DocumentChanged(local_version.definition)
            self._conflicts.add(
                version.path, f"{local_version.definition} has another document under its URI {version.uri}"
            )
            return None
        if version.etag:
            self._equal_versions[version.path] = _EqualVersion(version.etag, version.uri, local_version.definition)
        return local_version.definition

    def _add_version(self, version: LegacyVersion, id: str, local_group: str) -> str | None:
        link, family = self._local_registry.link, self._local_registry.family
        for xid in local_xids(link, f"{local_group}/{family.resources}", id, version.authority):
            row = self._local_registry.entity(xid)
            if row is None or normalize_uri(self._local_registry.authority(row)) == normalize_uri(version.authority):
                is_added = self._conflicts.attempt(
                    version.path, partial(self._local_registry.add_version, xid, version)
                )
                return xid if is_added or row is not None else None
        self._conflicts.add(version.path, "its name belongs to a definition of another authority")
        return None

    def _prune(self, xid: str, uris: set[str]) -> None:
        """Deletes Versions that no longer exist remotely, from a definition that came over the link (LEG-909)."""
        if not self._local_registry.came_over_link_at(xid):
            return
        for compat_version in self._local_registry.versions(xid):
            if normalize_uri(compat_version.uri) not in uris:
                self._conflicts.attempt(
                    f"{xid}/versions/{compat_version.number}",
                    partial(self._local_registry.remove, xid, compat_version.number),
                )
