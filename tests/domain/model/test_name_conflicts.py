"""A model that takes the name of a stored extension is refused, because the stored value would be lost (ENT-18)."""

from __future__ import annotations

from typing import Any

import pytest

from annals.domain.decisions.commands import WriteMethod, WriteTree
from annals.domain.errors.problems import InvalidAttribute, ModelComplianceError
from tests.support.registries.memory import MemoryRegistry

FILE = "/dirs/d/files/f"
V1 = f"{FILE}/versions/v1"
ANY = {"*": {"type": "any"}}


def model(documents: bool = False, notes: bool = False, boxes: bool = False) -> dict[str, Any]:
    """Returns a model with extensions at each level; `documents` is for files, `notes` and `boxes` add types."""
    resources: dict[str, Any] = {"files": {"singular": "file", "hasdocument": documents, "attributes": ANY}}
    if notes:
        resources["notes"] = {"singular": "note"}
    groups = {"dirs": {"singular": "dir", "attributes": ANY, "resources": resources}}
    return {"attributes": ANY, "groups": groups | ({"boxes": {"singular": "box"}} if boxes else {})}


@pytest.mark.parametrize(
    ("xid", "name", "value", "change"),
    [
        (V1, "file", "precious", {"documents": True}),
        (V1, "file", {"deep": [1]}, {"documents": True}),
        (V1, "filebase64", "AAAA", {"documents": True}),
        (V1, "fileurl", "http://here.example", {"documents": True}),
        ("/dirs/d", "notes", {"mine": 1}, {"notes": True}),
        ("/dirs/d", "notesurl", "u", {"notes": True}),
        ("/dirs/d", "notescount", 7, {"notes": True}),
        ("/", "boxes", "mine", {"boxes": True}),
    ],
)
def test_no_model_takes_the_name_of_a_stored_extension(
    xid: str, name: str, value: Any, change: dict[str, bool]
) -> None:
    # ENT-18, MOD-93: the error names the extension, also if the same request patches the entity; without it, accepted
    made = MemoryRegistry(model())
    made.put(V1, {})
    made.patch(xid, {name: value})
    before = len(made.log)
    with pytest.raises(ModelComplianceError) as problem:
        made.model(model(**change))
    assert f'The attribute "{name}" for "{xid}" is not valid' in str(problem.value.detail)
    patch: dict[str, Any] = {"dirs": {"d": {"name": "n", "files": {"f": {"versions": {"v1": {"name": "n"}}}}}}}
    with pytest.raises(InvalidAttribute) as invalid:
        made.do(WriteTree("/", {**patch, "name": "n", "modelsource": model(**change)}, WriteMethod.PATCH))
    assert (invalid.value.subject, invalid.value.arguments["name"]) == (xid, name)
    assert len(made.log) == before
    made.patch(xid, {name: None})
    made.model(model(**change))


def test_a_replacement_in_the_same_request_clears_the_way() -> None:
    # ENT-20, MOD-94: the replaced entity no longer has the extension
    made = MemoryRegistry(model())
    made.put(V1, {"file": "mine"})
    files = {"f": {"versions": {"v1": {"name": "n"}}}}
    made.put("/", {"modelsource": model(documents=True), "dirs": {"d": {"files": files}}})
    assert "file" not in made.get(V1).attributes


def test_what_keeps_its_name_stays() -> None:
    # ENT-18: an extension whose name the new model does not define is no conflict
    made = MemoryRegistry(model())
    made.put(V1, {"other": "mine", "filed": "x"})
    made.model(model(documents=True, notes=True, boxes=True))
    assert made.get(V1).attributes["other"] == "mine"
