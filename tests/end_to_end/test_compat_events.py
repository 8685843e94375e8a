"""Events of the older APIs on their way to real webhooks and brokers: each sink gets the families that it asked for."""

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
from tests.end_to_end.test_broker_walkthrough import Place, place
from tests.support.polling import until
from tests.support.registries.in_process import BASE, Api, create
from tests.support.webhooks import Webhooks

__all__ = ["place", "sinks"]

pytestmark = pytest.mark.uses("Mosquitto", "NATS")

SCHEMAS, MESSAGES = "/compat/schemaregistry/v0.2", "/compat/messagecatalog/v0.1"
#: What was long before any of this.
OLD = "2020-01-01T00:00:00.5Z"


@pytest.fixture
def api(store_url: str) -> Iterator[Api]:
    create(store_url, default_source())
    with delivering(store_url) as api:
        yield api


def change(api: Api) -> None:
    """A schema by its older API, messages by both doors, of which one is kept; then the Group of messages goes."""
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


#: What subscriptions to events of the older APIs say.
ASKED: dict[str, dict[str, Any]] = {
    "/source": {"source": BASE + SCHEMAREGISTRY.base},
    "/types": {"types": [f"{MESSAGECATALOG.events}.updated.v1", f"{MESSAGECATALOG.events}.deleted.v1"]},
    "/both": {"config": {"families": ["schemaregistry", "messagecatalog"]}},
    "/prefix": {"source": BASE + MESSAGECATALOG.base, "filter": {"prefix": {"subject": "/messagecatalog/g/"}}},
}


def asked_for(api: Api) -> dict[str, list[dict[str, Any]]]:
    """What the feed has of what each of these asks for."""
    schemas, messages = (feed(api, name) for name in ("schemaregistry", "messagecatalog"))
    below = [event for event in messages if event["subject"].startswith("/messagecatalog/g/")]
    both = feed(api, "schemaregistry,messagecatalog")
    return {"/source": schemas, "/types": messages, "/both": both, "/prefix": below}


def test_each_family_is_delivered(api: Api, sinks: Webhooks) -> None:
    # SUB-111, LEG-1008: by source, by types, by name, and the registry's own for those who say nothing
    # SUB-114: what arrives is what the feed has, its times included
    for path, members in {"/none": {}, **ASKED}.items():
        subscribed(api, sinks.url + path, **members)
    change(api)
    wanted = {"/none": feed(api, "xregistry"), **asked_for(api)}
    schemas, messages = wanted["/source"], wanted["/types"]
    until(lambda: all(len(sinks.received[path]) >= len(events) for path, events in wanted.items()))
    for path, events in wanted.items():
        arrived = sorted(sinks.events(path), key=lambda event: event["sequence"])
        assert without_sequence(arrived) == events, path
    # a client's own time, as it was stored, and each object of the Group, the kept Version among them
    assert next(event["time"] for event in messages if event["subject"].endswith("/versions/1")) == OLD
    assert [event["subject"] for event in messages if event["type"].endswith(".deleted.v1")] == [
        "/messagecatalog/g",
        "/messagecatalog/g/messagedefinitions/m",
        "/messagecatalog/g/messagedefinitions/m/versions/1",
        "/messagecatalog/g/messagedefinitions/m/versions/2",
    ]
    assert [event["subject"] for event in schemas][-1] == "/schemagroups/a%2Fb/schemas/s/versions/1"


@pytest.mark.timeout(300)  # some brokers take their time to start
def test_each_family_is_delivered_to_brokers(sqlite_url: str, place: Place) -> None:
    # SUB-111, SUB-114, LEG-1008: over Kafka, MQTT, AMQP and NATS as over HTTP, once for each subscription that wants it
    create(sqlite_url, default_source())
    with place.reading() as receiver, delivering(sqlite_url) as api:
        for members in ASKED.values():
            api.done("POST", "/subscriptions", place.body | members, content_type="application/json")
        change(api)
        told = without_sequence([event for events in asked_for(api).values() for event in events])
        wanted = [{**event, "time": datetime.fromisoformat(event["time"])} for event in told]
        arrived = [attributes(received.event) for received in receiver.take(len(wanted), seconds=60)]
        assert receiver.take(1, seconds=1) == []
    assert sorted(arrived, key=by_id) == sorted(wanted, key=by_id)


def attributes(event: CloudEvent) -> dict[str, Any]:
    """An event as the feed has it, less its place in a subscription."""
    assert event.get_data() is None
    return {name: value for name, value in event.get_attributes().items() if name != "sequence"}


def by_id(event: dict[str, Any]) -> str:
    return str(event["id"])


def test_binary_mode(api: Api, sinks: Webhooks) -> None:
    # SUB-114: without data there is nothing for a body, so all of it goes there as one JSON object
    subscribed(api, f"{sinks.url}/s", source=BASE + SCHEMAREGISTRY.base, protocolsettings={"contentmode": "binary"})
    api.done("PUT", "/schemagroups/g", {"modifiedat": OLD})
    until(lambda: sinks.received["/s"])
    assert without_sequence(sinks.events("/s")) == feed(api, "schemaregistry")
    assert sinks.received["/s"][0].headers["content-type"].startswith("application/cloudevents+json")
    assert sinks.events("/s")[0]["time"] == OLD


@pytest.mark.parametrize("family", LEGACY_APIS, ids=lambda family: family.name)
def test_a_start_in_time_is_about_when_it_was_recorded(api: Api, sinks: Webhooks, family: Any) -> None:
    # Section 1.1, `starttime`: a Version of long ago that changes now is news, though its event says when it was made
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
    # LEG-1105, SUB-911: by the Group in the registry, whatever the older API calls it
    create(store_url, default_source())
    tokens = {
        "gina": {"name": "gina", "groups": {"/messagegroups/g:1": "writer"}},
        "root": {"name": "root", "role": "admin"},
    }
    with delivering(store_url, tokens=json.dumps(tokens)) as api:
        for name in tokens:
            wish = {"protocol": "HTTP", "sink": f"{sinks.url}/{name}", "source": BASE + MESSAGECATALOG.base}
            api.done("POST", "/subscriptions", wish, authorization=f"Bearer {name}", content_type="application/json")
        for group in ("other", "g:1", "last"):
            api.done("PUT", f"/messagegroups/{group}", {}, authorization="Bearer root")
        until(lambda: "/messagecatalog/last" in sinks.subjects("/root") and sinks.received["/gina"])
    assert sorted(sinks.subjects("/root")) == [f"/messagecatalog/{id}" for id in ("g%3A1", "last", "other")]
    assert sinks.subjects("/gina") == ["/messagecatalog/g%3A1"]
