"""`/-/resolved` and `/-/match` over a real store: results, past moments, rights of callers, refusals."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from annals.api.ops.own_paths import OWN_PATHS
from annals.domain.model.builtin import default_source
from tests.support.registries.in_process import BASE, Api, create, serving

B = "/messagegroups/base/messages/b"
M = "/messagegroups/g/messages/m"
CE = {"envelope": "CloudEvents/1.0"}
EVENT = {"specversion": "1.0", "id": "1", "source": "/7", "type": "on"}


@pytest.fixture
def api(store_url: str) -> Iterator[Api]:
    """A base with an envelope, and a message that binds it to MQTT (MS-19)."""
    create(store_url, default_source())
    with serving(store_url) as served:
        served.done("PUT", B, {**CE, "envelopemetadata": {"type": {"value": "on"}, "source": {"value": "/{device}"}}})
        options = {"topic_name": "lamps/{device}/on", "qos": 1}
        served.done("PUT", M, {"basemessageuri": B, "protocol": "MQTT/5.0", "protocoloptions": options, "name": "m"})
        yield served


def resolved(api: Api, path: str) -> Any:
    return api.get(f"/-/resolved{path}")


def test_a_base_and_its_binding(api: Api) -> None:
    # MS-15, MS-19: the resolved message has the attributes of both, and its own ids
    found = resolved(api, M)
    assert found["xid"] == M
    assert found["bases"] == [f"{B}/versions/1"]
    assert "unresolved" not in found and "implied" not in found
    own = api.get(M)
    message = found["message"]
    assert {name: message[name] for name in ("messageid", "xid", "epoch", "name", "createdat", "basemessageuri")} == {
        name: own[name] for name in ("messageid", "xid", "epoch", "name", "createdat", "basemessageuri")
    }
    base = api.get(B)
    assert message["envelopemetadata"] == base["envelopemetadata"]
    assert message["protocoloptions"] == own["protocoloptions"]
    assert "envelope" not in own
    names = [name for name in message if name in ("basemessageuri", "envelope", "envelopemetadata", "protocol")]
    assert names == ["basemessageuri", "envelope", "envelopemetadata", "protocol"]


def test_a_new_base_is_seen_without_an_event(api: Api) -> None:
    # MS-19: a change of the base changes the resolved message; only the base has an event, and nothing else is stored
    head = api.get("/-/log/head")["position"]
    api.done("PATCH", B, {"datacontenttype": "text/plain"})
    assert resolved(api, M)["message"]["datacontenttype"] == "text/plain"
    events = api.send("GET", f"/-/events?after={head}").json()
    assert {event["subject"].split("/messages/")[-1] for event in events if "messages" in event["subject"]} == {
        "b",
        "b/versions/1",
    }
    assert "datacontenttype" not in api.get(M)


def test_explicit_values_of_a_base_win_over_defaults(api: Api) -> None:
    # MS-16: the default `required: false` that the model fills in does not hide the value of the base
    api.done("PATCH", B, {"envelopemetadata": {"subject": {"required": True, "type": "string"}}})
    api.done("PUT", M, {"basemessageuri": B, **CE, "envelopemetadata": {"subject": {"description": "d"}}})
    assert api.get(M)["envelopemetadata"]["subject"]["required"] is False
    subject = resolved(api, M)["message"]["envelopemetadata"]["subject"]
    assert subject == {"description": "d", "required": True, "type": "string"}
    for path in (M, "/messagegroups/g?inline", "/?inline"):
        api.done("PUT", path.partition("?")[0], api.get(path))  # values that are read and sent back are not stated
        assert resolved(api, M)["message"]["envelopemetadata"]["subject"] == subject
    api.done("PATCH", M, {"envelopemetadata": {"subject": {"required": False}}})
    assert resolved(api, M)["message"]["envelopemetadata"]["subject"] == {"required": False, "type": "string"}


def test_what_was_stated_resolves_the_same_elsewhere(api: Api, tmp_path: Path) -> None:
    # MS-16: a default that a client states hides the value of the base, here and in a registry that imports the export
    api.done("PATCH", B, {"envelopemetadata": {"subject": {"required": True, "type": "string"}}})
    subjects = {"silent": {"description": "d"}, "says": {"required": False}}
    for id, subject in subjects.items():
        given = {"basemessageuri": B, **CE, "envelopemetadata": {"subject": subject}}
        api.done("PUT", f"/messagegroups/g/messages/{id}", given)
    before = api.get("/-/log/head")["position"]
    exported = api.get("/export?stated")
    assert {id: shown_of(exported, id) for id in subjects} == subjects
    assert shown_of(api.get("/export"), "silent") == {"type": "uritemplate", "description": "d", "required": False}
    other = f"sqlite:///{tmp_path / 'other.db'}"
    create(other, default_source())
    with serving(other) as target:
        target.done("PUT", "/?ignore=epoch", exported)
        for id, required in {"silent": True, "says": False}.items():
            place = f"/messagegroups/g/messages/{id}"
            found = resolved(target, place)["message"]["envelopemetadata"]
            assert found == resolved(api, place)["message"]["envelopemetadata"]
            assert found["subject"]["required"] is required
    api.done("DELETE", "/messagegroups/g/messages/says")
    assert api.get(f"/export?stated&asof={before}")["messagegroups"]["g"] == exported["messagegroups"]["g"]
    assert api.get("/messagegroups/g?stated")["xid"] == "/messagegroups/g"


def shown_of(exported: Any, id: str) -> Any:
    """The subject of a message in an export."""
    return exported["messagegroups"]["g"]["messages"][id]["versions"]["1"]["envelopemetadata"]["subject"]


def test_a_message_means_its_default_version(api: Api) -> None:
    # MS-17: a reference to a message follows its default Version; one to a Version is pinned, and dangles without it
    api.done("PUT", "/messagegroups/g/messages/pinned", {"basemessageuri": f"{B}/versions/1"})
    assert resolved(api, "/messagegroups/g/messages/pinned")["bases"] == [f"{B}/versions/1"]
    api.done("POST", B, {**CE, "datacontenttype": "text/plain"})
    assert resolved(api, M)["bases"] == [f"{B}/versions/2"]
    pinned = resolved(api, "/messagegroups/g/messages/pinned")
    assert pinned["unresolved"] == {"uri": f"{B}/versions/1", "reason": "dangling"}
    assert resolved(api, f"{M}/versions/1")["message"]["datacontenttype"] == "text/plain"
    api.done("PUT", "/messagegroups/g/messages/shown/meta", {"xref": M})
    shown = "/messagegroups/g/messages/shown/versions"
    assert resolved(api, f"{shown}/1")["xid"] == f"{shown}/1"
    assert api.send("GET", f"/-/resolved{shown}/none").status_code == 404


@pytest.mark.parametrize(
    ("uri", "reason"),
    [("/messagegroups/base/messages/none", "dangling"), ("http://other/m", "external"), (M, "cycle")],
)
def test_chains_that_end_early_are_marked(api: Api, uri: str, reason: str) -> None:
    # MS-13, MS-14, MS-18: such a chain is accepted, and the resolved message says where it stopped
    api.done("PATCH", B, {"basemessageuri": uri})
    found = resolved(api, M)
    assert found["unresolved"] == {"uri": uri, "reason": reason}
    assert found["message"]["envelope"] == "CloudEvents/1.0"


def test_implied_values_are_shown_and_never_stored(api: Api) -> None:
    # MS-37: values that follow from the schema's format and URI
    api.done("PATCH", M, {"dataschemaformat": "JsonSchema/draft-07", "dataschemauri": "/schemagroups/g/schemas/s"})
    found = resolved(api, M)
    assert found["implied"] == ["/envelopemetadata/datacontenttype/value", "/envelopemetadata/dataschema/value"]
    assert found["message"]["envelopemetadata"]["datacontenttype"]["value"] == "application/json"
    assert found["message"]["envelopemetadata"]["dataschema"]["value"] == "/schemagroups/g/schemas/s"
    assert "datacontenttype" not in api.get(B)["envelopemetadata"]


def test_a_cross_reference_resolves_as_what_it_stands_for(api: Api) -> None:
    # MS-15, CM-03: it has its own id and the attributes of its target, also as a base
    api.done("PUT", "/endpoints/e/messages/x", {"meta": {"xref": M}})
    found = resolved(api, "/endpoints/e/messages/x")
    assert (found["xid"], found["message"]["messageid"]) == ("/endpoints/e/messages/x", "x")
    assert found["message"]["envelope"] == "CloudEvents/1.0"
    api.done("PUT", "/messagegroups/base/messages/alias", {"meta": {"xref": B}})
    api.done("PUT", M, {"basemessageuri": "/messagegroups/base/messages/alias"})
    assert resolved(api, M)["bases"] == [f"{B}/versions/1"]


def test_the_messages_of_an_endpoint(api: Api) -> None:
    # EP-43: own messages first, then those of each group in the order of the list; unresolved references are separate
    listed = ["/messagegroups/g", "/messagegroups/none", "http://other/g", "/messagegroups/base"]
    own = {"own": {"basemessageuri": M}, "m": {"name": "a second m"}}
    api.done("PUT", "/endpoints/e", {"usage": ["producer"], "messagegroups": listed, "messages": own})
    found = resolved(api, "/endpoints/e")
    assert found["xid"] == "/endpoints/e"
    assert [each["xid"] for each in found["messages"]] == ["/endpoints/e/messages/m", "/endpoints/e/messages/own", M, B]
    assert found["messages"][1]["bases"] == [f"{M}/versions/1", f"{B}/versions/1"]
    assert found["unresolved"] == [
        {"uri": "/messagegroups/none", "reason": "dangling"},
        {"uri": "http://other/g", "reason": "external"},
    ]
    group = resolved(api, "/messagegroups/g")
    assert ([each["xid"] for each in group["messages"]], group["unresolved"]) == ([M], [])


def test_resolved_messages_as_of_any_moment(api: Api) -> None:
    # MS-15, FLAG-80: with the bases and the groups of that moment
    before = api.get("/-/log/head")["position"]
    now = resolved(api, M)
    api.done("DELETE", B)
    api.done("DELETE", "/messagegroups/base")
    assert resolved(api, M)["unresolved"]["reason"] == "dangling"
    then = api.send("GET", f"/-/resolved{M}?asof={before}")
    assert then.json() == now
    assert "memento-datetime" in then.headers
    assert api.get(f"/-/resolved/messagegroups/base?asof={before}")["messages"][0]["xid"] == B
    assert api.send("GET", f"/-/resolved{M}?asof=0").status_code == 404
    assert api.send("GET", f"/-/resolved{M}?asof=soon").status_code == 400


def test_resolved_messages_have_entity_tags(api: Api) -> None:
    first = api.send("GET", f"/-/resolved{M}")
    again = api.send("GET", f"/-/resolved{M}", if_none_match=first.headers["etag"])
    assert again.status_code == 304
    api.done("PATCH", B, {"name": "n"})
    assert api.send("GET", f"/-/resolved{M}", if_none_match=first.headers["etag"]).status_code == 200


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/messagegroups/g/messages/none", 404),
        ("/messagegroups/none", 404),
        ("/endpoints/none", 404),
        (f"{M}/versions/9", 404),
        ("/boxes/b", 404),
        ("", 400),
        ("/messagegroups", 400),
        ("/messagegroups/g/messages", 400),
        (f"{M}/meta", 400),
        ("/schemagroups/g", 400),
        (f"{M}?limit=5", 400),
    ],
)
def test_what_has_no_messages(api: Api, path: str, status: int) -> None:
    answer = api.send("GET", f"/-/resolved{path}")
    assert answer.status_code == status
    if "?" not in path:
        assert api.send("GET", f"/-/resolved{path}", if_none_match="*").status_code == status
    assert answer.headers["content-type"] == "application/problem+json"


def test_methods(api: Api) -> None:
    assert api.send("PUT", f"/-/resolved{M}", {}).status_code == 405
    assert api.send("OPTIONS", f"/-/resolved{M}").headers["allow"] == "GET, HEAD, OPTIONS"
    assert api.send("HEAD", f"/-/resolved{M}").status_code == 200
    assert api.send("GET", "/-/match/messagegroups/g").headers["allow"] == "OPTIONS, POST"
    assert api.send("OPTIONS", "/-/match/messagegroups/g").headers["allow"] == "OPTIONS, POST"


def test_which_definitions_an_event_meets(api: Api) -> None:
    # MS-50, MS-51: all definitions that match, with the values of their placeholders; bases count
    api.done(
        "PUT", "/endpoints/e", {"usage": ["producer"], "messagegroups": ["/messagegroups/g", "/messagegroups/base"]}
    )
    found = api.done("POST", "/-/match/endpoints/e", EVENT).json()
    bound = {"bindings": {"device": "7"}, "parts": ["envelope"]}
    assert found == {"matches": [{"xid": M, **bound}, {"xid": B, **bound}]}
    assert api.done("POST", "/-/match/messagegroups/g", {**EVENT, "type": "off"}).json() == {"matches": []}


def test_which_event_a_message_on_its_way_is(api: Api) -> None:
    # MS-52: a native MQTT message is a CloudEvent by its definition
    native = {"protocol": "MQTT", "protocoloptions": {"topic_name": "lamps/7/on"}}
    found = api.done("POST", "/-/match/messagegroups/g", native).json()
    assert found == {"matches": [{"xid": M, "bindings": {"device": "7"}, "parts": ["protocol"]}]}
    both = {**native, **CE, "envelopemetadata": {"type": "on", "source": "/8"}}
    assert api.done("POST", "/-/match/messagegroups/g", both).json() == {"matches": []}


def test_a_batch_is_answered_one_by_one(api: Api) -> None:
    # MS-51
    batch = [EVENT, {**EVENT, "type": "off"}]
    found = api.done(
        "POST", "/-/match/messagegroups/g", batch, content_type="application/cloudevents-batch+json"
    ).json()
    assert [len(each["matches"]) for each in found] == [1, 0]


def test_implied_values_ask_for_nothing(api: Api) -> None:
    # MS-37, MS-50: an event need not repeat what follows from its definition
    api.done("PATCH", M, {"dataschemaformat": "Avro/1.11", "dataschemauri": "http://s"})
    assert len(api.done("POST", "/-/match/messagegroups/g", EVENT).json()["matches"]) == 1


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/messagegroups/none", EVENT, 404),
        ("/schemagroups/g", EVENT, 400),
        (M, EVENT, 400),
        ("/messagegroups/g", {"x": 1}, 400),
        ("/messagegroups/g", [EVENT, 5], 400),
        ("/messagegroups/g", [EVENT] * 1001, 400),
        ("/messagegroups/g", b"", 400),
        ("/messagegroups/g", b"{", 400),
        ("/messagegroups/g?x=1", EVENT, 400),
    ],
)
def test_what_cannot_be_matched(api: Api, path: str, body: Any, status: int) -> None:
    answer = api.send("POST", f"/-/match{path}", body)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"


def test_callers_see_what_they_may_read(store_url: str) -> None:
    # MS-18: a base in a Group that the caller may not see dangles; a match changes nothing, so readers may request it
    create(store_url, default_source())
    tokens = {
        "w": {"name": "w", "role": "writer"},
        "r": {"name": "r", "groups": {"/messagegroups/g": "reader"}},
    }
    with serving(store_url, tokens=json.dumps(tokens)) as api:
        api.done("PUT", B, {**CE, "envelopemetadata": {"type": {"value": "on"}}}, authorization="Bearer w")
        api.done("PUT", M, {"basemessageuri": B, "protocol": "NATS"}, authorization="Bearer w")
        found = api.send("GET", f"/-/resolved{M}", authorization="Bearer r").json()
        assert found["unresolved"] == {"uri": B, "reason": "dangling"}
        assert "envelope" not in found["message"]
        assert api.send("GET", f"/-/resolved{B}", authorization="Bearer r").status_code == 404
        assert api.send("POST", "/-/match/messagegroups/base", EVENT, authorization="Bearer r").status_code == 404
        match = api.send("POST", "/-/match/messagegroups/g", {"protocol": "NATS"}, authorization="Bearer r")
        assert match.json() == {"matches": [{"xid": M, "bindings": {}, "parts": ["protocol"]}]}
        assert api.send("GET", f"/-/resolved{M}").status_code == 401


def test_pages_of_the_messages_of_an_endpoint(api: Api) -> None:
    # EP-43: own messages first, then those of the Groups, each once
    api.done(
        "PUT", "/endpoints/e", {"usage": ["producer"], "messagegroups": ["/messagegroups/two", "/messagegroups/g"]}
    )
    for number, group in enumerate(("/endpoints/e", "/messagegroups/two", "/messagegroups/g")):
        api.done("POST", f"{group}/messages", {f"m{number}{name}": {"name": name} for name in "cab"})
    whole = resolved(api, "/endpoints/e")
    for limit in (1, 2, 4, 9, 1000):
        found, path = [], f"/-/resolved/endpoints/e?limit={limit}"
        while path:
            answer = api.send("GET", path)
            assert len(answer.json()["messages"]) <= limit
            found += answer.json()["messages"]
            path = answer.links["next"]["url"].removeprefix(BASE) if "next" in answer.links else ""
        assert found == whole["messages"]
    api.done("DELETE", "/messagegroups/two/messages/m1b")
    after = resolved(api, "/endpoints/e?after=/messagegroups/two/messages/m1b&limit=1")
    assert [each["xid"] for each in after["messages"]] == ["/messagegroups/two/messages/m1c"]


@pytest.mark.parametrize(
    "query",
    [
        "/endpoints/e?limit=0",
        "/endpoints/e?limit=1001",
        "/endpoints/e?after=x",
        "/endpoints/e?after=/messagegroups/other/messages/m",
        f"{M}?limit=1",
        f"{M}?after={M}",
    ],
)
def test_pages_that_do_not_exist(api: Api, query: str) -> None:
    api.done("PUT", "/endpoints/e", {"usage": ["producer"]})
    api.done("PUT", M, {})
    assert api.send("GET", f"/-/resolved{query}").status_code == 400


def test_the_paths_are_described() -> None:
    assert {"/-/resolved/{path}", "/-/match/{path}", "/-/import"} <= OWN_PATHS.part.keys()
