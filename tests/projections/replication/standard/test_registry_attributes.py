"""Copies over the standard API of a registry's own attributes, and of its capabilities for documents."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.projections.replication.standard.changes import LINK
from tests.support.polling import until
from tests.support.registries.independent_server import MODEL
from tests.support.registries.restarted import WRITER, Registry, registries
from tests.support.registries.standard import (
    check_logs_stop_growing,
    independent_server,
    use_common_model,
    wait_for_polls,
)

Json = dict[str, Any]

#: Attributes of a registry that links do not copy.
LOCAL = ("registryid", "self", "shortself", "epoch", "createdat", "modifiedat")
#: A model with more attributes of the registry, one of them required.
DEMANDING: Json = {**deepcopy(MODEL), "attributes": {"tier": {"type": "string"}, "owner": {"type": "string"}}}
DEMANDING["attributes"]["owner"]["required"] = True

#: Successive writes to the source, and the number of interactions that each causes at the copy.
HISTORY: list[tuple[str, str, Json, int]] = [
    ("PATCH", "/", {"name": "Primary", "description": "the first", "labels": {"stage": "live"}}, 1),
    ("PATCH", "/", {"modelsource": DEMANDING, "owner": "us", "tier": "gold"}, 1),
    ("PATCH", "/", {"tier": None, "labels": None, "documentation": "https://docs.example/"}, 1),
    ("PATCH", "/capabilities", {"compatibilities": {}, "formats": ["Avro/1.12", "XSD/1.*"]}, 1),
    ("PATCH", "/capabilities", {"formats": ["*"], "compatibilities": {"Avro/1.12": ["backward", "full"]}}, 1),
    ("PATCH", "/capabilities", {"flags": ["inline", "doc"], "shortself": True}, 0),
    ("PUT", "/", {"name": "Primary", "modelsource": MODEL}, 1),
]


def own_attributes(registry: Registry) -> Json:
    """A registry's own attributes, and its capabilities for documents."""
    entity = registry.done("GET", "/")
    own = {name: value for name, value in entity.items() if name not in LOCAL and not name.endswith(("url", "count"))}
    capabilities = registry.done("GET", "/capabilities")
    return {**own, **{name: capabilities[name] for name in ("compatibilities", "formats")}}


def is_there(registry: Registry, xid: str) -> bool:
    """Whether a registry has an entity."""
    return registry.request("GET", xid).status_code == 200


@pytest.fixture
def pair(tmp_path: Path, store_url: str) -> Iterator[tuple[Registry, Registry]]:
    """Two Annals registries: a source, and one that is to copy it."""
    with registries(tmp_path, "source", "copy", copy=store_url) as (source, copy):
        use_common_model(source)
        yield source, copy


@pytest.mark.long
def test_registry_attributes_are_copied(pair: tuple[Registry, Registry]) -> None:
    """LEG-902, LEG-910: each change of registry attributes or document capabilities is one command of the link."""
    source, copy = pair
    copy.link("up", source.url, **LINK)
    wait_for_polls(copy)
    own = {name: copy.done("GET", "/")[name] for name in ("registryid", "self", "createdat")}
    others = {name: copy.done("GET", "/capabilities")[name] for name in ("flags", "ignores", "shortself")}
    for method, path, body, interactions in HISTORY:
        before = copy.ids()
        source.done(method, path, body)
        until(lambda: own_attributes(copy) == own_attributes(source))
        wait_for_polls(copy)
        added = copy.ids()[len(before) :]
        assert (body, len(added)) == (body, interactions)
        assert {copy.done("GET", f"/-/interactions/{id}")["caller"] for id in added} <= {"links/up"}
    assert {name: copy.done("GET", "/")[name] for name in own} == own
    assert {name: copy.done("GET", "/capabilities")[name] for name in others} == others
    assert "conflicts" not in copy.status("up")
    check_logs_stop_growing(copy)
    copy.verified()


#: Writes of a client to a copy, and the status codes of the responses.
WRITES: list[tuple[str, str, Json, int]] = [
    ("PATCH", "/", {"name": "mine"}, 400),
    ("PUT", "/", {}, 400),
    ("PATCH", "/", {"capabilities": {"formats": []}}, 400),
    ("PATCH", "/capabilities", {"formats": [], "compatibilities": {}}, 400),
    ("PATCH", "/capabilities", {"pagination": False}, 200),
    ("PATCH", "/", {"name": "Primary", "dirs": {"own": {}}}, 200),
    ("PUT", "/dirs/other", {}, 201),
]


