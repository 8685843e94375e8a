"""Decisions about constraints of Groups, attributes that all Versions share, and checks of formats."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from annals.domain import formats
from annals.domain.decisions import capabilities
from annals.domain.errors.problems import Problem
from annals.domain.formats import DocumentLocation, FormatModule, Incompatibility, InvalidDocument
from tests.support.registries.memory import MemoryRegistry, event_kinds

BOX = {
    "singular": "box",
    "attributes": {"color": {"type": "string"}, "size": {"type": "object", "attributes": {"unit": {"type": "string"}}}},
    "resources": {
        "pens": {
            "singular": "pen",
            "hasdocument": False,
            "attributes": {
                "ink": {"type": "string"},
                "nib": {"type": "object", "attributes": {"unit": {"type": "string"}}},
                "maker": {"type": "string", "matchversions": True},
                "number": {"type": "decimal", "matchversions": True},
                "sold": {"type": "timestamp"},
            },
        }
    },
}
INK = {"ink": {"type": "string"}}
PEN = "/boxes/b1/pens/p1"


def registry(constraints: dict[str, Any]) -> MemoryRegistry:
    return MemoryRegistry({"groups": {"boxes": {**BOX, "constraints": constraints}}})


def refused(made: MemoryRegistry, xid: str, tree: dict[str, Any]) -> tuple[str, str | None, dict[str, str]]:
    before = len(made.log)
    with pytest.raises(Problem) as problem:
        made.put(xid, tree)
    assert len(made.log) == before
    return problem.value.name, problem.value.subject, problem.value.arguments


def test_an_enum_of_the_group_type_restricts_values() -> None:
    # MOD-62, MOD-64: an absent attribute does not violate the enum
    made = registry({"pens.ink": {"enum": ["blue", "red"]}})
    made.put(PEN, {})
    made.put(PEN, {"ink": "red"})
    failure = ("constraint_failure", PEN, {"path": "ink", "kind": "enum"})
    assert refused(made, PEN, {"ink": "green"}) == failure
    assert refused(made, f"{PEN}/versions/v2", {"ink": "green"}) == failure


def test_a_default_of_the_group_type_is_applied() -> None:
    # MOD-61: also to an attribute that is not required
    made = registry({"pens.ink": {"default": "blue"}})
    made.put(PEN, {})
    assert made.get(PEN).attributes["ink"] == "blue"


def test_equals_wants_the_value_of_the_group() -> None:
    # MOD-63: the Version needs the same value if the Group has one; any value is allowed if not; inside objects too
    made = registry({"pens.ink": {"equals": "color"}, "pens.nib.unit": {"equals": "size.unit"}})
    made.put(PEN, {"ink": "green"})
    assert refused(made, "/boxes/b1", {"color": "red"}) == (
        "constraint_failure",
        PEN,
        {"path": "ink", "kind": "equals"},
    )
    made.put("/boxes/b2", {"color": "red", "size": {"unit": "mm"}})
    assert refused(made, "/boxes/b2/pens/p1", {"ink": "red"})[2] == {"path": "nib.unit", "kind": "equals"}
    made.put("/boxes/b2/pens/p1", {"ink": "red", "nib": {"unit": "mm"}})
    assert refused(made, "/boxes/b2/pens/p1", {"nib": {"unit": "mm"}})[2] == {"path": "ink", "kind": "equals"}


def test_a_group_may_narrow_and_its_resources_are_held_to_it() -> None:
    # ENT-155, ENT-156: a change of `constraints` is checked against every stored Version
    made = registry({"pens.ink": {"enum": ["blue", "red"]}})
    made.put(PEN, {"versions": {"v1": {"ink": "blue"}, "v2": {"ink": "red"}}})
    narrow = {"constraints": {"pens.ink": {"enum": ["red"]}}}
    assert refused(made, "/boxes/b1", narrow)[0] == "constraint_failure"
    made.put(f"{PEN}/versions/v1", {"ink": "red"})
    made.put("/boxes/b1", narrow)
    assert refused(made, f"{PEN}/versions/v1", {"ink": "blue"})[0] == "constraint_failure"
    assert refused(made, "/boxes/b2", {"constraints": {"pens.ink": {"enum": ["pink"]}}})[0] == "invalid_attribute"


def test_a_group_may_give_defaults() -> None:
    # ENT-155: also inside an object, if the object is present
    made = registry({})
    made.put("/boxes/b1", {"constraints": {"pens.ink": {"default": "red"}, "pens.nib.unit": {"default": "mm"}}})
    made.put(PEN, {})
    made.put("/boxes/b1/pens/p2", {"nib": {}, "ink": "blue"})
    assert made.get(PEN).attributes["ink"] == "red"
    assert "nib" not in made.get(PEN).attributes
    assert made.get("/boxes/b1/pens/p2").attributes["nib"] == {"unit": "mm"}


@pytest.mark.parametrize("default", [{"pens.ink": {"default": "x" * 5000}}, {"pens.name": {"default": ""}}])
def test_defaults_are_checked_when_they_are_written(default: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    # ENT-13, ENT-155: a default that no Version can have is refused, but one of an earlier release holds nothing up
    made = registry({})
    assert refused(made, "/boxes/b1", {"constraints": default})[0] == "invalid_attribute"
    monkeypatch.setattr("annals.domain.decisions.rules.constraints.check_defaults", lambda *_: None)
    made.put("/boxes/b1", {"constraints": default})
    monkeypatch.undo()
    made.put(PEN, {"ink": "red", "name": "it"})
    made.put(PEN, {"ink": "blue", "name": "it"})
    made.put("/boxes/b1", {"constraints": default, "color": "red"})
    made.model({"groups": {"boxes": {**BOX, "description": "new"}}})
    made.put("/boxes/b1", {"color": "red"})
    assert refused(made, "/boxes/b1", {"constraints": default})[0] == "invalid_attribute"


def test_a_model_that_constrains_what_is_stored_is_refused() -> None:
    # MOD-64, MOD-93: stored Versions have to comply
    made = registry({})
    made.put(PEN, {"ink": "green"})
    with pytest.raises(Problem) as problem:
        made.model({"groups": {"boxes": {**BOX, "constraints": {"pens.ink": {"enum": ["blue"]}}}}})
    assert problem.value.name == "constraint_failure"


@pytest.mark.parametrize(
    "change",
    [
        {"constraints": {"pens.ink": {"enum": ["red"]}}},
        {"constraints": {"pens.ink": {"equals": "name"}}},
        {"attributes": {"label": {"type": "string"}}},
        {"resources": {"pens": {"singular": "pen", "hasdocument": False}}},
        {"resources": {}},
    ],
)
def test_a_model_has_to_fit_the_constraints_that_groups_have(change: dict[str, Any]) -> None:
    # ENT-155, MOD-93, P-12: also for a Group without Resources, because no Resource could be written there any more
    made = registry({})
    made.put("/boxes/b1", {"constraints": {"pens.ink": {"enum": ["blue"], "equals": "color"}}})
    before = len(made.log)
    with pytest.raises(Problem) as problem:
        made.model({"groups": {"boxes": {**BOX, **change}}})
    assert problem.value.name == "model_compliance_error"
    assert str(problem.value.detail).startswith("/boxes/b1: The attribute \"constraints['pens.ink']")
    assert len(made.log) == before


def test_the_groups_of_pointers_bind_their_target() -> None:
    # ENT-138: a Group with an xref to a Resource can make writes to that Resource fail; the xref itself can fail too
    made = registry({})
    made.put("/boxes/b2", {"constraints": {"pens.ink": {"enum": ["red"]}}})
    made.put(PEN, {"ink": "blue"})
    pointer = "/boxes/b2/pens/p9"
    assert refused(made, pointer, {"meta": {"xref": PEN}})[0] == "constraint_failure"
    made.put(PEN, {"ink": "red"})
    made.put(pointer, {"meta": {"xref": PEN}})
    assert refused(made, PEN, {"ink": "blue"})[0] == "constraint_failure"
    assert made.get(PEN).attributes["ink"] == "red"


def test_all_versions_share_matchversions_attributes() -> None:
    # MOD-36: all Versions have the same value or none has one; a change of all Versions in one request is accepted
    made = registry({})
    made.put(PEN, {"versions": {"v1": {"maker": "a"}, "v2": {"maker": "a"}}})
    mismatch = ("mismatched_version_attribute", PEN, {"name": "maker"})
    assert refused(made, f"{PEN}/versions/v1", {"maker": "b"}) == mismatch
    assert refused(made, f"{PEN}/versions/v1", {}) == mismatch
    assert refused(made, f"{PEN}/versions/v3", {}) == mismatch
    made.post(f"{PEN}/versions", {"v1": {"maker": "b"}, "v2": {"maker": "b"}})


def test_equal_numbers_match_in_any_notation() -> None:
    # MOD-36: JSON has many notations of a number
    made = registry({})
    made.put(PEN, {"versions": {"v1": {"number": 100}, "v2": {"number": 1e2}, "v3": {"number": Decimal("100.0")}}})
    mismatch = ("mismatched_version_attribute", PEN, {"name": "number"})
    assert refused(made, f"{PEN}/versions/v3", {"number": Decimal("100.01")}) == mismatch


def test_constraints_compare_instants() -> None:
    # MOD-61, MOD-62, ENT-155: the registry keeps timestamps in UTC, whichever notation the constraint has
    made = registry({"pens.sold": {"enum": ["2030-01-01T00:00:00+01:00", "2031-01-01T00:00:00Z"]}})
    narrow = {"pens.sold": {"enum": ["2029-12-31T23:00:00Z"], "default": "2030-01-01T01:00:00.0+02:00"}}
    made.put("/boxes/b1", {"constraints": narrow})
    made.put(PEN, {})
    assert made.get(PEN).attributes["sold"] == "2029-12-31T23:00:00.0Z"
    made.put(f"{PEN}/versions/2", {"sold": "2029-12-31T22:00:00-01:00"})
    assert refused(made, PEN, {"sold": "2031-01-01T00:00:00Z"})[0] == "constraint_failure"
    assert refused(made, "/boxes/b2", {"constraints": {"pens.sold": {"enum": ["2030-01-01T00:00:00Z"]}}})[0] == (
        "invalid_attribute"
    )


@pytest.mark.parametrize(("name", "default"), [("ink", "x" * 4100), ("contenttype", "none")])
def test_a_group_gives_no_default_that_no_version_can_have(name: str, default: str) -> None:
    # ENT-155, ENT-13
    made = MemoryRegistry({"groups": {"boxes": {**BOX, "resources": {"pens": {"singular": "pen", "attributes": INK}}}}})
    problem, _, arguments = refused(made, "/boxes/b1", {"constraints": {f"pens.{name}": {"default": default}}})
    assert (problem, arguments["name"]) == ("invalid_attribute", f"constraints['pens.{name}'].default")


def parse(document: bytes, name: str) -> bytes:
    """Accepts documents with an even number of bytes."""
    if len(document) % 2:
        raise InvalidDocument(
            f"{len(document)} bytes is an odd number", DocumentLocation(line=1, fragment=document.decode())
        )
    return document


def incompatibilities(reader: bytes, writer: bytes, newer: str | None = None) -> list[Incompatibility]:
    """A document is compatible with documents that are not longer."""
    return [] if len(reader) >= len(writer) else [Incompatibility("shorter", "it is shorter than what it reads")]


@pytest.fixture
def even(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Registers this module as the format `Even/1`, with the backward rules only."""
    module = FormatModule("even", ("Even/1",))
    monkeypatch.setitem(sys.modules, "annals.domain.formats.even", sys.modules[__name__])
    monkeypatch.setattr(formats, "FORMAT_MODULES", (module,))
    rules = {"Even/1": ["backward", "backward_transitive"]}
    monkeypatch.setattr(
        capabilities, "INITIAL", {**capabilities.INITIAL, "formats": ["Even/1"], "compatibilities": rules}
    )
    formats.find_format.cache_clear()
    yield
    formats.find_format.cache_clear()


