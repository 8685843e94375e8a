"""Events of the legacy APIs over HTTP: the feed by family, the rights of its readers, and subscriptions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from annals.domain.compat.legacy_apis import LEGACY_APIS, MESSAGECATALOG, SCHEMAREGISTRY
from annals.domain.model.builtin import default_source
from tests.support.registries.in_process import BASE, Api, create, serving
from tests.support.subscribing import KEY, SINK

NOW = "2026-01-02T03:04:05"
OLD = "2020-01-01T00:00:00Z"
SCHEMA = "/schemagroups/g/schemas/s"
MESSAGE = "/messagegroups/g/messages/m"
DEFINITION = "/messagecatalog/g/messagedefinitions/m"


def fill_registry(api: Api) -> None:
    """Creates a schema and a message with an old time, and deletes the schema."""
    api.done("PUT", SCHEMA, b"text", content_type="text/plain", xregistry_format="Own/1")
    api.done("PUT", MESSAGE, {"createdat": OLD})
    api.done("DELETE", SCHEMA)


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A registry that tests only read."""
    url = f"sqlite:///{tmp_path_factory.mktemp('compat') / 'annals.db'}"
    create(url, default_source())
    with serving(url) as api:
        fill_registry(api)
        yield api


def event_json(interaction: int, index: int, action: str, subject: str, time: str = f"{NOW}Z") -> dict[str, Any]:
    """One complete event."""
    family = MESSAGECATALOG if subject.startswith("/messagecatalog") else SCHEMAREGISTRY
    type = f"{family.events}.{action}.v1"
    return {
        "specversion": "1.0",
        "id": f"id{interaction}.{index}.{type.removeprefix('io.')}",
        "source": BASE + family.base,
        "type": type,
        "subject": subject,
        "time": time,
        "xregcorrelationid": f"id{interaction}",
    }


SCHEMAS = [
    event_json(1, 1, "updated", "/schemagroups/g"),
    event_json(1, 2, "updated", SCHEMA),
    event_json(1, 3, "updated", f"{SCHEMA}/versions/1"),
    event_json(3, 0, "updated", "/schemagroups/g"),
    event_json(3, 1, "deleted", SCHEMA, f"{NOW}.000000Z"),
    event_json(3, 2, "deleted", f"{SCHEMA}/versions/1", f"{NOW}.000000Z"),
]
MESSAGES = [
    event_json(2, 1, "updated", "/messagecatalog/g"),
    event_json(2, 2, "updated", DEFINITION),
    event_json(2, 3, "updated", f"{DEFINITION}/versions/1", OLD),
]


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("family=schemaregistry", SCHEMAS),
        ("family=messagecatalog", MESSAGES),
        # LEG-1006: events of both families in log order, regardless of the order of the parameter
        ("family=messagecatalog,schemaregistry", [*SCHEMAS[:3], *MESSAGES, *SCHEMAS[3:]]),
        ("family=schemaregistry&family=messagecatalog", [*SCHEMAS[:3], *MESSAGES, *SCHEMAS[3:]]),
        # other parameters filter the events of the family
        (f"family=schemaregistry&subject={SCHEMA}", [*SCHEMAS[1:3], *SCHEMAS[4:]]),
        (f"family=messagecatalog&subject={DEFINITION}", MESSAGES[1:]),
        (f"family=messagecatalog&subject={MESSAGE}", []),
        ("family=schemaregistry&type=io.cloudevents.schemaregistry.deleted.v1", SCHEMAS[4:]),
        ("family=schemaregistry&xregcorrelationid=id3", SCHEMAS[3:]),
        ("family=messagecatalog&sql=time < '2021'", []),
        ("family=messagecatalog&limit=2", MESSAGES[:2]),
        ("type=io.cloudevents.*", []),
    ],
)
def test_the_feed_by_family(api: Api, query: str, wanted: list[dict[str, Any]]) -> None:
    # LEG-1001, LEG-1008: the feed has legacy events only if their families are requested
    assert api.get(f"/-/events?{query}") == wanted
    lines = api.done("GET", f"/-/events?{query}", accept="application/x-ndjson").text.splitlines()
    assert list(map(json.loads, lines)) == wanted


def test_the_feed_is_the_registrys_own_without_a_family(api: Api) -> None:
    # LEG-1008: without `family`, the feed has only xRegistry events
    own = api.get("/-/events")
    assert own == api.get("/-/events?family=xregistry")
    assert {event["type"].rpartition(".")[0].partition(".")[2].partition(".")[0] for event in own} == {"xregistry"}
    everything = api.get(f"/-/events?family=xregistry,{','.join(family.name for family in LEGACY_APIS)}")
    # SUB-113: of the events of one log event, the xRegistry event is the first
    assert [event for event in everything if event in own] == own
    assert len(everything) == len(own) + len(SCHEMAS) + len(MESSAGES)
    first = [event["id"] for event in everything if event["xregcorrelationid"] == "id1"]
    assert first == [
        "id1.0.xregistry.registry.updated",
        "id1.1.xregistry.group.created",
        "id1.1.cloudevents.schemaregistry.updated.v1",
        "id1.2.xregistry.resource.created",
        "id1.2.cloudevents.schemaregistry.updated.v1",
        "id1.3.xregistry.version.created",
        "id1.3.cloudevents.schemaregistry.updated.v1",
    ]


