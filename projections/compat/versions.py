"""What the legacy APIs show: definitions with their numbers, retained Versions, and the targets of URIs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from annals.commands.store.database.registry_url import UNCONFIGURED_URL
from annals.domain.compat.legacy_apis import FACADE, LegacyApi, legacy_api_of, version_number
from annals.domain.compat.uris import VersionLocation, entity_path, locate_version, normalize_uri, uri_candidates
from annals.domain.decisions.compat.version_numbers import HIGHEST_NUMBER
from annals.domain.values import xid as xids
from annals.domain.values.json_text import Json, loads_trusted
from annals.projections.entities import xref
from annals.projections.entities.rows import EntityRow
from annals.projections.entities.view import View
from annals.projections.entities.xref import shown_version

#: Members of the façade that a Version of a Resource with an xref does not share with its target's Version.
_VERSION_MEMBERS: Final = ("number", "id", "uri")
#: Text that occurs in private members that have a façade.
_FACADE_MEMBER: Final = f'"{FACADE}":'


class CompatVersion(NamedTuple):
    """A Version as the legacy APIs show it.

    row: from the read model, or from the time when it was pruned (`is_retained`). facade: members that only the legacy
    APIs know. uri: absolute; a default one starts with the registry's URL at the Version's creation (LEG-604). id: as
    the client set it, or the path below the base of the legacy API.
    """

    row: EntityRow
    number: int
    facade: Mapping[str, Json]
    is_retained: bool
    uri: str
    id: str


class CompatVersions:
    """Reads Versions from a view of the read model, current or past.

    A definition with an xref shows its target's Versions under its own name (LEG-1207). Versions without a number
    predate numbers; they are shown once their definition has another Version (LEG-405).
    """

    def __init__(self, view: View) -> None:
        self._view = view

    def numbers(self, xid: str) -> list[int]:
        """The numbers of a Resource's Versions, live and retained, ascending.

        Cost: O(Versions), without reading their images.
        """
        definition = self._resolve_definition(xid)
        if definition is None:
            return []
        all_numbers = [*self._live_numbers(definition).values(), *self._view.publications.numbers(definition)]
        return sorted(number for number in all_numbers if number)

    def versions(self, xid: str) -> list[CompatVersion]:
        """The Versions of a Resource, live and retained, by ascending number; empty if the Resource does not exist."""
        definition = self._resolve_definition(xid)
        if definition is None:
            return []
        live_rows = self._view.subtree(f"{definition}/versions", [f"{xids.type_of(definition)}.versions"])
        rows_with_retention = [(row, False) for row in live_rows]
        rows_with_retention += [(row, True) for _, row in self._view.publications.rows(definition)]
        versions = (self._compat_version(xid, *row_with_retention) for row_with_retention in rows_with_retention)
        return sorted(
            (compat_version for compat_version in versions if compat_version.number), key=lambda shown: shown.number
        )

    def version(self, xid: str, number: int) -> CompatVersion | None:
        """The Version of a Resource with a number. Cost: lookups by key, unless its id differs from its number."""
        row = self._view.entity(f"{xid}/versions/{number}")
        if row is not None and _number_of_row(row) == number:
            return self._compat_version(xid, row, False)
        definition = self._resolve_definition(xid)
        if definition is None:
            return None
        retained_row = self._view.publications.row(definition, number)
        if retained_row is not None:
            return self._compat_version(xid, retained_row, True)
        versionid = next(
            (id for id, live_number in self._live_numbers(definition).items() if live_number == number), None
        )
        row = self._view.entity(f"{definition}/versions/{versionid}") if versionid is not None else None
        return self._compat_version(xid, row, False) if row is not None else None

    def latest(self, xid: str) -> CompatVersion | None:
        """The Version of a Resource with the highest number (LEG-407).

        Cost: look-ups by key, unless its definition does not have the number or the Version was deleted.
        """
        if (highest := self._highest_number(xid)) and (newest := self.version(xid, highest)) is not None:
            return newest
        numbers = self.numbers(xid)
        return self.version(xid, numbers[-1]) if numbers else None

    def by_uri(self, family: LegacyApi, uri: str, bases: Sequence[str]) -> CompatVersion | None:
        """The Version that a URI refers to: by its own URI, its path or its location in the registry (LEG-608 to 610).

        bases: absolute URLs that may precede paths of the family.
        """
        for candidate in uri_candidates(uri):
            if (published := self._view.publications.by_uri(family, candidate)) is not None:
                publication, retained_row = published
                row = retained_row or self._view.entity(publication.xid)
                if row is not None:
                    return self._compat_version(xids.resource_of(row.xid), row, retained_row is not None)
        location = locate_version(family, uri, bases)
        if location is not None:
            return self._version_at(family, location)
        return self._by_former_url(family, uri)

    # --- finding -----------------------------------------------------------------------------------------------------

    def _resolve_definition(self, xid: str) -> str | None:
        """The Resource whose Versions a Resource shows: itself, or its xref's target; None if there is none."""
        row = self._view.entity(xid)
        target = xref.xref_of(row)
        if target is None:
            return xid if row is not None else None
        target_row = self._view.entity(target)
        return target if target_row is not None and xref.xref_of(target_row) is None else None

    def _highest_number(self, xid: str) -> int:
        """The highest number that a Resource's Versions ever had; 0 if its definition does not have it."""
        definition = self._resolve_definition(xid)
        row = self._view.entity(definition) if definition is not None else None
        highest: int = loads_trusted(row.private).get(FACADE, {}).get(HIGHEST_NUMBER, 0) if row is not None else 0
        return highest

    def _live_numbers(self, definition: str) -> dict[str, int]:
        """The numbers of the Versions that the registry shows, by versionid."""
        privates = self._view.private_members(f"{definition}/versions")
        return {
            id: version_number(id, loads_trusted(private) if _FACADE_MEMBER in private else {})
            for id, private in privates
        }

    def _version_at(self, family: LegacyApi, location: VersionLocation) -> CompatVersion | None:
        definition = xids.join(family.groups, location.groupid, family.resources, location.id)
        compat_version = self.version(definition, location.version) if isinstance(location.version, int) else None
        if compat_version is not None:
            return compat_version
        source_definition = self._resolve_definition(definition)
        row = (
            self._view.entity(f"{source_definition}/versions/{location.version}")
            if source_definition is not None
            else None
        )
        return self._compat_version(definition, row, False) if row is not None else None

    def _by_former_url(self, family: LegacyApi, uri: str) -> CompatVersion | None:
        """The Version whose default URI starts with a former URL of the registry (LEG-604)."""
        for candidate in uri_candidates(uri):
            root, base, _ = candidate.partition(f"{family.base}/")
            location = locate_version(family, candidate, (root + base.rstrip("/"),)) if base else None
            compat_version = self._version_at(family, location) if location is not None else None
            if compat_version is not None and normalize_uri(compat_version.uri) == candidate:
                return compat_version
        return None

    # --- showing -----------------------------------------------------------------------------------------------------

    def _compat_version(self, xid: str, row: EntityRow, is_retained: bool) -> CompatVersion:
        """A row as a Version of the requested definition."""
        number = _number_of_row(row)
        created_position = row.since if row.born is None else row.born
        facade: dict[str, Any] = loads_trusted(row.private).get(FACADE, {})
        if not row.xid.startswith(f"{xid}/"):
            row = shown_version(row, xid)
            facade = {name: value for name, value in facade.items() if name not in _VERSION_MEMBERS}
        path = entity_path(xid, number)
        uri = facade.get("uri") or self._base_url(xid, created_position) + path
        return CompatVersion(row, number, facade, is_retained, uri, facade.get("id") or path)

    def _base_url(self, xid: str, created_position: int) -> str:
        family = legacy_api_of(xid)
        assert family is not None, "a legacy API shows it"
        (interaction,) = self._view.log.interactions(created_position - 1, 1)
        return (interaction.registry_url.rstrip("/") or UNCONFIGURED_URL) + family.base


def _number_of_row(row: EntityRow) -> int:
    return version_number(row.id, loads_trusted(row.private))
