"""Marks of the values of a Version that are defaults: private data that writes, new models and restores maintain."""

from __future__ import annotations

from typing import Any

import pytest

from annals.domain.decisions.commands import Restore
from annals.domain.model.builtin import default_source
from annals.domain.registry.explicit_values import DEFAULT_MARKS, explicit_values
from tests.support.registries.memory import MemoryRegistry

M = "/messagegroups/g/messages/m"
CE = {"envelope": "CloudEvents/1.0"}


@pytest.fixture
def registry() -> MemoryRegistry:
    return MemoryRegistry(default_source())


def marks(registry: MemoryRegistry) -> Any:
    return registry.get(f"{M}/versions/1").private.get(DEFAULT_MARKS)


def test_a_write_distinguishes_defaults_from_explicit_values(registry: MemoryRegistry) -> None:
    # MS-16: the marks distinguish values that clients sent from defaults that the server added
    given = {**CE, "envelopemetadata": {"id": {"required": True}, "subject": {}, "ext": {"value": "x"}}}
    registry.put(M, given)
    assert marks(registry) == {
        "envelopemetadata": {
            "id": {"type": True},
            "subject": {"type": True, "required": True},
            "ext": {"type": True, "required": True},
        }
    }
    version = registry.get(f"{M}/versions/1")
    explicit = explicit_values(version.attributes, version.private[DEFAULT_MARKS])
    assert explicit["envelopemetadata"] == given["envelopemetadata"]
    assert registry.get(M).private.get(DEFAULT_MARKS) is None


def test_what_has_no_defaults_keeps_no_marks(registry: MemoryRegistry) -> None:
    registry.put(M, {"name": "n", "labels": {"a": "b"}})
    assert marks(registry) is None


def test_a_patch_keeps_the_marks_of_what_it_leaves(registry: MemoryRegistry) -> None:
    # MS-16: a PATCH makes only the values explicit that it contains
    registry.put(M, {**CE, "envelopemetadata": {"subject": {}}, "protocol": "NATS", "protocoloptions": {"headers": []}})
    registry.patch(M, {"protocol": "AMQP/1.0", "protocoloptions": {"header": {"durable": False}}})
    header = {"priority": True, "first-acquirer": True, "delivery-count": True}
    unchanged = {"envelopemetadata": {"subject": {"type": True, "required": True}}}
    assert marks(registry) == {**unchanged, "protocoloptions": {"header": header}}
    registry.patch(M, {"name": "n"})
    assert marks(registry) == {**unchanged, "protocoloptions": {"header": header}}
    registry.patch(M, {"envelope": None, "envelopemetadata": None})
    assert marks(registry) == {"protocoloptions": {"header": header}}
    registry.put(M, {"name": "n"})
    assert marks(registry) is None


def test_an_unchanged_response_sent_back_states_nothing(registry: MemoryRegistry) -> None:
    # MS-16: a default that a client read and sends back stays a default; a value that it changes is explicit, and so
    # are all values of a client that did not read first
    registry.put(M, {**CE, "envelopemetadata": {"subject": {}, "time": {}, "id": {"type": "string"}}})
    attributes = registry.get(f"{M}/versions/1").attributes
    before = marks(registry)
    registry.put(M, attributes)
    assert marks(registry) == before
    attributes = registry.get(f"{M}/versions/1").attributes
    metadata = {**attributes["envelopemetadata"], "subject": {"type": "uritemplate", "required": True}, "source": {}}
    registry.put(M, {**attributes, "envelopemetadata": metadata})
    assert marks(registry) == {
        "envelopemetadata": {
            "subject": {"type": True},
            "time": before["envelopemetadata"]["time"],
            "id": {"required": True},
            "source": {"type": True, "required": True},
        }
    }
    registry.put(M, {**CE, "envelopemetadata": metadata})
    assert marks(registry) == {"envelopemetadata": {"source": {"type": True, "required": True}}}


def test_a_new_model_marks_what_it_fills_in(registry: MemoryRegistry) -> None:
    registry.put(M, {"name": "n"})
    source = default_source()
    attributes = source["groups"]["messagegroups"]["resources"]["messages"]["attributes"]
    attributes["level"] = {"type": "integer", "required": True, "default": 3}
    registry.model(source)
    assert marks(registry) == {"level": True}


def test_defaults_of_a_group_are_marked(registry: MemoryRegistry) -> None:
    registry.put("/schemagroups/g", {"constraints": {"schemas.format": {"default": "Text/1"}}})
    registry.put("/schemagroups/g/schemas/s", {})
    assert registry.get("/schemagroups/g/schemas/s/versions/1").private[DEFAULT_MARKS] == {"format": True}


def test_restoring_brings_marks_back(registry: MemoryRegistry) -> None:
    registry.put(M, {**CE, "envelopemetadata": {"subject": {}}})
    before, position = marks(registry), len(registry.log)
    registry.put(M, {**CE, "envelopemetadata": {"subject": {"type": "uritemplate", "required": False}}})
    assert marks(registry) is None
    registry.do(Restore(M, position))
    assert marks(registry) == before


@pytest.mark.parametrize("nested", [True, False], ids=["versions", "top level"])
def test_defaults_of_another_registry_stay_defaults(registry: MemoryRegistry, nested: bool) -> None:
    # MS-16: in a copied response of another registry, a value that equals a default of the model counts as a default;
    # without the attributes that only responses have, all values are explicit
    registry.put(M, {**CE, "envelopemetadata": {"subject": {"required": True}, "time": {}, "ext": {"value": "x"}}})
    attributes, before = registry.get(f"{M}/versions/1").attributes, marks(registry)
    copied = {**attributes, "xid": f"{M}/versions/1"}
    other = MemoryRegistry(default_source())
    other.put(M, {"versions": {"1": copied}} if nested else {**copied, "xid": M})
    assert marks(other) == before
    assert other.get(f"{M}/versions/1").attributes == attributes
    written = {name: value for name, value in attributes.items() if name not in ("modifiedat", "createdat", "epoch")}
    third = MemoryRegistry(default_source())
    third.put(M, {"versions": {"1": {**written, "xid": f"{M}/versions/1"}}})
    assert marks(third) is None


def test_defaults_of_a_group_come_before_those_of_the_model(registry: MemoryRegistry) -> None:
    # MS-16, SC-05: in a copied response, only a value that equals the default of the Group is a default
    registry.put("/schemagroups/g", {"constraints": {"schemas.format": {"default": "Text/1"}}})
    copied = {"xid": "/x", "modifiedat": "2020-01-01T00:00:00Z", "format": "Text/1"}
    registry.put("/schemagroups/g/schemas/s", {"versions": {"1": copied}})
    registry.put("/schemagroups/g/schemas/t", {"versions": {"1": {**copied, "format": "Text/2"}}})
    assert registry.get("/schemagroups/g/schemas/s/versions/1").private[DEFAULT_MARKS] == {"format": True}
    assert DEFAULT_MARKS not in registry.get("/schemagroups/g/schemas/t/versions/1").private