@pytest.mark.parametrize("family", ["", "XREGISTRY", "schemaregistry,nope", "*"])
def test_families_that_there_are_not(api: Api, family: str) -> None:
    # FLAG-80: the error names the parameter and the known families
    answer = api.send("GET", f"/-/events?family={family}")
    reason = answer.json()["args"]["error_detail"]
    assert (answer.status_code, reason.startswith('the parameter "family": the family')) == (400, True)
    assert reason.endswith("use one of: xregistry, schemaregistry, messagecatalog")


TOKENS = {
    "read": {"name": "rita", "role": "reader"},
    "messages": {"name": "gina", "groups": {"/messagegroups/g": "reader"}},
    "schemas": {"name": "gary", "groups": {"/schemagroups/g": "reader"}},
}


@pytest.mark.parametrize(
    ("token", "wanted"),
    [("read", [*SCHEMAS[:3], *MESSAGES, *SCHEMAS[3:]]), ("messages", MESSAGES), ("schemas", SCHEMAS)],
)
def test_callers_see_events_of_readable_groups(store_url: str, token: str, wanted: list[dict[str, Any]]) -> None:
    # LEG-1103, LEG-1105: rights for a Group of the registry apply to the legacy events of the Group
    create(store_url, default_source())
    with serving(store_url) as api:
        fill_registry(api)
    with serving(store_url, tokens=json.dumps(TOKENS)) as api:
        path = "/-/events?family=schemaregistry,messagecatalog"
        assert api.send("GET", path, authorization=f"Bearer {token}").json() == wanted


# --- subscriptions ---------------------------------------------------------------------------------------------------


@pytest.fixture
def subscribed(sqlite_url: str) -> Iterator[Api]:
    create(sqlite_url, default_source())
    with serving(sqlite_url, master_key=KEY) as api:
        yield api


@pytest.mark.parametrize(
    ("members", "families"),
    [
        ({}, ["xregistry"]),
        ({"source": BASE}, ["xregistry"]),
        ({"source": BASE + SCHEMAREGISTRY.base}, ["schemaregistry"]),
        ({"source": f"{BASE}{MESSAGECATALOG.base}/"}, ["messagecatalog"]),
        ({"types": ["io.cloudevents.schemaregistry.deleted.v1"]}, ["schemaregistry"]),
        (
            {"types": ["io.cloudevents.messagecatalog.updated.v1", "io.xregistry.group.created"]},
            ["xregistry", "messagecatalog"],
        ),
        # the source has precedence over the types
        (
            {"source": BASE + SCHEMAREGISTRY.base, "types": ["io.cloudevents.schemaregistry.updated.v1"]},
            ["schemaregistry"],
        ),
        ({"config": {"families": "messagecatalog,schemaregistry"}}, ["schemaregistry", "messagecatalog"]),
    ],
)
def test_families_of_a_subscription(subscribed: Api, members: dict[str, Any], families: list[str]) -> None:
    # SUB-111, LEG-1008: the source selects the family, else the types do; the default is xRegistry events only
    answer = subscribed.done("POST", "/subscriptions", {"sink": SINK, "protocol": "HTTP", **members})
    assert answer.json()["config"]["families"] == families


@pytest.mark.parametrize("family", LEGACY_APIS, ids=lambda family: family.name)
def test_a_subscription_as_older_descriptions_have_it(subscribed: Api, family: Any) -> None:
    # LEG-915, SUB-106: `filter` as an object, the protocol HTTPS, and the media type of the legacy descriptions
    wish = {
        "source": BASE + family.base,
        "protocol": "HTTPS",
        "sink": SINK,
        "filter": {"prefix": {"subject": f"/{family.path}/5"}},
    }
    answer = subscribed.done(
        "POST", "/subscriptions", wish, content_type="application/cloudevents-subscription+json"
    ).json()
    shown = {name: answer[name] for name in ("source", "protocol", "sink", "filters")}
    assert shown == {
        "source": BASE + family.base,
        "protocol": "HTTP",
        "sink": SINK,
        "filters": [{"prefix": {"subject": f"/{family.path}/5"}}],
    }
    assert answer["config"]["families"] == [family.name]
    assert "filter" not in answer


def test_what_a_server_offers(subscribed: Api) -> None:
    # SUB-108: OPTIONS lists the source of each family, which its events have
    offered = subscribed.send("OPTIONS", "/subscriptions").json()["families"]
    assert offered == {
        "xregistry": {"source": BASE},
        **{family.name: {"source": BASE + family.base} for family in LEGACY_APIS},
    }


def test_a_preview_by_family(api: Api) -> None:
    # SUB-511, SUB-105: only events of the requested families are counted
    wish = {"config": {"families": ["messagecatalog"]}, "filters": [{"prefix": {"subject": DEFINITION}}]}
    found = api.done("POST", "/-/subscriptions/preview", wish, content_type="application/json").json()
    type = f"{MESSAGECATALOG.events}.updated.v1"
    assert found["families"] == {
        "messagecatalog": {"considered": 3, "matched": 2, "types": {type: {"considered": 3, "matched": 2}}}
    }
    assert [{**each, "sequence": ""} for each in found["matches"]] == [
        {**each, "sequence": ""} for each in MESSAGES[1:]
    ]
    # SUB-113: the sequence follows that of the xRegistry event at the same position
    assert {each["sequence"].rpartition(".")[2] for each in found["matches"]} == {"01"}
