"""Decisions assign schema ids: one for each content, also to schemas that an older program stored without ids."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from annals.domain.access.roles import Caller, Role
from annals.domain.confluent.commands import AssignSchemaIds
from annals.domain.confluent.facts import CONFLUENT
from annals.domain.decisions.commands import Command, ControlLink, CreateRegistry, WriteLink, WriteMethod, WriteTree
from annals.domain.decisions.decide import decide
from annals.domain.decisions.world import Context
from annals.domain.model.builtin import default_source
from annals.domain.registry.events import EntityRefreshed
from annals.domain.replication.link_document import parse_link
from tests.support.registries.memory_world import MemoryWorld

CONTEXT = Context(datetime(2026, 1, 1, tzinfo=UTC), "id")
ROOT = replace(CONTEXT, role=Role.ADMIN)


def apply(world: MemoryWorld, command: Command, *, without_facts: bool = False, context: Context = CONTEXT) -> Any:
    decision = decide(command, world, context)
    if without_facts:
        events = [
            event.model_copy(update={"private": {k: v for k, v in event.private.items() if k != CONFLUENT}})
            for event in decision.events
        ]
        decision = replace(decision, events=tuple(events))
    world.extend(decision.events, decision.documents)
    return decision


def schema(text: str) -> dict[str, Any]:
    return {"format": "Avro/1.11.0", "schema": text}


def world_with(*, without_facts: bool) -> MemoryWorld:
    world = MemoryWorld()
    apply(world, CreateRegistry("reg", default_source()))
    tree = {"a": {"versions": {"1": schema("int"), "x": schema("string")}}, "b": schema("int")}
    command = WriteTree("/schemagroups/g/schemas", tree, WriteMethod.POST, mediatype="application/json")
    apply(world, command, without_facts=without_facts)
    return world


def ids(world: MemoryWorld) -> dict[str, Any]:
    versions = world.entities_of_type("schemagroups.schemas.versions")
    return {entity.xid.removeprefix("/schemagroups/g/schemas/"): entity.private.get(CONFLUENT) for entity in versions}


def test_the_same_content_has_the_same_id() -> None:
    # CSR-401, CSR-406, CSR-407, CSR-408
    found = ids(world_with(without_facts=False))
    assert found["a/versions/1"]["id"] == found["b/versions/1"]["id"] != found["a/versions/x"]["id"]
    assert "number" not in found["a/versions/1"]
    assert found["a/versions/x"]["number"] == 2


def test_schemas_without_ids_get_them_in_one_interaction() -> None:
    # CSR-911
    world = world_with(without_facts=True)
    assert set(ids(world).values()) == {None}
    decision = apply(world, AssignSchemaIds())
    assert {type(event) for event in decision.events} == {EntityRefreshed}
    found = ids(world)
    assert found["a/versions/1"]["id"] == found["b/versions/1"]["id"] != found["a/versions/x"]["id"]
    assert apply(world, AssignSchemaIds()).events == ()


def test_copies_over_the_standard_api_get_ids_here() -> None:
    # CSR-911: they have no ids of their source, and a server with such a link could not start otherwise
    world = MemoryWorld()
    apply(world, CreateRegistry("reg", default_source()))
    document = {"url": "http://far.example", "dialect": "xregistry"}
    apply(world, WriteLink("/-/links/far", True, parse_link(document).attributes, {}), context=ROOT)
    tree = {"c": schema("long")}
    command = WriteTree("/schemagroups/far/schemas", tree, WriteMethod.POST, mediatype="application/json")
    apply(world, command, without_facts=True, context=replace(CONTEXT, caller=Caller("far", link="far")))
    assigned = apply(world, AssignSchemaIds(), context=ROOT).events
    assert [event.private[CONFLUENT]["id"] for event in assigned if event.type.endswith("versions")] == [1]


def test_copies_get_their_ids_from_their_source() -> None:
    # CSR-911: also in a registry with schemas of its own, and here once their link has ended
    world = world_with(without_facts=True)
    tree = {"c": schema("long")}
    command = WriteTree("/schemagroups/far/schemas", tree, WriteMethod.POST, mediatype="application/json")
    apply(world, command, without_facts=True)
    document = {"url": "http://far.example", "scope": {"groups": ["/schemagroups/far"]}}
    apply(world, WriteLink("/-/links/far", True, parse_link(document).attributes, {}), context=ROOT)
    assigned = apply(world, AssignSchemaIds()).events
    assert {event.xid.split("/")[2] for event in assigned} == {"g"}
    apply(world, ControlLink("/-/links/far", "promote"), context=ROOT)
    assert {event.xid.split("/")[2] for event in apply(world, AssignSchemaIds()).events} == {"far"}
