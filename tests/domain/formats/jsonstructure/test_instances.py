"""JSON Structure, tested with values, by the validator of the JSON Structure project.

SC-37, SC-39: if a change is called compatible, values that are valid for the writer are valid for the reader.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from json_structure import InstanceValidator

from annals.domain.formats import jsonstructure

TABLE: dict[str, list[dict[str, Any]]] = yaml.load(
    (Path(__file__).parent / "jsonstructure.yaml").read_text(), yaml.CSafeLoader
)
TOP = {"$schema": "https://json-structure.org/meta/core/v0/#", "$id": "https://schemas.example/a", "name": "A"}
TYPES = (
    *("string", "number", "integer", "boolean", "null", "int8", "uint8", "int16", "uint16", "int32", "uint32"),
    *("int64", "uint64", "int128", "uint128", "float", "double", "decimal", "date", "datetime", "time"),
    *("duration", "uuid", "uri", "binary", "jsonpointer"),
)
PLAIN = [
    *(0, 1, -1, 127, 128, -128, -129, 255, 256, 32767, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 1.5, -0.25),
    *(None, True, "", "a", "ab", "abcdef", "x", "y", "0", "-5", "300", str(2**63), str(2**64), str(-(2**127)), "1.25"),
    *("2024-02-29", "2024-02-29T10:00:00Z", "10:00:00", "P1D", "12345678-1234-1234-1234-123456789abc"),
    *("https://e.example/a", "aGVsbG8=", "#/a/b"),
]
#: Values with members that the rows declare, each with one type.
VALUES = [
    *PLAIN,
    *([], ["a"], ["a", "a"], ["a", "b"], [1]),
    *({}, {"a": "s"}, {"b": 1}, {"a": "s", "b": 1}, {"b": "s"}, {"a": None}, {"a": ["s"]}, {"a": 1000}, {"c": 100}),
    *({"x": "s"}, {"y": 1}, {"c": 100, "x": "s"}, {"k": "X", "x": "s", "c": "s"}, {"k": "Y", "y": "s", "c": "s"}),
]


#: The library does not support alternatives of required properties.
ROWS = [
    pytest.param(row, id=row["what"])
    for row in TABLE["changes"]
    if not isinstance(row["older"].get("required", [""])[0], list)
]


def parsed(document: dict[str, Any]) -> jsonstructure.SchemaGraph:
    return jsonstructure.parse(json.dumps(TOP | document).encode(), "jsonstructure/draft-04")


def valid(document: dict[str, Any], value: Any) -> bool:
    return not InstanceValidator(TOP | document, extended=True).validate_instance(value)


@cache
def named(name: str) -> jsonstructure.SchemaGraph:
    return parsed({"type": name})


@cache
def accepted_values(name: str) -> list[Any]:
    """Returns the values that the library accepts for a type."""
    return [value for value in PLAIN if valid({"type": name}, value)]


@pytest.mark.parametrize("writer", TYPES)
def test_types(writer: str) -> None:
    # SC-37: each type accepts all values of the types that it is said to read.
    emitted = accepted_values(writer)
    assert emitted
    for reader in TYPES:
        if not jsonstructure.incompatibilities(named(reader), named(writer)):
            unread = [value for value in emitted if value not in accepted_values(reader)]
            assert not unread, (reader, unread)


@pytest.mark.parametrize("row", ROWS)
def test_changes(row: dict[str, Any]) -> None:
    # SC-37: the verdict of each row holds for values; they have only members that the writer declares.
    for letter, reader, writer in (("B", row["newer"], row["older"]), ("F", row["older"], row["newer"])):
        if letter in row["allowed"]:
            emitted = [value for value in VALUES if declared(writer, value) and valid(writer, value)]
            assert emitted
            assert not [value for value in emitted if not valid(reader, value)]


def declared(document: dict[str, Any], value: Any) -> bool:
    if not isinstance(value, dict) or document.get("type") != "object":
        return True
    members: dict[str, Any] = document["properties"]
    return value.keys() <= members.keys()
