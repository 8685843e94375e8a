"""JSON Structure: valid documents, and compatible changes between them.

Rules SC-10, SC-14, SC-16, SC-37, CM-14; the rows are in jsonstructure.yaml.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from annals.domain.formats import jsonstructure
from annals.domain.formats.contract import InvalidDocument

TABLE: dict[str, list[dict[str, Any]]] = yaml.load(
    (Path(__file__).parent / "jsonstructure.yaml").read_text(), yaml.CSafeLoader
)
TOP = {"$schema": "https://json-structure.org/meta/core/v0/#", "$id": "https://schemas.example/a", "name": "A"}


def parsed(document: dict[str, Any], name: str = "draft-04") -> jsonstructure.SchemaGraph:
    return jsonstructure.parse(json.dumps(TOP | document).encode(), f"JsonStructure/{name}")


def rows(section: str) -> list[Any]:
    return [pytest.param(row, id=row["what"]) for row in TABLE[section]]


@pytest.mark.parametrize("row", rows("violations"))
def test_what_is_no_schema(row: dict[str, Any]) -> None:
    # SC-10, SC-14, SC-16: a violation has a reason and a place.
    text = row.get("text", json.dumps(TOP | row.get("document", {})))
    with pytest.raises(InvalidDocument) as raised:
        jsonstructure.parse(text.encode(), f"jsonstructure/{row.get('name', 'draft-04')}")
    assert raised.value.text and not raised.value.text.endswith(".")
    spot = raised.value.location
    if "at" in row:
        assert spot is not None and spot.pointer is not None and spot.pointer.startswith(row["at"])
    if "line" in row:
        assert spot is not None and spot.line == row["line"]


@pytest.mark.parametrize("row", rows("valid"))
def test_what_is_a_schema(row: dict[str, Any]) -> None:
    # SC-10, SC-16, CM-14: documents of JSON Structure Core, for any draft, in any letter case of the format.
    name = row.get("name", "draft-04")
    found = parsed(row["document"], name)
    again = jsonstructure.parse(jsonstructure.canonical_form(found), f"JSONSTRUCTURE/{name}")
    assert jsonstructure.canonical_form(again) == jsonstructure.canonical_form(found)
    assert not jsonstructure.incompatibilities(found, again)


@pytest.mark.parametrize("row", rows("changes"))
def test_changes(row: dict[str, Any]) -> None:
    # SC-37: the column of JSON Schema, in both directions, at the top and below a property.
    for wrap in (lambda document: document, _property):
        older, newer = parsed(wrap(row["older"])), parsed(wrap(row["newer"]))
        backward, forward = jsonstructure.incompatibilities(newer, older), jsonstructure.incompatibilities(older, newer)
        reasons = [*backward, *forward]
        assert ("B" * (not backward) + "F" * (not forward)) == row["allowed"], reasons
        assert row.get("rule") in {None, *(each.rule for each in reasons)}, reasons
        assert all(
            spot and spot.pointer is not None and spot.fragment for e in reasons for spot in (e.reader, e.writer)
        )


@pytest.mark.parametrize("row", TABLE["restrictions"], ids=lambda row: list(row)[-1])
def test_restrictions(row: dict[str, Any]) -> None:
    # SC-37: each keyword counts, even if it is the only one.
    *_, keyword = row
    narrow, wide = parsed(row), parsed({name: value for name, value in row.items() if name != keyword})
    assert not jsonstructure.incompatibilities(wide, narrow)
    assert jsonstructure.incompatibilities(narrow, wide)


def _property(document: dict[str, Any]) -> dict[str, Any]:
    if "$root" in document:
        return document
    inside = {"name": "B"} | {name: value for name, value in document.items() if name != "definitions"}
    below = {"type": "object", "properties": {"p": inside}}
    return below | ({"definitions": document["definitions"]} if "definitions" in document else {})


def test_order_and_white_space_go() -> None:
    # The normal form has the same bytes for each spelling of a document; tuples and unions keep their order.
    one = b'{"$id": "u:a", "name": "A", "$schema": "%s", "type": "object", "required": ["b", "a"], "properties":' % (
        TOP["$schema"].encode()
    )
    other = b' {"a": {"type": ["string", "null"]}, "b": {"type": "int8"}} }'
    found = jsonstructure.parse(one + other, "jsonstructure/draft-04")
    turned = {**found.document, "required": ["a", "b"]}
    again = jsonstructure.parse(json.dumps(dict(reversed(turned.items()))).encode(), "jsonstructure/draft-04")
    assert jsonstructure.canonical_form(found) == jsonstructure.canonical_form(again)
    assert b'["string","null"]' in jsonstructure.canonical_form(found)


def _chain(length: int) -> dict[str, Any]:
    definitions = {
        f"T{i}": {"name": f"T{i}", "type": "object", "properties": {"n": {"type": {"$ref": f"#/definitions/T{i + 1}"}}}}
        for i in range(length)
    }
    return {"$root": "#/definitions/T0", "definitions": definitions | {f"T{length}": {"name": "T", "type": "string"}}}


def _deep(depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        found = {"type": "array", "items": found}
    return found


HOSTILE: dict[str, bytes] = {
    "nesting": b'{"items":' * 100_000 + b"1" + b"}" * 100_000,
    "nesting within bounds": json.dumps(TOP | _deep(100)).encode(),
    "many digits": json.dumps(TOP | {"type": "int32"}).encode()[:-1] + b', "minimum": ' + b"9" * 10_000 + b"}",
    "no UTF-8": b"\xff",
    "a chain of references": json.dumps(TOP | _chain(300)).encode(),
    "a type that extends itself": json.dumps(
        TOP
        | {
            "type": "object",
            "properties": {"a": {"type": "string"}},
            "$extends": "#/definitions/A",
            "definitions": {
                "A": {"name": "A", "abstract": True, "type": "object", "$extends": "#/definitions/A", "properties": {}}
            },
        }
    ).encode(),
    "values of other types": json.dumps(
        TOP | {"type": "object", "properties": [], "required": 3, "definitions": 1}
    ).encode(),
    "types that are none": json.dumps(TOP | {"type": [{"type": {"type": []}}, 1, None]}).encode(),
    "an import": json.dumps(TOP | {"type": "string", "$import": "file:///etc/passwd"}).encode(),
    "an expression": json.dumps(TOP | {"type": "string", "pattern": "(" * 1000}).encode(),
}


@pytest.mark.parametrize("document", HOSTILE.values(), ids=HOSTILE)
def test_hostile_documents(document: bytes) -> None:
    # SC-10: each document soon gives a violation, or a schema that can be compared.
    start = time.process_time()
    try:
        found = jsonstructure.parse(document, "jsonstructure/draft-04")
    except InvalidDocument as violation:
        assert len(violation.text) < 1000
    else:
        jsonstructure.canonical_form(found)
        jsonstructure.incompatibilities(found, parsed({"type": "string"}))
        jsonstructure.incompatibilities(found, jsonstructure.parse(document, "jsonstructure/draft-04"))
    assert time.process_time() - start < 10
