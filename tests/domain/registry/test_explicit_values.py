"""Which values of a Version are defaults: kept in private as writes, new models and restorations go on."""

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
    # MS-16: what clients sent can be told from what L1 filled in
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
    said = explicit_values(version.attributes, version.private[DEFAULT_MARKS])
    assert said["envelopemetadata"] == given["envelopemetadata"]
    assert registry.get(M).private.get(DEFAULT_MARKS) is None


def test_what_has_no_defaults_keeps_no_marks(registry: MemoryRegistry) -> None:
    registry.put(M, {"name": "n", "labels": {"a": "b"}})
    assert marks(registry) is None


def test_a_patch_keeps_the_marks_of_what_it_leaves(registry: MemoryRegistry) -> None:
    # MS-16: a merge states what it names and nothing else
    registry.put(M, {**CE, "envelopemetadata": {"subject": {}}, "protocol": "NATS", "protocoloptions": {"headers": []}})
    registry.patch(M, {"protocol": "AMQP/1.0", "protocoloptions": {"header": {"durable": False}}})
    header = {"priority": True, "first-acquirer": True, "delivery-count": True}
    kept = {"envelopemetadata": {"subject": {"type": True, "required": True}}}
    assert marks(registry) == {**kept, "protocoloptions": {"header": header}}
    registry.patch(M, {"name": "n"})
    assert marks(registry) == {**kept, "protocoloptions": {"header": header}}
    registry.patch(M, {"envelope": None, "envelopemetadata": None})
    assert marks(registry) == {"protocoloptions": {"header": header}}
    registry.put(M, {"name": "n"})
    assert marks(registry) is None


def test_an_unchanged_response_sent_back_states_nothing(registry: MemoryRegistry) -> None:
    # MS-16: a default that a client has read is not its own; what it changes is, and so is all that it writes unread
    registry.put(M, {**CE, "envelopemetadata": {"subject": {}, "time": {}, "id": {"type": "string"}}})
    shown = registry.get(f"{M}/versions/1").attributes
    before = marks(registry)
    registry.put(M, shown)
    assert marks(registry) == before
    shown = registry.get(f"{M}/versions/1").attributes
    metadata = {**shown["envelopemetadata"], "subject": {"type": "uritemplate", "required": True}, "source": {}}
    registry.put(M, {**shown, "envelopemetadata": metadata})
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
def test_what_another_registry_filled_in_is_no_statement(registry: MemoryRegistry, nested: bool) -> None:
    # MS-16: what an answer of another registry shows as the model would fill it in counts as a default, and only that
    registry.put(M, {**CE, "envelopemetadata": {"subject": {"required": True}, "time": {}, "ext": {"value": "x"}}})
    shown, before = registry.get(f"{M}/versions/1").attributes, marks(registry)
    answer = {**shown, "xid": f"{M}/versions/1"}
    other = MemoryRegistry(default_source())
    other.put(M, {"versions": {"1": answer}} if nested else {**answer, "xid": M})
    assert marks(other) == before
    assert other.get(f"{M}/versions/1").attributes == shown
    written = {name: value for name, value in shown.items() if name not in ("modifiedat", "createdat", "epoch")}
    third = MemoryRegistry(default_source())
    third.put(M, {"versions": {"1": {**written, "xid": f"{M}/versions/1"}}})
    assert marks(third) is None


def test_defaults_of_a_group_come_before_those_of_the_model(registry: MemoryRegistry) -> None:
    # MS-16, SC-05: what the Group would fill in is a default in an answer, another value is not
    registry.put("/schemagroups/g", {"constraints": {"schemas.format": {"default": "Text/1"}}})
    answer = {"xid": "/x", "modifiedat": "2020-01-01T00:00:00Z", "format": "Text/1"}
    registry.put("/schemagroups/g/schemas/s", {"versions": {"1": answer}})
    registry.put("/schemagroups/g/schemas/t", {"versions": {"1": {**answer, "format": "Text/2"}}})
    assert registry.get("/schemagroups/g/schemas/s/versions/1").private[DEFAULT_MARKS] == {"format": True}
    assert DEFAULT_MARKS not in registry.get("/schemagroups/g/schemas/t/versions/1").private
