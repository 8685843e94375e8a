"""Decisions about restores: created, deleted and unchanged entities, and restores that are refused."""

from __future__ import annotations

from typing import Any

import pytest

from annals.domain.access.roles import Role
from annals.domain.decisions.commands import Restore, WriteCapabilities, WriteMethod, WriteTree
from annals.domain.decisions.decide import decide
from annals.domain.decisions.world import Context, Decision
from annals.domain.errors.problems import Problem
from tests.support.registries.memory import (
    START,
    MemoryRegistry,
    changed_attributes,
    event_kinds,
    past_state,
    state_below,
)
from tests.support.registries.memory_world import MemoryWorld

D = "/dirs/d"
F = "/dirs/d/files/f"
V = "/dirs/d/files/f/versions/"


def model(*others: str, **aspects: Any) -> dict[str, Any]:
    """Returns a model with dirs and files, given aspects of files, and other Group types."""
    free = {"*": {"name": "*", "type": "any"}}
    files = {"singular": "file", "attributes": free, **aspects}
    dirs = {"singular": "dir", "attributes": free, "resources": {"files": files}}
    return {"groups": {"dirs": dirs} | {plural: {"singular": plural[:-1]} for plural in others}}


@pytest.fixture
def registry() -> MemoryRegistry:
    """A registry with a file with two Versions, each with a document; the first Version is the sticky default."""
    made = MemoryRegistry(model())
    made.put(D, {"name": "then", "labels": {"a": "b"}})
    for versionid in ("v1", "v2"):
        made.put(V + versionid, {"name": versionid}, document=versionid.encode())
    made.patch(f"{F}/meta", {"defaultversionid": "v1", "labels": {"x": "y"}})
    return made


def restore(registry: MemoryRegistry, xid: str, position: int, *include: str) -> Decision:
    return registry.do(Restore(xid, position, frozenset(include)))


def refused(registry: MemoryRegistry, xid: str, position: int) -> Problem:
    with pytest.raises(Problem) as found:
        restore(registry, xid, position)
    return found.value


