"""Look-ups of schemas in a write transaction, which write what it has appended before, if they may find that."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from annals.domain.confluent.facts import facts_of, subject_name
from annals.domain.confluent.schema_versions import SchemaIndex, SchemaVersion
from annals.domain.confluent.subjects import VERSIONS_TYPE
from annals.domain.registry.events import EntityEvent
from annals.domain.values import xid as xids


class SchemaLookups:
    """`annals.domain.confluent.schema_versions.SchemaIndex` over written rows.

    So the commands of a batch that add different subjects still share their writes. What decisions ask for again and
    again stays known until there is another event.
    """

    def __init__(self, stored: SchemaIndex) -> None:
        self._stored = stored
        #: Writes what is appended.
        self.write: Callable[[], None] = _write_nothing
        #: What look-ups can ask for that finds an appended event.
        self._found: set[object] = set()
        self._is_unknown = self._has_references = False
        self._versions: dict[tuple[str, str], Sequence[SchemaVersion]] = {}
        self._names: dict[str, Sequence[str]] = {}

    def forget(self) -> None:
        """Forgets what is known, because there are other events."""
        self._versions.clear()
        self._names.clear()

    def add(self, event: EntityEvent) -> None:
        """Notes an event that is appended and not written."""
        self.forget()
        if event.type != VERSIONS_TYPE:
            return
        facts, resource = facts_of(event.private), event.xid.partition("/versions/")[0]
        if event.revision > 1 or "id" not in facts:
            self._is_unknown = True  # which rows it ends is in the store only
            return
        group = xids.segments(event.xid)[1].lower()
        self._found |= {
            group,
            (group, subject_name(resource, facts)),
            xids.stream(resource),
            *(facts[name] for name in ("id", "key", "guid")),
        }
        self._has_references = self._has_references or "references" in facts

    def set_written(self) -> None:
        """Notes that all is written."""
        self._found.clear()
        self._is_unknown = self._has_references = False

    def versions(self, group: str, subject: str) -> Sequence[SchemaVersion]:
        key = group.lower(), subject
        if key not in self._versions:
            self._versions[key] = self._after_writing(key).versions(group, subject)
        return self._versions[key]

    def by_key(self, key: str) -> Sequence[SchemaVersion]:
        return self._after_writing(key).by_key(key)

    def by_id(self, id: int) -> Sequence[SchemaVersion]:
        return self._after_writing(id).by_id(id)

    def by_guid(self, guid: str) -> Sequence[SchemaVersion]:
        return self._after_writing(guid).by_guid(guid)

    def referrers(self, group: str, subject: str, number: int, qualified: str = "") -> Sequence[SchemaVersion]:
        if self._has_references:
            self.write()
        return self._after_writing(None).referrers(group, subject, number, qualified)

    def names_at(self, resource: str) -> Sequence[str]:
        if resource not in self._names:
            self._names[resource] = self._after_writing(xids.stream(resource)).names_at(resource)
        return self._names[resource]

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
