"""Decisions about cross references and read-only Resources. A pointer is a Resource with an `xref`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from annals.domain.access.roles import Role
from annals.domain.decisions.commands import DeleteEntities, WriteMethod, WriteTree
from annals.domain.decisions.decide import decide
from annals.domain.decisions.world import Context
from annals.domain.errors.problems import ModelComplianceError, Problem
from tests.support.registries.memory import START, MemoryRegistry, changed_attributes, event_kinds

MODEL = {
    "groups": {
        "shelves": {
            "singular": "shelf",
            "resources": {"books": {"singular": "book", "hasdocument": False}, "scans": {"singular": "scan"}},
        },
        "carts": {"singular": "cart", "ximportresources": ["/shelves/books"]},
    }
}
B1, B2 = "/shelves/s1/books/b1", "/shelves/s1/books/b2"
POINTER = {"meta": {"xref": B1}}


@pytest.fixture
def registry() -> MemoryRegistry:
    """A registry with b1, which has two Versions."""
    made = MemoryRegistry(MODEL)
    made.put(B1, {"versions": {"v1": {}, "v2": {"name": "two"}}})
    return made


def refused(
    registry: MemoryRegistry, xid: str, tree: Mapping[str, Any], method: WriteMethod = WriteMethod.PUT
) -> Problem:
    before = len(registry.log)
    with pytest.raises(Problem) as problem:
        registry.do(WriteTree(xid, tree, method))
    assert len(registry.log) == before
    return problem.value


def test_a_pointer_is_created_without_versions(registry: MemoryRegistry) -> None:
    # ENT-130, ENT-131, EV-121 (T100): only the Resource is created, with ids and the xref
    decision = registry.put(B2, POINTER)
    assert event_kinds(decision) == {"/shelves/s1": "updated", B2: "created"}
    assert registry.get(B2).attributes == {"bookid": "b2", "meta": {"bookid": "b2", "xref": B1}}


def test_a_resource_becomes_a_pointer_and_its_versions_go(registry: MemoryRegistry) -> None:
    # ENT-132, EV-122 (T101): local Versions are deleted, and attributes removed
    registry.put(B2, {"versions": {"v1": {"name": "own"}, "v2": {}}})
    decision = registry.put(B2, POINTER)
    assert event_kinds(decision) == {B2: "updated", f"{B2}/versions/v1": "deleted", f"{B2}/versions/v2": "deleted"}
    assert changed_attributes(decision, B2) >= {
        "meta.xref",
        "meta.epoch",
        "meta.modifiedat",
        "versions",
        "versionscount",
        "name",
    }


def test_a_pointer_moves(registry: MemoryRegistry) -> None:
    # EV-127 (T106): a new target makes one update of the pointer
    registry.put("/shelves/s1/books/b3", {})
    registry.put(B2, POINTER)
    decision = registry.put(B2, {"meta": {"xref": "/shelves/s1/books/b3"}})
    assert event_kinds(decision) == {B2: "updated"}
    assert changed_attributes(decision, B2) == {"meta.xref", "meta.epoch", "meta.modifiedat"}


def test_a_pointer_becomes_ordinary_again(registry: MemoryRegistry) -> None:
    # ENT-136, EV-123 (T102), P-15/30: the epoch is above every earlier one, createdat is the pointer's own, and ids of
    # Versions go on
    registry.put(B2, {})
    born = registry.meta(B2)["createdat"]
    registry.put(B2, POINTER)
    for _ in range(5):
        registry.patch(f"{B1}/meta", {})
    assert registry.meta(B1)["epoch"] == 6
    decision = registry.patch(f"{B2}/meta", {"xref": None})
    assert event_kinds(decision) == {B2: "updated", f"{B2}/versions/2": "created"}
    meta = registry.meta(B2)
    assert (meta["epoch"], meta["createdat"], meta["modifiedat"]) == (7, born, registry.now)
    assert "xref" not in meta


@pytest.mark.parametrize(
    ("own", "shown", "after"), [(1, 1, 2), (4, 1, 5), (4, 3, 5), (4, 4, 5), (4, 9, 10), (4, None, 5)]
)
@pytest.mark.parametrize("rewritten", [0, 3])
def test_the_epoch_goes_on_from_what_was_seen(
    registry: MemoryRegistry, own: int, shown: int | None, after: int, rewritten: int
) -> None:
    # ENT-136, P-15/30: one more than the larger of its own epoch and the target's, however often the xref was written
    registry.put(B2, {})
    for _ in range(own - 1):
        registry.patch(f"{B2}/meta", {})
    for _ in range(1, shown or 1):
        registry.patch(f"{B1}/meta", {})
    for _ in range(1 + rewritten):
        registry.put(B2, POINTER if shown is not None else {"meta": {"xref": "/shelves/s1/books/none"}})
    registry.patch(f"{B2}/meta", {"xref": None})
    assert registry.meta(B2)["epoch"] == after


def test_put_of_a_meta_without_a_pointer_ends_it(registry: MemoryRegistry) -> None:
    # ENT-136: a full replacement of meta removes the xref; attributes of the Resource make the default Version
    registry.put(B2, POINTER)
    registry.put(B2, {"name": "mine", "meta": {}})
    assert registry.get(B2).attributes["name"] == "mine"
    assert list(registry.versions(B2)) == ["1"]


@pytest.mark.parametrize(
    ("tree", "name"),
    [
        ({"name": "x", **POINTER}, "name"),
        ({"versions": {"v1": {}}, **POINTER}, "versions"),
        ({"versions": {}, **POINTER}, "versions"),
        ({"meta": {"xref": B1, "labels": {}}}, "labels"),
        ({"meta": {"xref": B1, "epoch": 1}}, "epoch"),
    ],
)
def test_an_xref_excludes_other_attributes(registry: MemoryRegistry, tree: dict[str, Any], name: str) -> None:
    # ENT-131: only ids, the xref and attributes that the server sets are allowed
    problem = refused(registry, B2, tree)
    assert (problem.name, problem.subject, problem.arguments["name"]) == ("extra_xref_attribute", B2, name)


def test_what_answers_carry_is_dropped_before(registry: MemoryRegistry) -> None:
    # ENT-131: an exported pointer can be imported
    registry.put(B2, {"bookid": "b2", "self": "#/", "xid": B2, "metaurl": "#/meta", "versionscount": 0, **POINTER})
    assert registry.meta(B2)["xref"] == B1


@pytest.mark.parametrize(
    "pointer",
    ["b1", "/shelves/s1", f"{B1}/meta", f"{B1}/versions/v1", "/shelves/s1/books", "/none/s/books/b", 7, B2],
)
def test_a_pointer_names_another_resource_of_a_known_type(registry: MemoryRegistry, pointer: Any) -> None:
    # ENT-130: the xref has to be the xid of a Resource
    assert refused(registry, B2, {"meta": {"xref": pointer}}).name == "malformed_xref"


def test_only_the_same_type_counts(registry: MemoryRegistry) -> None:
    # ENT-130: an imported type counts as the same type; a type with equal attributes does not
    registry.put("/carts/c1/books/b1", POINTER)
    registry.put(B2, {"meta": {"xref": "/carts/c1/books/none"}})
    assert refused(registry, "/shelves/s1/scans/p1", POINTER).name == "malformed_xref"


@pytest.mark.parametrize(
    ("method", "xid", "tree"),
    [
        (WriteMethod.PATCH, B2, {"name": "x"}),
        (WriteMethod.PATCH, B2, {"versions": {}}),
        (WriteMethod.PATCH, f"{B2}/meta", {"labels": {}}),
        (WriteMethod.POST, B2, {}),
        (WriteMethod.PUT, f"{B2}/versions/v9", {}),
        (WriteMethod.POST, f"{B2}/versions", {"v9": {}}),
    ],
)
def test_nothing_is_written_through_a_pointer(
    registry: MemoryRegistry, method: WriteMethod, xid: str, tree: dict[str, Any]
) -> None:
    # ENT-135: the target never changes through its pointer
    registry.put(B2, POINTER)
    assert refused(registry, xid, tree, method).name == "extra_xref_attribute"


@pytest.mark.parametrize("xid", [f"{B2}/versions", f"{B2}/versions/v1"])
def test_nothing_is_deleted_through_a_pointer(registry: MemoryRegistry, xid: str) -> None:
    # ENT-135: a DELETE of Versions is refused too
    registry.put(B2, POINTER)
    with pytest.raises(Problem) as problem:
        registry.delete(xid)
    assert problem.value.name == "extra_xref_attribute"


def test_target_and_source_go_by_themselves(registry: MemoryRegistry) -> None:
    # EV-124 to EV-126 (T103 to T105): a change of one makes no event of the other
    registry.put(B2, POINTER)
    assert B2 not in event_kinds(registry.patch(B1, {"name": "new"}))
    assert B2 not in event_kinds(registry.delete(B1))
    assert event_kinds(registry.delete(B2)) == {"/shelves/s1": "updated", B2: "deleted"}


def as_admin(registry: MemoryRegistry, command: Any) -> None:
    decision = decide(command, registry.world, Context(START, "admin", role=Role.ADMIN))
    registry.world.extend(decision.events, decision.documents)
    registry.log.extend(decision.events)


def test_readonly_is_an_admins_to_set(registry: MemoryRegistry) -> None:
    # ENT-140: values of other callers are dropped
    registry.patch(f"{B1}/meta", {"readonly": True})
    assert registry.meta(B1)["readonly"] is False
    as_admin(registry, WriteTree(f"{B1}/meta", {"readonly": True}, WriteMethod.PATCH))
    assert registry.meta(B1)["readonly"] is True


@pytest.mark.parametrize("method", [WriteMethod.PUT, WriteMethod.PATCH])
@pytest.mark.parametrize("value", [True, False, None])
def test_naming_readonly_opens_a_readonly_resource_to_admins_only(
    registry: MemoryRegistry, method: WriteMethod, value: bool | None
) -> None:
    # ENT-140: a writer that sends `readonly` is refused like any other writer, and nothing is written
    write = WriteTree(f"{B1}/meta", {"readonly": value, "labels": {"by": "me"}}, method)
    as_admin(registry, WriteTree(f"{B1}/meta", {"readonly": True}, WriteMethod.PATCH))
    problem = refused(registry, write.xid, write.tree, method)
    assert (problem.name, problem.subject) == ("readonly", B1)
    as_admin(registry, write)
    meta = registry.meta(B1)
    assert (meta["labels"], meta["readonly"]) == ({"by": "me"}, value is True or (value is None and method == "PATCH"))


@pytest.mark.parametrize("method", [WriteMethod.PUT, WriteMethod.PATCH])
def test_a_writer_sets_no_readonly_by_any_way(registry: MemoryRegistry, method: WriteMethod) -> None:
    # ENT-140: neither in a meta nor in the meta inside its Resource or Group
    for xid, tree in (
        (f"{B1}/meta", {"readonly": True}),
        (B1, {"meta": {"readonly": True}}),
        ("/shelves/s1", {"books": {"b1": {"meta": {"readonly": True}}}}),
    ):
        registry.do(WriteTree(xid, tree, method))
        assert registry.meta(B1)["readonly"] is False


@pytest.mark.parametrize(
    ("method", "xid", "tree"),
    [
        (WriteMethod.PUT, B1, {}),
        (WriteMethod.PATCH, f"{B1}/meta", {}),
        (WriteMethod.POST, B1, {}),
        (WriteMethod.PUT, f"{B1}/versions/v1", {}),
        (WriteMethod.POST, "/shelves/s1/books", {"b1": {}}),
        (WriteMethod.PATCH, "/shelves/s1", {"books": {"b1": {}}}),
    ],
)
def test_readonly_resources_refuse_writes(
    registry: MemoryRegistry, method: WriteMethod, xid: str, tree: dict[str, Any]
) -> None:
    # ENT-140: neither to the Resource nor to its meta and Versions; C-9: the flag `ignore` works for maps only
    as_admin(registry, WriteTree(f"{B1}/meta", {"readonly": True}, WriteMethod.PATCH))
    problem = refused(registry, xid, tree, method)
    assert (problem.name, problem.subject) == ("readonly", B1)
    ignoring = WriteTree(xid, tree, method, ignore=frozenset({"readonly"}))
    if xid.startswith(B1):
        with pytest.raises(Problem) as flagged:
            registry.do(ignoring)
        assert flagged.value.name == "bad_flag"
    else:
        assert B1 not in event_kinds(registry.do(ignoring))


@pytest.mark.parametrize("xid", [B1, f"{B1}/versions", f"{B1}/versions/v1", "/shelves/s1/books", "/shelves/s1"])
def test_readonly_resources_refuse_deletions(registry: MemoryRegistry, xid: str) -> None:
    # ENT-140: of the Resource, its Versions, its collection or its Group
    as_admin(registry, WriteTree(f"{B1}/meta", {"readonly": True}, WriteMethod.PATCH))
    with pytest.raises(Problem) as problem:
        registry.do(DeleteEntities(xid))
    assert problem.value.name == "readonly"


@pytest.mark.parametrize("cart", [None, {"singular": "cart", "resources": {"books": {"singular": "book"}}}])
def test_a_model_cannot_leave_a_pointer_on_another_type(registry: MemoryRegistry, cart: dict[str, Any] | None) -> None:
    # MOD-93, ENT-130, P-12: a model that makes the types of a pointer and its target different is refused, even if the
    # target does not exist
    registry.put(B2, {"meta": {"xref": "/carts/c1/books/b1"}})
    groups = MODEL["groups"] | ({"carts": cart} if cart else {})
    source = {"groups": {name: group for name, group in groups.items() if cart or name != "carts"}}
    before = len(registry.log)
    with pytest.raises(ModelComplianceError) as problem:
        registry.model(source)
    assert f"{B2}: " in str(problem.value.detail)
    assert len(registry.log) == before
    registry.put(B2, POINTER)
    registry.model(source)
    assert registry.meta(B2)["xref"] == B1