CHANGES: dict[str, Any] = {
    "attributes of a Group": lambda made: made.put(D, {"description": "now"}),
    "a deleted Group": lambda made: made.delete(D),
    "a deleted Group, in other letters again and gone": lambda made: (
        made.delete(D),
        made.put("/dirs/D", {}),
        made.delete("/dirs/D"),
    ),
    "a deleted Resource": lambda made: made.delete(F),
    "another Resource of the name": lambda made: (made.delete(F), made.put(V + "v1", {"name": "other"})),
    "a new Resource": lambda made: made.put(f"{D}/files/g", {}),
    "a new Group": lambda made: made.put("/dirs/e/files/g", {}),
    "a deleted Version": lambda made: made.delete(V + "v1"),
    "a new Version": lambda made: made.put(V + "v3", {}),
    "a Version that came and went": lambda made: (made.put(V + "v3", {}), made.delete(V + "v3")),
    "attributes of a Version": lambda made: made.put(V + "v2", {"more": 1}),
    "a document": lambda made: made.put(F, {}, document=b"\x00now"),
    "no document": lambda made: made.put(V + "v1", {"fileurl": "http://elsewhere"}),
    "an ancestor": lambda made: made.patch(V + "v2", {"ancestorid": "v2"}),
    "a birth": lambda made: made.patch(V + "v2", {"createdat": "2020-01-01T00:00:00Z"}),
    "a meta": lambda made: made.put(f"{F}/meta", {"compatibility": "backward"}),
    "a default Version": lambda made: made.patch(f"{F}/meta", {"defaultversionid": "v2"}),
    "a pointer now": lambda made: (
        made.put("/dirs/e/files/g", {}),
        made.put(F, {"meta": {"xref": "/dirs/e/files/g"}}),
    ),
    "attributes of the registry": lambda made: made.put("/", {"name": "now"}),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_the_tree_is_as_it_was(registry: MemoryRegistry, change: Any) -> None:
    # FLAG-81, issue 5 point 5: missing entities are created, different ones updated, new ones deleted; idempotent
    position = len(registry.log)
    change(registry)
    restore(registry, "/", position)
    assert state_below(registry.world) == past_state(registry, position)
    assert restore(registry, "/", position).events == ()


@pytest.mark.parametrize(
    ("xid", "labels", "default"),
    [
        ("/dirs", {"x": "y"}, "v1"),
        (D, {"x": "y"}, "v1"),
        (f"{D}/files", {"x": "y"}, "v1"),
        (F, {"x": "y"}, "v1"),
        (f"{F}/meta", {"x": "y"}, "v1"),
        (f"{F}/versions", None, "v2"),
        (V + "v2", None, "v3"),
    ],
)
def test_only_the_place_that_is_named(registry: MemoryRegistry, xid: str, labels: Any, default: str) -> None:
    # FLAG-81: an entity with all below it, a collection or a meta; other entities do not change
    position = len(registry.log)
    registry.put("/dirs/e", {})
    registry.put(D, {"name": "now"})
    registry.put(f"{D}/files/g", {})
    for versionid in ("v2", "v3"):
        registry.put(V + versionid, {"name": "now"})
    registry.patch(f"{F}/meta", {"labels": None, "defaultversionsticky": False})
    before = state_below(registry.world)
    restore(registry, xid, position)
    after, past = state_below(registry.world), past_state(registry, position)
    assert within(xid, after) == within(xid, past)
    assert beside(xid, after) == beside(xid, before)
    assert registry.meta(F).get("labels") == labels
    assert registry.get(F).attributes["versionid"] == default


def within(xid: str, found: dict[str, Any]) -> dict[str, Any]:
    """Returns the entities at or below an xid, without `isdefault`."""
    return {name: without_default(image) for name, image in found.items() if f"{name}/".startswith(f"{xid}/")}


def beside(xid: str, found: dict[str, Any]) -> dict[str, Any]:
    """Returns the entities that are neither at or below an xid nor above it."""
    others = {name: image for name, image in found.items() if not f"{xid}/".startswith(f"{name.rstrip('/')}/")}
    return {name: without_default(others[name]) for name in others.keys() - within(xid, found).keys()}


def without_default(image: Any) -> Any:
    return {name: value for name, value in image[0].items() if name != "isdefault"}, image[1]


def test_deleted_entities_are_created_again(registry: MemoryRegistry) -> None:
    # ENT-51: epoch 1 in the old stream; createdat is the old one, modifiedat the time of the restore
    position, born = len(registry.log), registry.get(D).attributes["createdat"]
    revision = registry.world.revision(D)
    registry.delete(D)
    decision = restore(registry, D, position)
    assert event_kinds(decision) == {
        "/": "updated",
        D: "created",
        F: "created",
        V + "v1": "created",
        V + "v2": "created",
    }
    group = registry.get(D)
    assert (group.epoch, group.revision) == (1, revision + 2)
    assert (group.attributes["createdat"], group.attributes["modifiedat"]) == (born, registry.now)


def test_what_differs_is_an_ordinary_update(registry: MemoryRegistry) -> None:
    # FLAG-81, EV-50: epochs go on, and `changed` lists the differences from the current state
    position = len(registry.log)
    registry.put(D, {"name": "now"})
    decision = restore(registry, "/", position)
    assert event_kinds(decision) == {D: "updated"}
    assert registry.get(D).epoch == 4
    assert changed_attributes(decision, D) == {"epoch", "modifiedat", "name", "labels"}


def test_a_pointer_comes_back(registry: MemoryRegistry) -> None:
    # ENT-132: as a pointer with its own creation time, even if its target is gone
    registry.put(f"{D}/files/p", {"meta": {"xref": F}})
    position, private = len(registry.log), registry.get(f"{D}/files/p").private["own"]
    registry.delete(D)
    restore(registry, f"{D}/files/p", position)
    entity = registry.get(f"{D}/files/p")
    assert entity.attributes["meta"] == {"fileid": "p", "xref": F}
    assert entity.private["own"]["createdat"] == private["createdat"]
    assert registry.find(F) is None


def test_ids_that_the_server_gave_are_not_given_again(registry: MemoryRegistry) -> None:
    # ENT-75: a restored Resource continues its count of ids
    for _ in range(3):
        registry.post(f"{D}/files/g", {})
    registry.delete(f"{D}/files/g/versions/3")
    position = len(registry.log)
    registry.delete(f"{D}/files/g")
    restore(registry, D, position)
    decision = registry.post(f"{D}/files/g", {})
    assert decision.processed == (f"{D}/files/g/versions/4",)


@pytest.mark.parametrize("mode", ["createdat", "modifiedat"])
def test_the_order_of_versions_comes_back(mode: str) -> None:
    # ENT-100, ENT-101: the default Version and the ancestors follow from the restored times
    registry = MemoryRegistry(model(versionmode=mode, singleversionroot=True))
    for versionid in ("b", "c", "a"):
        registry.put(V + versionid, {})
    position = len(registry.log)
    registry.delete(V + "c")
    registry.put(V + "b", {"name": "last", "createdat": registry.now})
    registry.delete(V + "a")
    restore(registry, F, position)
    assert state_below(registry.world, F) == past_state(registry, position, F)
    assert registry.get(F).attributes["versionid"] == "a"


def test_the_model_of_today_holds(registry: MemoryRegistry) -> None:
    # MOD-93, FLAG-81: a past state that violates the current model is refused like a write, and nothing changes
    position = len(registry.log)
    registry.delete(D)
    registry.model(model(hasdocument=False))
    assert refused(registry, F, position).name == "hasdocument_violation"
    registry.model({"groups": {"dirs": {"singular": "dir"}}})
    assert refused(registry, "/", position).name == "unknown_resource_type"
    registry.model({})
    assert refused(registry, "/", position).name == "unknown_group_type"
    assert restore(registry, "/", position, "model").events
    assert state_below(registry.world) == past_state(registry, position)


def test_a_model_comes_back_unless_it_is_in_the_way(registry: MemoryRegistry) -> None:
    # MOD-1: `/model` is restored by itself or with the root; a type with instances stays until they are deleted
    position = len(registry.log)
    registry.model(model("boxes"))
    registry.put("/boxes/b", {})
    assert refused(registry, "/model", position).name == "model_compliance_error"
    restore(registry, "/", position)
    assert registry.find("/boxes/b") is None
    assert "boxes" in registry.world.model.groups
    decision = restore(registry, "/model", position)
    assert event_kinds(decision) == {"/": "updated", "/model": "updated"}
    assert registry.world.model.full == MemoryWorld(registry.log[:position]).model.full


@pytest.mark.parametrize("more", [{}, {f"{D}/files/g": {}, "/dirs/e/files/g/versions/v": {}}])
def test_the_model_comes_back_with_all_there_was(registry: MemoryRegistry, more: dict[str, Any]) -> None:
    # MOD-1, FLAG-81: entities of types that the old model lacks are deleted in the same change, so they are no conflict
    position = len(registry.log)
    wider = model("boxes")
    wider["groups"]["dirs"]["resources"]["notes"] = {"singular": "note", "hasdocument": False}
    registry.model(wider)
    for xid, body in {"/boxes/b": {}, f"{D}/notes/n": {"name": "n"}, "/dirs/e/notes/n": {}, **more}.items():
        registry.put(xid, body)
    decision = restore(registry, "/", position, "model", "capabilities")
    assert state_below(registry.world) == past_state(registry, position)
    kinds = event_kinds(decision)
    assert len(kinds) == len(decision.events)
    assert kinds.keys() >= {"/", "/model", "/boxes/b", f"{D}/notes/n", f"{D}/notes/n/versions/1", "/dirs/e/notes/n"}
    assert {kinds[xid] for xid in kinds if "/notes/" in xid or xid in ("/boxes/b", "/dirs/e")} == {"deleted"}
    assert {kinds["/"], kinds["/model"], kinds[D]} == {"updated"}


@pytest.mark.parametrize("renamed", ["file", "dir"])
def test_a_renamed_type_does_not_prevent_a_restore(registry: MemoryRegistry, renamed: str) -> None:
    # MOD-5, FLAG-81: one change restores the singular, and deletes or updates entities written under the new singular
    position = len(registry.log)
    registry.delete(D)
    other = model()
    dirs = other["groups"]["dirs"]
    (dirs if renamed == "dir" else dirs["resources"]["files"])["singular"] = "sheet"
    registry.model(other)
    registry.put(V + "v2", {"name": "new"}, document=b"new")
    registry.put(f"{D}/files/g", {})
    registry.put("/dirs/e/files/f", {})
    assert refused(registry, "/model", position).name == "model_compliance_error"
    decision = restore(registry, "/", position, "model")
    assert state_below(registry.world) == past_state(registry, position)
    assert len(event_kinds(decision)) == len(decision.events)
    assert event_kinds(decision)[F] == event_kinds(decision)[V + "v2"] == "updated"
    registry.put(V + "v3", {})


def test_capabilities_come_back(registry: MemoryRegistry) -> None:
    # CAP-1: by themselves, or with the root on request
    position = len(registry.log)
    registry.do(WriteCapabilities({"pagination": False}, WriteMethod.PATCH))
    assert restore(registry, "/", position).events == ()
    decision = restore(registry, "/", position, "capabilities")
    assert event_kinds(decision) == {"/": "updated", "/capabilities": "updated"}
    assert registry.get("/capabilities").attributes["pagination"] is True
    assert restore(registry, "/capabilities", position).events == ()


def test_a_smaller_type_prunes_what_comes_back(registry: MemoryRegistry) -> None:
    # ENT-104: as many Versions as the current type allows
    registry.patch(f"{F}/meta", {"defaultversionsticky": False})
    position = len(registry.log)
    registry.delete(F)
    registry.model(model(maxversions=1))
    restore(registry, F, position)
    assert list(registry.versions(F)) == ["v2"]


@pytest.mark.parametrize(
    ("xid", "name"),
    [
        ("/dirs/e", "not_found"),
        ("/dirs/D", "not_found"),
        ("/dirs/e/files", "not_found"),
        (V + "v9", "not_found"),
        (f"{D}/files/g/meta", "not_found"),
    ],
)
def test_an_entity_that_did_not_exist_cannot_be_restored(registry: MemoryRegistry, xid: str, name: str) -> None:
    # FLAG-80, FLAG-81: refused, and the current entities do not change
    position = len(registry.log)
    registry.put("/dirs/e/files/g", {})
    before = state_below(registry.world)
    assert refused(registry, xid, position).name == name
    assert refused(registry, D, 0).name == "not_found"
    assert state_below(registry.world) == before


def test_what_cannot_stand_alone(registry: MemoryRegistry) -> None:
    # ENT-102, HTTP-72: a meta needs its Resource, a Version its ancestor, a sticky default its Version
    position = len(registry.log)
    registry.delete(V + "v1")
    assert refused(registry, V + "v2", position).name == "unknown_id"
    assert refused(registry, f"{F}/meta", position).name == "unknown_id"
    registry.delete(F)
    assert refused(registry, f"{F}/meta", position).name == "not_found"


def test_a_restore_cannot_delete_protected_entities(registry: MemoryRegistry) -> None:
    # ENT-66: a planned removal date protects a newer Group from deletion
    position = len(registry.log)
    removal = {"removal": "2050-01-01T00:00:00Z"}
    registry.put("/dirs/e", {"deprecated": removal})
    assert refused(registry, "/", position).name == "bad_request"
    restore(registry, D, position)


def test_readonly(registry: MemoryRegistry) -> None:
    # ENT-140: only an admin restores a read-only Resource or its `readonly` attribute
    position = len(registry.log)
    registry.put(V + "v2", {"name": "now"})
    locked = as_admin(registry, WriteTree(f"{F}/meta", {"readonly": True}, WriteMethod.PATCH))
    for xid in ("/", F, V + "v2"):
        assert refused(registry, xid, position).name == "readonly"
    as_admin(registry, Restore(f"{F}/meta", position))
    assert registry.meta(F)["readonly"] is False
    restore(registry, F, locked)
    assert registry.meta(F)["readonly"] is False
    as_admin(registry, Restore(F, locked))
    assert registry.meta(F)["readonly"] is True


def as_admin(registry: MemoryRegistry, command: Any) -> int:
    """Applies a command of an admin; returns the end of the log after it."""
    registry.interactions += 1
    decision = decide(command, registry.world, Context(START, f"c{registry.interactions}", role=Role.ADMIN))
    registry.world.extend(decision.events, decision.documents)
    registry.log.extend(decision.events)
    return len(registry.log)