def notes(strict: bool = False, compatible: bool = True) -> MemoryRegistry:
    type = {
        "singular": "note",
        "validateformat": True,
        "validatecompatibility": compatible,
        "strictvalidation": strict,
    }
    return MemoryRegistry({"groups": {"boxes": {"singular": "box", "resources": {"notes": type}}}})


NOTE = "/boxes/b1/notes/n1"
EVEN = {"format": "Even/1", "contenttype": "text/plain"}


def validated(made: MemoryRegistry, xid: str = NOTE) -> dict[str, Any]:
    return {name: value for name, value in made.get(xid).attributes.items() if "validated" in name}


def test_versions_without_format_are_not_checked(even: None) -> None:
    # ENT-110: without `format` there is no check and no attribute
    made = notes(strict=True)
    made.put(NOTE, {"note": "odd", "contenttype": "text/plain", "meta": {"compatibility": "backward"}})
    assert validated(made) == {}


def test_a_document_is_checked_against_its_format(even: None) -> None:
    # ENT-110, ENT-114: a valid document sets `formatvalidated` without a reason, an invalid one is refused; an absent
    # document counts as zero bytes
    made = notes()
    made.put(NOTE, {**EVEN, "note": "ab"})
    assert validated(made) == {"formatvalidated": True}
    assert refused(made, NOTE, {**EVEN, "note": "abc"})[0] == "format_violation"
    # SC-14: no format accepts zero bytes
    assert refused(made, "/boxes/b1/notes/n2", {**EVEN})[0] == "format_violation"


