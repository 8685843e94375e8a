"""Look-ups of schemas in a write transaction, which write what it has appended before, if they may find that."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from annals.domain.confluent.facts import facts_of, subject_name
from annals.domain.confluent.schema_index import SchemaIndex
from annals.domain.confluent.schema_versions import SchemaVersion
from annals.domain.confluent.subject_versions import SubjectVersions
from annals.domain.confluent.subjects import VERSIONS_TYPE
from annals.domain.registry.events import EntityEvent
from annals.domain.values import xid as xids


class SchemaLookups:
    """`annals.domain.confluent.schema_index.SchemaIndex` over written rows.

    So the commands of a batch that add different subjects still share their writes. What decisions ask for again and
    again stays known until there is another event.
    """

    def __init__(self, stored: SchemaIndex, never_existed: Callable[[str], bool]) -> None:
        """never_existed: whether an xid is known, without a query, to have had no event in any letter case."""
        self._stored = stored
        self._never_existed = never_existed
        #: Writes what is appended.
        self.write: Callable[[], None] = _write_nothing
        #: What look-ups can ask for that finds an appended event.
        self._found: set[object] = set()
        self._is_unknown = self._has_references = False
        self._versions: dict[tuple[str, str], SubjectVersions] = {}
        self._by_id: dict[int, Sequence[SchemaVersion]] = {}
        self._names: dict[str, Sequence[str]] = {}  # by the stream of the Resource

    def prefetch(
        self, subjects: Collection[tuple[str, str]], whole_subjects: Collection[tuple[str, str]], ids: Collection[int]
    ) -> None:
        """Reads the newest versions of subjects, by Group and name, all of others, and those with ids: a query each."""
        if subjects:
            self._versions |= self._after_writing(None).subject_versions(subjects)
        if whole_subjects:
            found = self._after_writing(None).versions_of(whole_subjects)
            self._versions |= {subject: SubjectVersions(versions) for subject, versions in found.items()}
        if ids:
            self._by_id |= self._after_writing(None).by_ids(ids)

    def forget(self) -> None:
        """Forgets what is known, because there are other events."""
        self._versions.clear()
        self._by_id.clear()
        self._names.clear()

    def add(self, event: EntityEvent) -> None:
        """Notes an event that is appended and not written."""
        if event.type != VERSIONS_TYPE:
            return
        facts, resource = facts_of(event.private), xids.resource_of(event.xid)
        if event.revision > 1 or "id" not in facts:
            self._is_unknown = True  # which rows it ends is in the store only
            self.forget()
            return
        group, name = xids.segments(event.xid)[1], subject_name(resource, facts)
        self._versions.pop((group, name), None)
        self._by_id.pop(facts["id"], None)
        self._names.pop(xids.stream(resource), None)
        group = group.lower()
        self._found |= {
            group,
            (group, name),
            xids.stream(resource),
            *(facts[name] for name in ("id", "key", "guid")),
        }
        self._has_references = self._has_references or "references" in facts

    def set_written(self) -> None:
        """Notes that all is written."""
        self._found.clear()
        self._is_unknown = self._has_references = False

    def versions(self, group: str, subject: str) -> Sequence[SchemaVersion]:
        return self._subject_versions(group, subject).all

    def versions_of(self, subjects: Collection[tuple[str, str]]) -> Mapping[tuple[str, str], Sequence[SchemaVersion]]:
        return {subject: self.versions(*subject) for subject in subjects}

    def subject_versions(self, subjects: Collection[tuple[str, str]]) -> Mapping[tuple[str, str], SubjectVersions]:
        return {subject: self._subject_versions(*subject) for subject in subjects}

    def _subject_versions(self, group: str, subject: str) -> SubjectVersions:
        if (group, subject) not in self._versions:
            stored = self._after_writing((group.lower(), subject))
            self._versions |= stored.subject_versions([(group, subject)])
        return self._versions[group, subject]

    def by_key(self, key: str) -> Sequence[SchemaVersion]:
        return self._after_writing(key).by_key(key)

    def by_id(self, id: int) -> Sequence[SchemaVersion]:
        if id not in self._by_id:
            self._by_id[id] = self._after_writing(id).by_id(id)
        return self._by_id[id]

    def by_ids(self, ids: Collection[int]) -> Mapping[int, Sequence[SchemaVersion]]:
        return {id: self.by_id(id) for id in ids}

    def by_guid(self, guid: str) -> Sequence[SchemaVersion]:
        return self._after_writing(guid).by_guid(guid)

    def referrers(self, group: str, subject: str, number: int, qualified: str = "") -> Sequence[SchemaVersion]:
        if self._has_references:
            self.write()
        return self._after_writing(None).referrers(group, subject, number, qualified)

    def names_at(self, resource: str) -> Sequence[str]:
        if self._never_existed(resource):
            return ()
        stream = xids.stream(resource)
        if stream not in self._names:
            self._names[stream] = self._after_writing(stream).names_at(resource)
        return self._names[stream]

    def has_versions(self, group: str) -> bool:
        return self._after_writing(group.lower()).has_versions(group)

    def listed(self, groups: Iterable[str]) -> Iterable[SchemaVersion]:
        if self._found:
            self.write()
        return self._after_writing(None).listed(groups)

    def sole_ids(self, keys: Collection[str]) -> Mapping[str, int | None]:
        if not self._found.isdisjoint(keys):
            self.write()
        return self._after_writing(None).sole_ids(keys)

    def ids_of_keys(self, keys: Collection[str]) -> Mapping[str, Sequence[tuple[str, int]]]:
        if not self._found.isdisjoint(keys):
            self.write()
        return self._after_writing(None).ids_of_keys(keys)

    def highest_id(self) -> int:
        if self._found:
            self.write()
        return self._after_writing(None).highest_id()

    def _after_writing(self, wanted: object) -> SchemaIndex:
        """The stored rows, with the appended ones if these may have what is wanted."""
        if self._is_unknown or wanted in self._found:
            self.write()
        return self._stored


def _write_nothing() -> None:
    pass
