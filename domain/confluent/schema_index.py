"""The port through which versions of subjects and their ids are looked up.

Rules CSR-401 to CSR-413, CSR-421, CSR-601, CSR-606 to CSR-608.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, Protocol

from annals.domain.confluent.schema_versions import SchemaVersion
from annals.domain.confluent.subject_versions import SubjectVersions

#: Stands for every Group in which a content was ever registered.
ANY_GROUP: Final = ""


class SchemaIds(Protocol):
    """The ids that contents have."""

    def ids_of_keys(self, keys: Collection[str]) -> Mapping[str, Sequence[tuple[str, int]]]:
        """The Groups and ids under which contents were ever registered, the newest first, also if they are gone.

        A content that always had the same id, and is alone with it, may have one pair, with ANY_GROUP.
        """

    def highest_id(self) -> int:
        """The highest id that was ever given, 0 if none was."""


def id_in_group(ids: Sequence[tuple[str, int]], group: str) -> int | None:
    """The id of a content in a Group, else the one that it had last elsewhere; None if it was never registered.

    ids: from `SchemaIds.ids_of_keys`.
    """
    return next((id for known_group, id in ids if known_group == group), ids[0][1] if ids else None)


class SchemaIndex(SchemaIds, Protocol):
    """The look-ups of versions that decisions and answers need. Rows that are gone are never found."""

    def sole_ids(self, keys: Collection[str]) -> Mapping[str, int | None]:
        """The id of each content that always had the same and is alone with it; None if it had several, or if another
        content has it too. Also if its rows are gone.

        Cost: a look-up each, however many Versions have the content.
        """

    def versions(self, group: str, subject: str) -> Sequence[SchemaVersion]:
        """The live and soft-deleted versions of a subject, by number."""

    def versions_of(self, subjects: Collection[tuple[str, str]]) -> Mapping[tuple[str, str], Sequence[SchemaVersion]]:
        """`versions` of many subjects, by Group and name; of each of them."""

    def subject_versions(self, subjects: Collection[tuple[str, str]]) -> Mapping[tuple[str, str], SubjectVersions]:
        """The versions of some subjects, by Group and name; of each of them. Cost: independent of their numbers."""

    def by_key(self, key: str) -> Sequence[SchemaVersion]:
        """The rows with a content, the newest first."""

    def by_id(self, id: int) -> Sequence[SchemaVersion]:
        """The rows with an id, the oldest first."""

    def by_ids(self, ids: Collection[int]) -> Mapping[int, Sequence[SchemaVersion]]:
        """`by_id` of many ids; of each of them."""

    def by_guid(self, guid: str) -> Sequence[SchemaVersion]:
        """The rows with a guid, the oldest first."""

    def referrers(self, group: str, subject: str, number: int, qualified: str = "") -> Sequence[SchemaVersion]:
        """The live and soft-deleted versions that refer to a version.

        qualified: its subject with the context, as schemas of other contexts refer to it.
        """

    def names_at(self, resource: str) -> Sequence[str]:
        """The names of the subjects whose versions were ever at a Resource, in any letter case, and are not gone."""

    def has_versions(self, group: str) -> bool:
        """Whether a Group has live or soft-deleted versions."""

    def listed(self, groups: Iterable[str]) -> Iterable[SchemaVersion]:
        """The live and soft-deleted versions in some Groups."""


class NoSchemas:
    """The `SchemaIndex` of a registry without schemas."""

    def versions(self, group: str, subject: str) -> Sequence[SchemaVersion]:
        return ()

    def versions_of(self, subjects: Collection[tuple[str, str]]) -> Mapping[tuple[str, str], Sequence[SchemaVersion]]:
        return {subject: self.versions(*subject) for subject in subjects}

    def subject_versions(self, subjects: Collection[tuple[str, str]]) -> Mapping[tuple[str, str], SubjectVersions]:
        return {subject: SubjectVersions(self.versions(*subject)) for subject in subjects}

    def by_key(self, key: str) -> Sequence[SchemaVersion]:
        return ()

    def by_id(self, id: int) -> Sequence[SchemaVersion]:
        return ()

    def by_ids(self, ids: Collection[int]) -> Mapping[int, Sequence[SchemaVersion]]:
        return dict.fromkeys(ids, ())

    def by_guid(self, guid: str) -> Sequence[SchemaVersion]:
        return ()

    def sole_ids(self, keys: Collection[str]) -> Mapping[str, int | None]:
        return {}

    def ids_of_keys(self, keys: Collection[str]) -> Mapping[str, Sequence[tuple[str, int]]]:
        return {}

    def highest_id(self) -> int:
        return 0

    def referrers(self, group: str, subject: str, number: int, qualified: str = "") -> Sequence[SchemaVersion]:
        return ()

    def names_at(self, resource: str) -> Sequence[str]:
        return ()

    def has_versions(self, group: str) -> bool:
        return False

    def listed(self, groups: Iterable[str]) -> Iterable[SchemaVersion]:
        return ()