def test_what_came_is_written_at_the_source(pair: tuple[Registry, Registry]) -> None:
    """LEG-909: copied attributes and document capabilities are read-only for clients as long as the link exists."""
    source, copy = pair
    for method, path, body, _ in HISTORY[:1] + HISTORY[3:4]:
        source.done(method, path, body)
    copy.link("up", source.url, **LINK)
    until(lambda: own_attributes(copy) == own_attributes(source))
    client = copy.client(WRITER)
    for method, path, body, code in WRITES:
        answer = client.request(method, path, json=body)
        assert (method, path, body, answer.status_code) == (method, path, body, code), answer.text
        if code == 400:
            assert answer.json()["type"].endswith("#readonly")
            assert answer.json()["authority"] == source.url
    assert client.get("/").headers["link"].endswith("rel=canonical")
    wait_for_polls(copy)
    source.done("PATCH", "/", {"name": "Renamed"})
    until(lambda: own_attributes(copy) == own_attributes(source))
    assert copy.done("GET", "/capabilities")["pagination"] is False
    copy.done("DELETE", "/-/links/up")
    for method, path, body, _ in WRITES[:4]:
        answer = client.request(method, path, json=body)
        assert answer.status_code == 200, answer.text
    client.close()


def test_local_registry_attributes_are_kept(tmp_path: Path) -> None:
    """LEG-907: a registry with a name keeps it, and a registry that copies from several takes the name of none."""
    with registries(tmp_path, "one", "other", "named", "hub") as (one, other, named, hub):
        use_common_model(one, other)
        one.done("PATCH", "/", {"name": "One", "capabilities": {"formats": [], "compatibilities": {}}})
        other.done("PATCH", "/", {"name": "Other"})
        named.done("PATCH", "/", {"name": "Named"})
        hub.link("other", other.url, enabled=False, **LINK)
        for registry in (named, hub):
            registry.link("one", one.url, **LINK)
        hub.link("other", other.url, **LINK)
        one.done("PUT", "/dirs/d", {})
        for registry in (named, hub):
            until(partial(is_there, registry, "/dirs/d"))
            wait_for_polls(registry)
            assert "conflicts" not in registry.status("one")
        assert named.done("GET", "/")["name"] == "Named"
        assert "name" not in hub.done("GET", "/")
        assert hub.done("GET", "/capabilities")["formats"] != []


def test_names_do_not_go_round(tmp_path: Path) -> None:
    """LEG-906: of two registries that copy from each other, one sets a name; the other copies it and its removal."""
    with registries(tmp_path, "one", "other") as (one, other):
        use_common_model(one, other)
        one.link("peer", other.url, **LINK)
        other.link("peer", one.url, **LINK)
        wait_for_polls(one)
        one.done("PATCH", "/", {"name": "One"})
        until(lambda: own_attributes(other) == own_attributes(one))
        check_logs_stop_growing(one, other)
        one.done("PATCH", "/", {"name": None})
        until(lambda: "name" not in other.done("GET", "/"))
        check_logs_stop_growing(one, other)
        assert "name" not in one.done("GET", "/")


def test_an_independent_server_is_copied_as_far_as_possible(tmp_path: Path) -> None:
    """LEG-913: values of capabilities not offered here are omitted; a refusal is reported, and all else is copied."""
    with independent_server() as source, registries(tmp_path, "copy") as (copy,):
        capabilities = {"flags": ["epoch"], "formats": ["Avro/1.12", "ASN.1"], "compatibilities": {"ASN.1": ["strict"]}}
        source.say("/capabilities", capabilities)
        source.say("/", {"registryid": "plain", "xid": "/", "epoch": 1, "name": "Plain", "unknown": {"a": 1}})
        source.done("PUT", "/dirs/d", {"name": "D"})
        copy.link("up", source.url, **LINK)
        until(lambda: copy.status("up").get("conflicts"))
        [conflict] = copy.status("up")["conflicts"]
        assert conflict["xid"] == "/" and "unknown" in conflict["reason"]
        assert copy.done("GET", "/dirs/d")["name"] == "D"
        found = copy.done("GET", "/capabilities")
        assert (found["formats"], found["compatibilities"]) == (["Avro/1.12"], {})
        assert "inline" in found["flags"]
        source.say("/", {"registryid": "plain", "xid": "/", "epoch": 2, "name": "Plain"})
        until(lambda: copy.done("GET", "/").get("name") == "Plain")
        until(lambda: "conflicts" not in copy.status("up"))
        assert copy.done("GET", "/")["registryid"] != "plain"
        source.say("/capabilities", {**capabilities, "formats": "Avro/1.12"})
        source.say("/", {"registryid": "plain", "xid": "/", "epoch": 3, "name": "Plain"})
        until(lambda: copy.status("up").get("conflicts"))
        [conflict] = copy.status("up")["conflicts"]
        assert conflict["xid"] == "/capabilities" and "formats" in conflict["reason"]


def test_a_part_leaves_the_registry_alone(pair: tuple[Registry, Registry]) -> None:
    """LEG-901: a link to a part of a registry does not copy attributes or capabilities of the registry."""
    source, copy = pair
    source.done("PATCH", "/", {"name": "Primary", "capabilities": {"formats": [], "compatibilities": {}}})
    source.done("PUT", "/dirs/d", {})
    copy.link("up", source.url, scope={"groups": ["/dirs/d"]}, **LINK)
    until(lambda: is_there(copy, "/dirs/d"))
    wait_for_polls(copy)
    assert "name" not in copy.done("GET", "/")
    assert copy.done("GET", "/capabilities")["formats"] != []
