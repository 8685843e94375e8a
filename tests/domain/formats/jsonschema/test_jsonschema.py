"""JSON Schema: valid documents, and compatible changes between them.

Rules SC-10, SC-14, SC-16, SC-36, CM-14; the rows are in jsonschema.yaml.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from annals.domain.formats import jsonschema
from annals.domain.formats.contract import MAX_FRAGMENT, MAX_INCOMPATIBILITIES, Incompatibility, InvalidDocument
from tests.data import HISTORIES, SCENARIOS, read, with_two_versions

TABLE: dict[str, list[dict[str, Any]]] = yaml.load(
    (Path(__file__).parent / "jsonschema.yaml").read_text(), yaml.CSafeLoader
)


def parsed(document: Any, name: str = "draft-07") -> jsonschema.SchemaGraph:
    return jsonschema.parse(json.dumps(document).encode(), f"jsonschema/{name}")


def unreadable(reader: Any, writer: Any, name: str = "draft-07") -> list[Incompatibility]:
    found = list(jsonschema.incompatibilities(parsed(reader, name), parsed(writer, name)))
    for each in found:
        for spot, document in ((each.reader, reader), (each.writer, writer)):
            assert spot is not None and spot.pointer is not None and spot.fragment
            assert len(spot.fragment) <= MAX_FRAGMENT
            at(document, spot.pointer)
        assert each.rule == each.rule.lower() and each.text.endswith(".")
    assert len(found) <= MAX_INCOMPATIBILITIES
    return found


def at(document: Any, pointer: str) -> Any:
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        document = document[int(name) if isinstance(document, list) else name]
    return document


def rows(section: str) -> list[Any]:
    return [pytest.param(row, id=row["what"]) for row in TABLE[section]]


@pytest.mark.parametrize("row", rows("violations"))
def test_what_is_no_schema(row: dict[str, Any]) -> None:
    # SC-10, SC-14, SC-16: a violation has a reason and a place.
    with pytest.raises(InvalidDocument) as raised:
        jsonschema.parse(row["text"].encode(), f"JsonSchema/{row.get('name', 'draft-07')}")
    spot = raised.value.location
    assert raised.value.text and not raised.value.text.endswith(".")
    if row.get("at") is not None:
        assert spot is not None and spot.pointer == row["at"] and spot.fragment
    if "line" in row:
        assert spot is not None and spot.line == row["line"]


@pytest.mark.parametrize("row", rows("valid"))
def test_what_is_a_schema(row: dict[str, Any]) -> None:
    # SC-10, SC-16, CM-14: a document that is valid for the meta-schema of its release is accepted, with any references.
    found = jsonschema.parse(row["text"].encode(), f"JSONSchema/{row.get('name', 'draft-07')}")
    again = jsonschema.parse(jsonschema.canonical_form(found), f"jsonschema/{row.get('name', 'draft-07')}")
    assert jsonschema.canonical_form(again) == jsonschema.canonical_form(found)
    assert not jsonschema.incompatibilities(found, again)


@pytest.mark.parametrize("name", ["draft-2019-09", "draft/2019-09", "DRAFT/2020-12", "draft-2020-12", "draft-06"])
def test_names_of_releases(name: str) -> None:
    # CM-14: the value of `format` is the same in any letter case, and releases by date have two spellings.
    assert jsonschema.parse(b"{}", f"JSONSCHEMA/{name}")


@pytest.mark.parametrize("row", rows("declared"))
def test_a_name_without_a_release_stands_for_the_declared_one(row: dict[str, Any]) -> None:
    # CSR-418
    is_valid = True
    try:
        jsonschema.parse(row["text"].encode(), "JSONSchema")
    except InvalidDocument:
        is_valid = False
    assert is_valid is row["valid"]


def test_documents_of_different_releases_are_compared() -> None:
    # CSR-418, SC-36
    drafts = ("http://json-schema.org/draft-04/schema#", "https://json-schema.org/draft/2020-12/schema")
    older, newer = (
        json.dumps({"$schema": draft, "type": "object", "properties": {"a": {"type": type}}}).encode()
        for draft, type in zip(drafts, ("integer", "number"), strict=True)
    )
    before, after = (jsonschema.parse(document, "jsonschema") for document in (older, newer))
    assert not jsonschema.incompatibilities(after, before)
    assert jsonschema.incompatibilities(before, after)


@pytest.mark.parametrize("row", rows("changes"))
def test_changes(row: dict[str, Any]) -> None:
    # SC-36: each row of the table in both directions; SC-38: both directions together are `full`.
    newer, older, name = row["newer"], row["older"], row.get("name", "draft-07")
    backward, forward = unreadable(newer, older, name), unreadable(older, newer, name)
    assert ("B" * (not backward) + "F" * (not forward)) == row["allowed"], [*backward, *forward]
    assert row.get("rule") in {None, *(each.rule for each in (*backward, *forward))}


@pytest.mark.parametrize("row", rows("keywords"))
def test_keywords(row: dict[str, Any]) -> None:
    # SC-36, wider and narrower: every keyword, alone and below a member, an item, a reference and an alternative.
    name = row.get("name", "draft-07")
    assert not unreadable(row["wide"], row["narrow"], name)
    if row.get("one_way") or row.get("only"):
        return
    assert unreadable(row["narrow"], row["wide"], name)
    for wrap in (_member, _item, _alternative):
        assert not unreadable(wrap(row["wide"]), wrap(row["narrow"]), name)
        assert unreadable(wrap(row["narrow"]), wrap(row["wide"]), name)


def _lifted(schema: Any, wrapped: Any) -> Any:
    """Wraps a schema, but leaves its definitions at the top, where references point to."""
    if not isinstance(schema, dict):
        return wrapped(schema)
    definitions = {name: schema[name] for name in ("definitions", "$defs") if name in schema}
    return {**wrapped({name: value for name, value in schema.items() if name not in definitions}), **definitions}


def _member(schema: Any) -> Any:
    return _lifted(schema, lambda below: {"type": "object", "properties": {"m": below}})


def _item(schema: Any) -> Any:
    return _lifted(schema, lambda below: {"type": "array", "items": below})


def _alternative(schema: Any) -> Any:
    return _lifted(schema, lambda below: {"type": "object", "properties": {"m": {"anyOf": [below, {"enum": ["ab"]}]}}})


@pytest.mark.parametrize("row", rows("undecided"))
def test_what_cannot_be_decided(row: dict[str, Any]) -> None:
    # SC-36, narrowing: if it is not certain that a reader accepts all values, the change is incompatible.
    assert row["rule"] in {each.rule for each in unreadable(row["reader"], row["writer"])}
    assert not unreadable(row["reader"], row["reader"])


def test_an_incompatibility_explains_itself() -> None:
    # SC-30: the rule, and place and fragment in both documents.
    (found,) = unreadable(
        {"properties": {"a": {"items": {"type": "integer"}}}}, {"properties": {"a": {"items": {"type": "number"}}}}
    )
    assert found.rule == "reader-type"
    assert found.reader is not None and found.writer is not None
    assert (found.reader.pointer, found.reader.fragment) == ("/properties/a/items/type", '"integer"')
    assert (found.writer.pointer, found.writer.fragment) == ("/properties/a/items/type", '"number"')


def test_the_normal_form() -> None:
    # Order, white space, comments and spellings of numbers are normalised; members of data (enum, default) stay.
    one = b'{ "required": ["b", "a"], "maximum": 1.0, "$comment": "c", "type": ["string"], "enum": [{"$comment": 1}] }'
    other = b'{"enum":[{"$comment":1.0}],"maximum":1e0,"required":["a","b"],"type":"string"}'
    forms = [jsonschema.canonical_form(jsonschema.parse(each, "jsonschema/draft-07")) for each in (one, other)]
    assert forms[0] == forms[1] == b'{"enum":[{"$comment":1}],"maximum":1,"required":["a","b"],"type":"string"}'
    member = parsed({"properties": {"$comment": {"type": "string"}, "required": {"default": ["b", "a"]}}})
    assert json.loads(jsonschema.canonical_form(member)) == member.document


def nested(depth: int, opening: str, closing: str, inside: str = "{}") -> bytes:
    return (opening * depth + inside + closing * depth).encode()


HOSTILE = {
    "nesting of arrays": nested(200_000, "[", "]"),
    "nesting of schemas": nested(100_000, '{"not":', "}"),
    "nesting within bounds": nested(230, '{"not":', "}"),
    "nesting of members": nested(110, '{"properties":{"a":', "}}"),
    "a number of many digits": b'{"maximum": ' + b"9" * 200_000 + b"}",
    "a number of a large exponent": b'{"multipleOf": 1e999999999, "minLength": 1e999999, "enum": [1e-999999999]}',
    "bytes that are no UTF-8": b'{"title": "\xff"}',
    "NUL": b'{"title": "\x00"}',
    "half of a surrogate pair": b'{"title": "\\ud800"}',
    "a byte order mark": b"\xef\xbb\xbf{}",
    "UTF-16": '{"type": "string"}'.encode("utf-16"),
    "an expression that explodes": b'{"pattern": "((((a{1,999}){1,999}){1,999}){1,999})*$", "enum": ["aaa"]}',
    "an expression that backtracks": b'{"pattern": "^(?=(a+)+$)", "enum": ["' + b"a" * 5000 + b'b"]}',
    "an expression of brackets": json.dumps({"pattern": "(" * 20_000 + ")" * 20_000}).encode(),
    "references that double": json.dumps(
        {
            "definitions": {
                f"d{i}": {"anyOf": [{"$ref": f"#/definitions/d{i + 1}"}, {"$ref": f"#/definitions/d{i + 1}"}]}
                for i in range(60)
            }
            | {"d60": {"type": "string"}},
            "items": {"$ref": "#/definitions/d0"},
        }
    ).encode(),
    "a chain of references": json.dumps(
        {
            "definitions": {f"d{i}": {"$ref": f"#/definitions/d{i + 1}"} for i in range(3000)} | {"d3000": {}},
            "$id": "http://e.example/",
        }
    ).encode(),
    "a reference to a private address": b'{"$ref": "http://169.254.169.254/latest/meta-data"}',
    "a reference that is no URI": b'{"items": {"$ref": "http://[::1"}}',
    "an identifier that is no URI": b'{"$id": "http://[", "items": {"$ref": "#/a"}, "a": {}}',
    "alternatives of alternatives": json.dumps(
        {"allOf": [{"oneOf": [{"required": [f"{i}{j}"]} for j in range(8)]} for i in range(12)]}
    ).encode(),
    "an object of many members": json.dumps(
        {"properties": {f"m{i}": {"type": "string"} for i in range(3000)}}
    ).encode(),
}

#: Replacements that make another document of each valid one above.
CHANGES = {
    b"{}": b'{"type": "null"}',
    b'"string"': b'"null"',
    b'"required": ["': b'"required": ["x',
    b'"pattern": "': b'"pattern": "b',
    b": 9": b": 8",
    b": 1e": b": 3e",
    b'"$ref": "http:': b'"$ref": "ftp:',
}


@pytest.mark.parametrize("document", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("name", ["draft-04", "draft-07", "draft/2020-12"])
def test_hostile_documents(document: bytes, name: str) -> None:
    # SC-10: each document soon gives a violation, or a schema that can be compared.
    start = time.process_time()
    try:
        found = jsonschema.parse(document, f"jsonschema/{name}")
    except InvalidDocument as violation:
        assert len(violation.text) < 1000
    else:
        jsonschema.canonical_form(found)
        jsonschema.incompatibilities(found, parsed({"type": "object"}))
        jsonschema.incompatibilities(parsed({"oneOf": [{"type": "string"}, {"required": ["a"]}]}), found)
        changed = document
        for before, after in CHANGES.items():
            changed = changed.replace(before, after)
        assert changed != document
        other = jsonschema.parse(changed, f"jsonschema/{name}")
        jsonschema.incompatibilities(found, other)
        jsonschema.incompatibilities(other, found)
    assert time.process_time() - start < 10


def test_nothing_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    # SC-12: no document makes the registry fetch anything.
    import socket

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a connection was tried")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    found = parsed({"$ref": "http://127.0.0.1:9/a", "$schema": "http://127.0.0.1:9/b"})
    assert not jsonschema.incompatibilities(found, found)


def test_many_comparisons_take_a_moment() -> None:
    # V-14: comparing one new document of 2 kB with 1,000 older ones takes about a second; here there are 100.
    members = {f"member{i}": {"type": "string", "maxLength": i + 1, "description": "x" * 10} for i in range(25)}
    new = parsed({"type": "object", "properties": members, "required": ["member1"]})
    older = [
        parsed({"type": "object", "properties": members | {"n": {"type": "integer", "minimum": i}}}) for i in range(100)
    ]
    start = time.process_time()
    for old in older:
        assert jsonschema.incompatibilities(new, old) and not jsonschema.incompatibilities(old, new)
    assert time.process_time() - start < 10


@pytest.mark.parametrize("history", HISTORIES)
def test_a_history_of_a_sample(history: str) -> None:
    # SA-08, SC-30: the second Version of the sample adds a required member, so only the first one reads data of both.
    _, versions = with_two_versions(read(SCENARIOS[history]))
    older, newer = (jsonschema.parse(json.dumps(each["schema"]).encode(), each["format"]) for each in versions)
    assert not jsonschema.incompatibilities(older, newer)
    assert {each.rule for each in jsonschema.incompatibilities(newer, older)} == {"reader-required"}
