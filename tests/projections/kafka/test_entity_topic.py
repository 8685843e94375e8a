"""Changes of entities as a function of the log: complete records, in the form of Debezium."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from annals import __version__
from annals.commands.store.hashes import LogRow
from annals.domain.registry.events import EntityCreated, EntityDeleted, EntityEvent, EntityRefreshed, EntityUpdated
from annals.projections.kafka.entity_topic import EntityTopic
from annals.projections.kafka.records import RecordContent, WindowPart
from tests.projections.events.test_xregistry_events import CAUGHT_UP, event, row
from tests.projections.kafka.publishing_rig import Rig
from tests.support.brokers.kafka import Kafka
from tests.support.registries.recorded import Registry

NOON: Final = "2026-01-01T12:00:00.000000Z"
MILLISECONDS: Final = 1767268800000
TIMES: Final = {"ts_ms": MILLISECONDS, "ts_us": MILLISECONDS * 1000, "ts_ns": MILLISECONDS * 1_000_000}


class PastLog:
    """A log that has the events before a window."""

    def __init__(self, *rows: LogRow) -> None:
        self._rows = {(row.stream, row.revision): row for row in rows}

    def predecessors(self, rows: list[LogRow]) -> list[LogRow]:
        found = (self._rows.get((row.stream, row.revision - 1)) for row in rows)
        return [row for row in found if row is not None]


def records(*events: EntityEvent, past: tuple[LogRow, ...] = (), schemas: bool = False) -> list[RecordContent]:
    rows = [row(position, each) for position, each in enumerate(events, CAUGHT_UP.first)]
    log: Any = PastLog(*past)
    return list(EntityTopic("p", schemas=schemas).records([WindowPart(CAUGHT_UP, rows)], log))


def entity(revision: int, kind: type[EntityEvent], name: str = "n", xid: str = "/dirs/D", **facts: Any) -> EntityEvent:
    attributes = {"name": name, "createdat": NOON, "modifiedat": NOON}
    return event(kind, xid, revision=revision, epoch=revision, attributes=attributes, **facts)


def columns(epoch: int, since: int, name: str = "n") -> dict[str, Any]:
    return {
        **{"xid": "/dirs/D", "type": "dirs", "parent": "/", "id": "D", "epoch": epoch},
        **{"createdat": NOON, "modifiedat": NOON, "document": None, "since": since},
        "attributes": json.dumps({"name": name, "createdat": NOON, "modifiedat": NOON}, separators=(",", ":")),
    }


def envelope(position: int, op: str, before: dict[str, Any] | None, after: dict[str, Any] | None) -> dict[str, Any]:
    return {
        "before": before,
        "after": after,
        "source": {
            **{"version": __version__, "connector": "annals", "name": "p", "snapshot": "false", **TIMES},
            **{"db": "https://registry.example", "table": "entities", "sequence": f'["9","{position}"]'},
            **{"position": position, "xregcorrelationid": "c", "caller": ""},
        },
        "transaction": {"id": "c", "total_order": position - 4, "data_collection_order": position - 4},
        "op": op,
        **TIMES,
    }


def test_the_life_of_an_entity() -> None:
    # Each change has the row before it, from the window or the log; deleting a deleted entity is no change (LEG-707)
    past = row(4, entity(1, EntityUpdated))
    found = records(
        entity(2, EntityUpdated, "ü"),
        entity(3, EntityRefreshed, "r"),
        entity(4, EntityDeleted, reason="pruned"),
        entity(5, EntityDeleted, reason="forgotten"),
        entity(6, EntityCreated),
        past=(past,),
    )
    assert {each.key for each in found} == {b'{"xid":"/dirs/D"}'}
    values = [None if each.value is None else json.loads(each.value) for each in found]
    first, second, third = (
        columns(1, 4),
        columns(2, 5) | {"attributes": columns(0, 0, "ü")["attributes"].replace("\\u00fc", "ü")},
        columns(3, 6, "r"),
    )
    assert values == [
        envelope(5, "u", first, second),
        envelope(6, "u", second, third),
        envelope(7, "d", third, None),
        None,
        envelope(9, "c", None, columns(6, 9)),
    ]
    assert [each.headers for each in found] == [
        [] if value is None else [("content-type", b"application/json")] for value in values
    ]


def test_what_is_outside_the_tree_is_left_out() -> None:
    assert records(entity(1, EntityCreated, xid="/subscriptions/s"), entity(1, EntityCreated, xid="/-/links/l")) == []


@pytest.mark.parametrize("end", ["key", "value"])
def test_schemas_describe_payloads(end: str) -> None:
    # Names and types are Kafka Connect's; a payload has exactly its schema's fields, and only optional ones are null
    created, deleted, _ = records(entity(1, EntityCreated), entity(2, EntityDeleted), schemas=True)
    for record in (created, deleted):
        found = json.loads((record.key if end == "key" else record.value) or b"")
        assert list(found) == ["schema", "payload"]
        check(found["schema"], found["payload"])
        plain = {each.position: each for each in records(entity(1, EntityCreated), entity(2, EntityDeleted))}
        if record is created:
            assert found["payload"] == json.loads(getattr(plain[record.position], end))
    names = {"key": "p.entities.Key", "value": "p.entities.Envelope"}
    assert found["schema"]["name"] == names[end]


_TYPES: Final[dict[str, Any]] = {"string": str, "int64": int, "struct": dict}


def check(schema: dict[str, Any], payload: Any) -> None:
    """Checks a payload against its schema."""
    if payload is None:
        assert schema["optional"]
        return
    assert type(payload) is _TYPES[schema["type"]]
    if schema["type"] == "struct":
        assert payload.keys() == {field["field"] for field in schema["fields"]}
        for field in schema["fields"]:
            check(field, payload[field["field"]])


@pytest.mark.uses("Kafka")
@pytest.mark.timeout(300)
def test_states_before_a_window_are_read_from_the_log(
    registry: Registry, broker: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    # In windows of any size; `before` of each record is `after` of the entity's previous record
    for number in range(5):
        registry.record(*((f"/dirs/d{each}", {"name": str(number)}) for each in range(300)))
    rig = Rig(registry.store, broker, topics=("entities",))
    monkeypatch.setattr("annals.projections.kafka.windows.WINDOW_EVENTS", 130)
    rig.publish()
    rig.check()
    last: dict[bytes, Any] = {}
    for records in rig.read("entities").values():
        for record in records:
            payload = json.loads(record.value or b"")["payload"]
            assert payload["before"] == last.get(record.key)
            last[record.key] = payload["after"]
    assert len(last) >= 300