@pytest.mark.parametrize(
    ("tree", "problem"),
    [
        ({"format": "Odd/1"}, "format_unknown"),
        ({**EVEN, "noteurl": "https://x.example/n"}, "format_external"),
        ({**EVEN, "note": "ab", "meta": {"compatibility": "forward"}}, "compatibility_unknown"),
    ],
)
def test_unsupported_formats_are_marked_or_refused(even: None, tree: dict[str, Any], problem: str) -> None:
    # ENT-110, ENT-111, C-3: with `strictvalidation` refused; otherwise the flag is false and there is a reason
    assert refused(notes(strict=True), NOTE, tree)[0] == problem
    made = notes()
    made.put(NOTE, tree)
    flags = validated(made)
    failed = "compatibility" if problem.startswith("compatibility") else "format"
    assert flags[f"{failed}validated"] is False
    assert flags[f"{failed}validatedreason"]


def test_compatibility_is_checked_along_the_line(even: None) -> None:
    # ENT-110, ENT-112, C-18: compared with the ancestor; without a validated format, compatibility is not validated
    made = notes()
    made.put(NOTE, {**EVEN, "versionid": "v1", "note": "abcd", "meta": {"compatibility": "backward"}})
    made.put(f"{NOTE}/versions/v2", {**EVEN, "note": "abcdef"})
    assert validated(made) == {"formatvalidated": True, "compatibilityvalidated": True}
    assert refused(made, f"{NOTE}/versions/v3", {**EVEN, "note": "ab"})[:2] == ("compatibility_violation", NOTE)
    made.put(f"{NOTE}/versions/v3", {**EVEN, "noteurl": "https://x.example/n"})
    assert validated(made)["compatibilityvalidated"] is False


