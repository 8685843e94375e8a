"""Events of the legacy APIs at real webhooks and brokers: each sink gets the families that its owner requested."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from cloudevents.core.v1.event import CloudEvent

from annals.domain.compat.legacy_apis import LEGACY_APIS, MESSAGECATALOG, SCHEMAREGISTRY
from annals.domain.model.builtin import default_source
from tests.api.subscriptions.test_deliveries import delivering, sinks, subscribed
from tests.end_to_end.test_broker_walkthrough import Destination, destination
from tests.support.polling import until
from tests.support.registries.in_process import BASE, Api, create
from tests.support.webhooks import Webhooks

__all__ = ["destination", "sinks"]

pytestmark = pytest.mark.uses("Mosquitto", "NATS")

SCHEMAS, MESSAGES = "/compat/schemaregistry/v0.2", "/compat/messagecatalog/v0.1"
#: A time long before the events of these tests.
OLD = "2020-01-01T00:00:00.5Z"


@pytest.fixture
def api(store_url: str) -> Iterator[Api]:
    create(store_url, default_source())
    with delivering(store_url) as api:
        yield api


def change(api: Api) -> None:
    """Writes a schema by its legacy API and a message by both APIs, and deletes the Group of the message."""
    api.done("PUT", f"{SCHEMAS}/schemagroups/a%2Fb", {}, content_type="application/json")
    api.done("POST", f"{SCHEMAS}/schemagroups/a%2Fb/schemas/s", b"text", schema_format="Own/1")
    api.done("PUT", f"{MESSAGES}/messagecatalog/g", {"format": "Own"}, content_type="application/json")
    api.done("PUT", "/messagegroups/g/messages/m", {"createdat": OLD})
    api.done("POST", f"{MESSAGES}/messagecatalog/g/messagedefinitions/m", b"two", content_type="text/plain")
    api.done("DELETE", "/messagegroups/g")


def feed(api: Api, family: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = api.get(f"/-/events?family={family}")
    return found


def without_sequence(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in event.items() if name != "sequence"} for event in events]


#: Members of subscriptions to events of the legacy APIs, by the path of the sink.
SUBSCRIPTIONS: dict[str, dict[str, Any]] = {
    "/source": {"source": BASE + SCHEMAREGISTRY.base},
    "/types": {"types": [f"{MESSAGECATALOG.events}.updated.v1", f"{MESSAGECATALOG.events}.deleted.v1"]},
    "/both": {"config": {"families": ["schemaregistry", "messagecatalog"]}},
    "/prefix": {"source": BASE + MESSAGECATALOG.base, "filter": {"prefix": {"subject": "/messagecatalog/g/"}}},
}


def requested_events(api: Api) -> dict[str, list[dict[str, Any]]]:
    """The events in the feed that each of these subscriptions requests."""
    schemas, messages = (feed(api, name) for name in ("schemaregistry", "messagecatalog"))
    below = [event for event in messages if event["subject"].startswith("/messagecatalog/g/")]
    both = feed(api, "schemaregistry,messagecatalog")
    return {"/source": schemas, "/types": messages, "/both": both, "/prefix": below}


def test_each_family_is_delivered(api: Api, sinks: Webhooks) -> None:
    # SUB-111, LEG-1008: selected by source, by types, or by name; by default the registry's own family
    # SUB-114: the delivered events equal those in the feed, including their times
    for path, members in {"/none": {}, **SUBSCRIPTIONS}.items():
        subscribed(api, sinks.url + path, **members)
    change(api)
    expected = {"/none": feed(api, "xregistry"), **requested_events(api)}
    schemas, messages = expected["/source"], expected["/types"]
    until(lambda: all(len(sinks.received[path]) >= len(events) for path, events in expected.items()))
    for path, events in expected.items():
        arrived = sorted(sinks.events(path), key=lambda event: event["sequence"])
        assert without_sequence(arrived) == events, path
    # the time that the client set, as stored; a deletion for each object of the Group, including the first Version
    assert next(event["time"] for event in messages if event["subject"].endswith("/versions/1")) == OLD
    assert [event["subject"] for event in messages if event["type"].endswith(".deleted.v1")] == [
        "/messagecatalog/g",
        "/messagecatalog/g/messagedefinitions/m",
        "/messagecatalog/g/messagedefinitions/m/versions/1",
        "/messagecatalog/g/messagedefinitions/m/versions/2",
    ]
    assert [event["subject"] for event in schemas][-1] == "/schemagroups/a%2Fb/schemas/s/versions/1"


@pytest.mark.timeout(300)  # some brokers start slowly
def test_each_family_is_delivered_to_brokers(sqlite_url: str, destination: Destination) -> None:
    # SUB-111, SUB-114, LEG-1008: Kafka, MQTT, AMQP and NATS deliver the same events as HTTP, once per subscription
    create(sqlite_url, default_source())
    with destination.reading() as receiver, delivering(sqlite_url) as api:
        for members in SUBSCRIPTIONS.values():
            api.done("POST", "/subscriptions", destination.body | members, content_type="application/json")
        change(api)
        requested = without_sequence([event for events in requested_events(api).values() for event in events])
        expected = [{**event, "time": datetime.fromisoformat(event["time"])} for event in requested]
        arrived = [attributes(received.event) for received in receiver.take(len(expected), seconds=60)]
        assert receiver.take(1, seconds=1) == []
    assert sorted(arrived, key=by_id) == sorted(expected, key=by_id)


def attributes(event: CloudEvent) -> dict[str, Any]:
    """An event as in the feed, without the position in its subscription."""
    assert event.get_data() is None
    return {name: value for name, value in event.get_attributes().items() if name != "sequence"}


def by_id(event: dict[str, Any]) -> str:
    return str(event["id"])


def test_binary_mode(api: Api, sinks: Webhooks) -> None:
    # SUB-114: an event without data has no body, so the whole event is sent as one JSON object
    subscribed(api, f"{sinks.url}/s", source=BASE + SCHEMAREGISTRY.base, protocolsettings={"contentmode": "binary"})
    api.done("PUT", "/schemagroups/g", {"modifiedat": OLD})
    until(lambda: sinks.received["/s"])
    assert without_sequence(sinks.events("/s")) == feed(api, "schemaregistry")
    assert sinks.received["/s"][0].headers["content-type"].startswith("application/cloudevents+json")
    assert sinks.events("/s")[0]["time"] == OLD


@pytest.mark.parametrize("family", LEGACY_APIS, ids=lambda family: family.name)
def test_a_start_in_time_is_about_when_it_was_recorded(api: Api, sinks: Webhooks, family: Any) -> None:
    # Section 1.1, `starttime`: it is compared with the time of recording, not with the older time in the event
    subscribed(api, f"{sinks.url}/s", source=BASE + family.base, config={"starttime": "2026-01-01T00:00:00Z"})
    path = f"/{family.groups}/g/{family.resources}/s"
    if family is SCHEMAREGISTRY:
        api.done("PUT", f"{path}$details", {"format": "Own/1", "createdat": OLD, "schema": "x"})
    else:
        api.done("PUT", path, {"createdat": OLD})
    until(lambda: len(sinks.received["/s"]) >= 3)
    times = {event["subject"].rpartition("/")[0].rpartition("/")[2]: event["time"] for event in sinks.events("/s")}
    assert times["versions"] == OLD


def test_owners_receive_events_of_readable_groups(store_url: str, sinks: Webhooks) -> None:
    # LEG-1105, SUB-911: grants use the Group's id in the registry, not its id in the legacy API
    create(store_url, default_source())
    tokens = {
        "gina": {"name": "gina", "groups": {"/messagegroups/g:1": "writer"}},
        "root": {"name": "root", "role": "admin"},
    }
    with delivering(store_url, tokens=json.dumps(tokens)) as api:
        for name in tokens:
            body = {"protocol": "HTTP", "sink": f"{sinks.url}/{name}", "source": BASE + MESSAGECATALOG.base}
            api.done("POST", "/subscriptions", body, authorization=f"Bearer {name}", content_type="application/json")
        for group in ("other", "g:1", "last"):
            api.done("PUT", f"/messagegroups/{group}", {}, authorization="Bearer root")
        until(lambda: "/messagecatalog/last" in sinks.subjects("/root") and sinks.received["/gina"])
    assert sorted(sinks.subjects("/root")) == [f"/messagecatalog/{id}" for id in ("g%3A1", "last", "other")]
    assert sinks.subjects("/gina") == ["/messagecatalog/g%3A1"]
