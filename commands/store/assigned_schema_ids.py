"""The ids of schema contents as a write transaction sees them: stored ones, and those that it has assigned itself."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from annals.domain.confluent.facts import facts_of
from annals.domain.confluent.schema_index import ANY_GROUP, SchemaIndex
from annals.domain.confluent.subjects import VERSIONS_TYPE
from annals.domain.registry.events import EntityEvent
from annals.domain.values import xid as xids


class AssignedSchemaIds:
    """`annals.domain.confluent.schema_index.SchemaIds` without writing what the transaction has appended.

    So a batch of commands that add schemas still shares its writes. Asking for all of their contents at the beginning
    takes one query.
    """

    def __init__(self, stored: SchemaIndex) -> None:
        self._stored = stored
        #: The highest id at the start of the transaction; None if it is not known.
        self.stored_highest: int | None = None
        self._known: dict[str, Sequence[tuple[str, int]]] = {}  # what is stored, by key
        self._assigned: dict[str, list[tuple[str, int]]] = {}  # by key, the last one last
        self._assigned_keys: dict[int, list[str]] = {}  # by id, the last one last
        self._highest = self._kept_highest = 0
        self._undoable: list[str] = []  # keys since the last `release`

    def ids_of_keys(self, keys: Collection[str]) -> Mapping[str, Sequence[tuple[str, int]]]:
        self._load(keys)
        return {key: [*reversed(self._assigned.get(key, ())), *self._known[key]] for key in keys}

    def _load(self, keys: Collection[str]) -> None:
        """Loads what is stored; the Groups only of contents that have several ids, because copies can be many."""
        several_ids: set[str] = set()
        if unknown := [key for key in keys if key not in self._known]:
            sole_ids = self._stored.sole_ids(unknown)
            for key in unknown:
                id = sole_ids.get(key)
                self._known[key] = () if id is None else ((ANY_GROUP, id),)
            several_ids |= {key for key, id in sole_ids.items() if id is None}
        several_ids |= {key for key in keys if self._has_several_ids(key)}
        if several_ids:
            self._known.update(self._stored.ids_of_keys(several_ids))

    def _has_several_ids(self, key: str) -> bool:
        """Whether a content that had one id has got another one in this transaction, or another content its id."""
        known, assigned = self._known.get(key, ()), self._assigned.get(key, ())
        return any(
            group == ANY_GROUP
            and (any(new_id != id for _, new_id in assigned) or set(self._assigned_keys.get(id, ())) - {key})
            for group, id in known
        )

    def highest_id(self) -> int:
        if self.stored_highest is None:
            self.stored_highest = self._stored.highest_id()
        return max(self.stored_highest, self._highest)

    @property
    def known_highest(self) -> int | None:
        """The highest id with those that the transaction has assigned; None if it is not known."""
        return None if self.stored_highest is None else max(self.stored_highest, self._highest)

    def add(self, event: EntityEvent) -> None:
        """Adds the id that an appended event gives to a content."""
        if event.type != VERSIONS_TYPE:
            return
        facts = facts_of(event.private)
        if "id" in facts and "key" in facts:
            self._assigned.setdefault(facts["key"], []).append((xids.segments(event.xid)[1], facts["id"]))
            self._assigned_keys.setdefault(facts["id"], []).append(facts["key"])
            self._undoable.append(facts["key"])
            self._highest = max(self._highest, facts["id"])

    def release(self) -> None:
        """Keeps what was added, whatever `roll_back` undoes later."""
        self._undoable.clear()
        self._kept_highest = self._highest

    def roll_back(self) -> None:
        """Drops what was added since the last `release`."""
        while self._undoable:
            _, id = self._assigned[self._undoable.pop()].pop()
            self._assigned_keys[id].pop()
        self._highest = self._kept_highest