def test_a_new_rule_is_held_against_all_versions(even: None) -> None:
    # ENT-113: changing `meta.compatibility` checks every Version again and refreshes it
    made = notes()
    made.put(NOTE, {"versions": {"v1": {**EVEN, "note": "abcd"}, "v2": {**EVEN, "note": "ab"}}})
    with pytest.raises(Problem) as problem:
        made.patch(f"{NOTE}/meta", {"compatibility": "backward"})
    assert problem.value.name == "compatibility_violation"
    made.put(f"{NOTE}/versions/v2", {**EVEN, "note": "abcdef"})
    decision = made.patch(f"{NOTE}/meta", {"compatibility": "backward"})
    assert event_kinds(decision) == {
        NOTE: "updated",
        f"{NOTE}/versions/v1": "refreshed",
        f"{NOTE}/versions/v2": "refreshed",
    }


def test_enabling_checks_validates_stored_versions(even: None) -> None:
    # ENT-115 (T86): stored Versions are checked; new flags alone make a `refreshed` event, not `updated`
    made = notes()
    off = {"groups": {"boxes": {"singular": "box", "resources": {"notes": {"singular": "note"}}}}}
    on = made.world.model.source
    made.model(off)
    made.put(NOTE, {**EVEN, "note": "ab"})
    assert validated(made) == {}
    decision = made.model(on)
    assert event_kinds(decision)[NOTE] == event_kinds(decision)[f"{NOTE}/versions/1"] == "refreshed"
    assert validated(made) == {"formatvalidated": True}


def test_a_model_that_asks_more_than_what_is_stored_names_it_all(even: None) -> None:
    # ENT-115, MOD-93: for each flag; if the same request also writes an invalid Version, the error is about that one
    made = notes()
    on, flags = made.world.model.source, {"validateformat": True, "strictvalidation": True}
    made.model({"groups": {"boxes": {"singular": "box", "resources": {"notes": {"singular": "note"}}}}})
    for id, attributes in (("n1", EVEN), ("n2", EVEN), ("n3", {**EVEN, "format": "Odd/1"})):
        made.put(f"/boxes/b1/notes/{id}", {**attributes, "note": "abc"})
    made.patch("/boxes/b1/notes/n2/meta", {"compatibility": "backward"})
    name, detail = refused_model(made, on)
    assert (name, detail.count("/versions/1: ")) == ("model_compliance_error", 2)
    assert "/boxes/b1/notes/n1/versions/1: " in detail and "/boxes/b1/notes/n2/versions/1: " in detail
    for id in ("n1", "n2"):
        made.put(f"/boxes/b1/notes/{id}", {**EVEN, "note": "ab"})
    strict = {"groups": {"boxes": {"singular": "box", "resources": {"notes": {"singular": "note", **flags}}}}}
    name, detail = refused_model(made, strict)
    assert (name, detail.count("/versions/1: "), "Odd/1" in detail) == ("model_compliance_error", 1, True)
    with pytest.raises(Problem) as problem:
        notes_too = {"notes": {"n1": {**EVEN, "note": "abc"}}}
        made.patch("/", {"modelsource": on, "boxes": {"b1": notes_too}})
    assert problem.value.name == "format_violation"


def refused_model(made: MemoryRegistry, source: Any) -> tuple[str, str]:
    """Returns the name and the detail of the problem with which a model is refused."""
    with pytest.raises(Problem) as problem:
        made.model(source)
    return problem.value.name, str(problem.value.detail)
