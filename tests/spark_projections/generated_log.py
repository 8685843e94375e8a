"""Generates a log of any length without requests: the log that a busy registry would have written.

Most interactions add a Version to a schema or change one, as in a real registry; some create or delete schemas, and a
few create thousands. The events have the revisions, epochs, creation positions and hashes that a registry would record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Final, NamedTuple

from annals.commands.store import hashes
from annals.commands.store.clock import format_time
from annals.commands.store.hashes import NO_INTERACTION, ChainHasher, Interaction, LogRow
from annals.commands.store.mapper import after_image, stored_state
from annals.domain.registry.events import EntityCreated, EntityDeleted, EntityEvent, EntityRefreshed, EntityUpdated

GROUPS: Final = 50
#: The number of schemas that an import creates, and of interactions for each import.
IMPORT: Final = 2000
RARE: Final = 10_000

_BEGAN: Final = datetime(2024, 1, 1, tzinfo=UTC)
_GROUP: Final = "schemagroups"
_SCHEMA: Final = "schemagroups.schemas"
_VERSION: Final = "schemagroups.schemas.versions"
_CHANGED: Final = {"changed": ("epoch", "modifiedat", "name")}


class Change(NamedTuple):
    """A change of one entity by an interaction. further: more members of its event."""

    kind: type[EntityEvent]
    xid: str
    type: str
    attributes: dict[str, Any]
    further: dict[str, Any] = {}


class _Stream(NamedTuple):
    """The last state of an entity. hash: of its after image, as a number; 0 once it is deleted."""

    revision: int = 0
    epoch: int = 0
    born: int = 0
    hash: int = 0


class Log:
    """The log so far. end: its last interaction. living, replaced: its numbers of live and past rows."""

    def __init__(self) -> None:
        self.end = NO_INTERACTION
        self.living = self.replaced = 0
        self._streams: dict[str, _Stream] = {}
        self._sum = 0

    def record(self, *changes: Change) -> tuple[Interaction, list[LogRow]]:
        """Adds an interaction."""
        before = self.end.last
        now, id = _BEGAN + timedelta(seconds=before), f"{before:032x}"
        rows = [self._row(position, change, now, id) for position, change in enumerate(changes, before + 1)]
        facts = NO_INTERACTION._replace(
            last=before + len(rows),
            first=before + 1,
            xregcorrelationid=id,
            folded=id,
            time=format_time(now),
            caller=f"caller{before % 7}",
            command="WriteTree POST /schemagroups",
            registry_url="https://registry.example.com",
        )
        chain, statehash = ChainHasher(self.end.chain, facts), (self._sum % (1 << 256)).to_bytes(32)
        for row in rows:
            chain.add(row)
        self.end = facts._replace(chain=chain.digest(statehash), state=statehash)
        return self.end, rows

    def _row(self, position: int, change: Change, now: datetime, id: str) -> LogRow:
        old = self._streams.get(change.xid, _Stream())
        fresh, gone = change.kind is EntityCreated, change.kind is EntityDeleted
        born, epoch = (position, 1) if fresh else (old.born, old.epoch + (change.kind is EntityUpdated))
        own: dict[str, Any] = {"xid": change.xid, "type": change.type, "attributes": change.attributes}
        own["born"] = None if fresh or gone else born
        event = change.kind(
            **own, revision=old.revision + 1, epoch=epoch, xregcorrelationid=id, time=now, **change.further
        )
        whole = after_image(event)
        hash = 0 if gone else int.from_bytes(hashes.entity_hash(whole))
        self._sum += hash - old.hash
        self.living += bool(hash) - bool(old.hash)
        self.replaced += bool(old.hash)
        self._streams[change.xid] = _Stream(event.revision, epoch, born, hash)
        return LogRow(position, change.xid, event.revision, event.TOPIC, stored_state(event, whole))


def interactions(log: Log, events: int, seed: int = 1) -> Iterator[tuple[Interaction, list[LogRow]]]:
    """A history of `events` events or some more, in an empty log."""
    chance, schemas, versions = Random(seed), list[str](), dict[str, int]()
    yield log.record(Change(EntityCreated, "/", "/", {"registryid": "long"}), *map(_group, range(GROUPS)))
    for count in range(events):
        draw = chance.random()
        if count % RARE == 0 or draw < 0.1:
            made = range(len(schemas), len(schemas) + (1 if count % RARE else IMPORT))
            new = [f"/schemagroups/g{chance.randrange(GROUPS)}/schemas/s{number}" for number in made]
            schemas += new
            versions |= dict.fromkeys(new, 1)
            yield log.record(*(change for xid in new for change in _created(xid)))
        elif (xid := schemas[int(len(schemas) * draw * chance.random())]) not in versions:
            versions[xid] = 1  # a deleted schema is created again
            yield log.record(*_created(xid))
        elif draw < 0.13:
            yield log.record(*_deleted(xid, versions.pop(xid)))
        elif draw < 0.4:
            version = chance.randint(1, versions[xid])
            yield log.record(_version(EntityUpdated, xid, version, f"n{count}", _CHANGED))
        else:
            versions[xid] += 1
            yield log.record(*_added(xid, versions[xid]))
        if log.end.last >= events:
            return


def _group(number: int) -> Change:
    id = f"g{number}"
    return Change(EntityCreated, f"/schemagroups/{id}", _GROUP, {"schemagroupid": id, "name": f"Group {number}"})


def _created(xid: str) -> tuple[Change, ...]:
    return _schema(EntityCreated, xid, 1), _version(EntityCreated, xid, 1)


def _added(xid: str, number: int) -> tuple[Change, ...]:
    """Adds a Version as the default one; the Version before it is refreshed, because it no longer is."""
    updated = _schema(EntityUpdated, xid, number, _CHANGED)
    return updated, _version(EntityRefreshed, xid, number - 1), _version(EntityCreated, xid, number)


def _deleted(xid: str, count: int) -> Iterable[Change]:
    yield Change(EntityDeleted, xid, _SCHEMA, {})
    for number in range(1, count + 1):
        yield Change(EntityDeleted, f"{xid}/versions/{number}", _VERSION, {})


def _schema(kind: type[EntityEvent], xid: str, number: int, further: dict[str, Any] | None = None) -> Change:
    meta = {"schemaid": xid.rpartition("/")[2], "createdat": "2024-01-01T00:00:00Z", "defaultversionid": str(number)}
    attributes = _common_attributes(xid, number) | {"meta": meta, "versionscount": number}
    return Change(kind, xid, _SCHEMA, attributes, further or {})


def _version(
    kind: type[EntityEvent], xid: str, number: int, name: str = "", further: dict[str, Any] | None = None
) -> Change:
    attributes = _common_attributes(xid, number) | {
        "isdefault": kind is EntityCreated,
        "name": name or f"Version {number}",
    }
    return Change(kind, f"{xid}/versions/{number}", _VERSION, attributes, further or {})


def _common_attributes(xid: str, number: int) -> dict[str, Any]:
    return {
        "schemaid": xid.rpartition("/")[2],
        "versionid": str(number),
        "name": f"Schema of {xid}",
        "labels": {"team": f"team{number % 9}"},
        "ancestorid": str(max(1, number - 1)),
        "format": "JsonSchema/draft-07",
    }
