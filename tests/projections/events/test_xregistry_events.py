"""xRegistry events as a function of the log: how they are read from it and written as CloudEvents."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from cloudevents.core.bindings import http, kafka
from cloudevents.core.formats.json import JSONFormat
from hypothesis import HealthCheck, given, settings

from annals.commands.store.database.registry_url import UNCONFIGURED_URL
from annals.commands.store.hashes import NO_INTERACTION, Interaction, LogRow
from annals.commands.store.log import Store
from annals.commands.store.mapper import EventMapper, UnknownTopic
from annals.domain.access.roles import Caller, Role
from annals.domain.decisions.world import Decision
from annals.domain.errors.problems import Problem
from annals.domain.registry.events import EntityCreated, EntityDeleted, EntityEvent, EntityRefreshed, EntityUpdated
from annals.domain.values import xid as xids
from annals.projections.events.xregistry_events import ChangeEvent, XRegistryEvents
from tests.support.event_messages import event_messages
from tests.support.examples import examples
from tests.support.histories import Step, command, histories
from tests.support.registries.memory import MemoryRegistry
from tests.support.registries.recorded import COMMAND

NOON = "2026-01-01T12:00:00.000000Z"
FEW = settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
CAUGHT_UP = NO_INTERACTION._replace(
    first=5, last=9, xregcorrelationid="c", time=NOON, registry_url="https://registry.example"
)


def event(kind: type[EntityEvent], xid: str = "/dirs/D", **facts: Any) -> EntityEvent:
    """An event at noon, of the interaction `c`."""
    shared = {"xid": xid, "type": xids.type_of(xid), "revision": 1, "epoch": 1, "attributes": {"dirid": "D"}}
    return kind(**shared | {"xregcorrelationid": "c", "time": datetime(2026, 1, 1, 12, tzinfo=UTC)} | facts)


def row(position: int, of: EntityEvent) -> LogRow:
    stored = EventMapper().to_stored_event(of)
    return LogRow(position, of.stream, of.revision, stored.topic, stored.state)


def messages(*events: EntityEvent, of: Interaction = CAUGHT_UP, changed: bool = True) -> list[ChangeEvent]:
    rows = [row(position, each) for position, each in enumerate(events, of.first)]
    return list(XRegistryEvents(changed).messages(of, rows))


def test_an_event_as_a_cloudevent() -> None:
    # EV-10, EV-14, EV-16, EV-21, EV-36: every attribute, and the position of the stored event
    [message] = messages(event(EntityUpdated, changed=("epoch", "meta.labels")))
    assert message.position == 5
    assert json.loads(message.json()) == {
        "specversion": "1.0",
        "id": "c.0.xregistry.group.updated",
        "source": "https://registry.example",
        "type": "io.xregistry.group.updated",
        "subject": "/dirs/D",
        "time": NOON,
        "xregcorrelationid": "c",
        "datacontenttype": "application/json",
        "data": {"changed": ["epoch", "meta.labels"]},
    }


def test_the_events_of_one_interaction() -> None:
    # EV-16, EV-47, EV-72, EV-77: in log order, deprecation last; ids count refreshes, which are not published
    given = [
        event(EntityUpdated, "/", changed=("model",)),
        event(EntityUpdated, "/model", changed=("model", "modelsource")),
        event(EntityRefreshed, "/dirs/a", changed=("dirs",)),
        event(EntityCreated, "/dirs/D", deprecated_changed=()),
        event(EntityDeleted, "/dirs/D/files/F/versions/V", reason="pruned"),
    ]
    assert [(message.id, message.subject, message.changed) for message in messages(*given)] == [
        ("c.0.xregistry.registry.updated", "/", ("model",)),
        ("c.1.xregistry.model.updated", "/model", None),
        ("c.1.xregistry.modelsource.updated", "/modelsource", None),
        ("c.3.xregistry.group.created", "/dirs/D", None),
        ("c.3.xregistry.group.deprecation", "/dirs/D", ()),
        ("c.4.xregistry.version.deleted", "/dirs/D/files/F/versions/V", None),
    ]


def test_an_id_does_not_depend_on_the_position() -> None:
    # EV-16: a copy of the log with other positions has the same ids
    moved = CAUGHT_UP._replace(first=70)
    given = event(EntityCreated), event(EntityUpdated, "/dirs/e")
    assert [message.id for message in messages(*given)] == [message.id for message in messages(*given, of=moved)]


@pytest.mark.parametrize("kind", [EntityCreated, EntityDeleted])
@pytest.mark.parametrize("xid", xids.ROOT_STREAMS)
def test_the_creation_of_a_registry_has_no_event(kind: type[EntityEvent], xid: str) -> None:
    # EV-2, EV-3: the registry, its model and its capabilities are only ever updated
    assert messages(event(kind, xid)) == []


def test_changed_can_be_kept_private() -> None:
    # EV-41, EV-49: with the switch off no event has data, and nothing else differs
    given = event(EntityUpdated, changed=("deprecated",), deprecated_changed=("removal",))
    open, private = messages(given), messages(given, changed=False)
    assert private == [message._replace(changed=None) for message in open]
    assert all({"data", "datacontenttype"}.isdisjoint(json.loads(message.json())) for message in private)


@pytest.mark.parametrize(
    ("recorded", "source"),
    [
        ("https://x.example/registry", "https://x.example/registry"),
        ("https://x.example/", "https://x.example"),
        ("", UNCONFIGURED_URL),
    ],
)
def test_the_source_is_the_registry_of_its_day(recorded: str, source: str) -> None:
    # EV-12, EV-13: the absolute URL that the interaction recorded, without a trailing slash
    [message] = messages(event(EntityCreated), of=CAUGHT_UP._replace(registry_url=recorded))
    assert message.source == source


EVERY_SHAPE = messages(
    event(EntityUpdated, "/", changed=("epoch",)),
    event(EntityUpdated, "/model", changed=("model", "modelsource")),
    event(EntityCreated, "/dirs/a~b:@-.c", deprecated_changed=("alternative", "removal")),
    event(EntityUpdated, "/dirs/D/files/F", changed=()),
    event(EntityDeleted, "/dirs/D/files/F/versions/V"),
)


@pytest.mark.parametrize("time", [NOON, "2026-01-01T12:00:00.000010Z", "2026-01-01T12:00:00.123456Z"])
@pytest.mark.parametrize("message", EVERY_SHAPE, ids=lambda message: message.type)
def test_the_cloudevents_library_agrees(message: ChangeEvent, time: str) -> None:
    # EV-18, EV-22, EV-23: structured JSON, and binary mode of HTTP and Kafka, with the same values
    message = message._replace(time=time)
    whole = json.loads(message.json())
    assert json.loads(JSONFormat().write(message.cloudevent())) == whole
    data, type = whole.pop("data", None), whole.pop("datacontenttype", None)
    over_http, over_kafka = http.to_binary_event(message.cloudevent()), kafka.to_binary_event(message.cloudevent())
    assert {f"ce-{name}": value for name, value in whole.items()} == _context_headers(over_http.headers)
    assert {f"ce_{name}": value.encode() for name, value in whole.items()} == _context_headers(over_kafka.headers)
    for body in (over_http.body, over_kafka.value):
        assert (json.loads(body) if body else None) == data
    assert {name.lower(): value for name, value in over_http.headers.items()}.get("content-type") == type


def test_json_is_one_line() -> None:
    # EV-23: so that a stream can have one event per line
    assert not any(b"\n" in message.json() for message in EVERY_SHAPE)


# --- reading -----------------------------------------------------------------------------------------------------


@FEW
@given(histories(documents=True))
def test_a_part_of_the_bytes_says_what_all_of_them_do(history: list[Step]) -> None:
    # EV-34: reading only both ends of a stored event gives the same change event as reading all of it
    registry = MemoryRegistry()
    for step in history:
        try:
            decision = registry.do(command(step))
        except Problem:
            continue
        assert messages(*decision.events) == list(read_whole(decision.events))


@pytest.mark.parametrize("kind", [EntityCreated, EntityUpdated, EntityRefreshed])
def test_attributes_may_look_like_what_follows_them(kind: type[EntityEvent]) -> None:
    # EV-34: attribute names and texts of clients do not mislead the reader of both ends
    given = event(
        kind,
        attributes={"changed": ["x"], "name": ',"changed":["y"]', "deprecated": {"changed": ["z"]}},
        private={"changed": []},
        changed=("changed", "name") if kind is EntityUpdated else (),
        deprecated_changed=("changed", "deprecated_changed"),
    )
    assert messages(given) == list(read_whole([given]))


def test_an_event_of_a_newer_program_is_not_passed_over() -> None:
    # EV-34: an unreadable event is an error, because readers would not notice a gap in the stream
    unknown = row(5, event(EntityCreated))._replace(topic="EntityMoved:1")
    with pytest.raises(UnknownTopic):
        list(XRegistryEvents().messages(CAUGHT_UP, [unknown]))


def read_whole(events: Any) -> Iterator[ChangeEvent]:
    """The expected change events, from the complete stored events."""
    actions: Any = {EntityCreated: "created", EntityUpdated: "updated", EntityDeleted: "deleted"}
    for index, each in enumerate(events):
        action = actions.get(type(each))
        entity = {0: "group", 1: "resource", 2: "version"}[each.type.count(".")]
        if each.xid in xids.ROOT_STREAMS:
            yield from root_messages(index, each) if action == "updated" else ()
        elif action is not None:
            yield _message(index, f"{entity}.{action}", each.xid, each.changed if action == "updated" else None)
            if each.deprecated_changed is not None:
                yield _message(index, f"{entity}.deprecation", each.xid, each.deprecated_changed)


def root_messages(index: int, of: EntityEvent) -> Iterator[ChangeEvent]:
    if of.xid == xids.MODEL:
        for name in of.changed:
            yield _message(index, f"{name}.updated", f"/{name}", None)
    else:
        yield _message(index, f"{of.xid[1:] or 'registry'}.updated", of.xid, of.changed)


# --- from a store ------------------------------------------------------------------------------------------------


def test_changes_by_the_server_have_events(store_url: str) -> None:
    # T75, EV-6, EV-33: a new built-in part of the model does not change the modelsource; it has its own correlation id
    store = Store(store_url, public_url="https://registry.example")
    store.create()
    registry = MemoryRegistry({})
    record(store, registry.log)
    assert event_messages(store_url) == []
    upgraded = [
        event(EntityUpdated, "/", revision=2, changed=("epoch", "model", "modifiedat")),
        event(EntityUpdated, "/model", revision=2, changed=("model",)),
    ]
    record(store, upgraded)
    assert [(each.type, each.subject, each.changed) for each in event_messages(store_url)] == [
        ("io.xregistry.registry.updated", "/", ("epoch", "model", "modifiedat")),
        ("io.xregistry.model.updated", "/model", None),
    ]
    assert len({each.xregcorrelationid for each in event_messages(store_url)}) == 1
    assert all(each.xregcorrelationid for each in event_messages(store_url))
    store.close()


def record(store: Store, events: list[EntityEvent]) -> None:
    """Records an interaction of the server itself."""
    with store.writing() as tx:
        context = tx.context(Caller("annals", Role.WRITER))
        own = {"xregcorrelationid": context.xregcorrelationid, "time": context.now}
        tx.append(Decision(tuple(each.model_copy(update=own) for each in events), {}), context, COMMAND)


def _message(index: int, type: str, subject: str, changed: tuple[str, ...] | None) -> ChangeEvent:
    id, position = f"c.{index}.xregistry.{type}", CAUGHT_UP.first + index
    entity = "/model" if subject == "/modelsource" else ""
    url = "https://registry.example"
    return ChangeEvent(position, id, f"io.xregistry.{type}", url, subject, NOON, "c", changed, entity)


def _context_headers(headers: Any) -> dict[str, Any]:
    """The headers of context attributes."""
    return {name: value for name, value in headers.items() if name.startswith("ce")}
