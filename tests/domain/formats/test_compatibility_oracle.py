"""Data of pairs that are called readable can be read: generated schemas, and data checked by independent libraries.

SC-36, SC-39. `python -m bench.oracle` runs the same check for any number of pairs and any seed.
"""

from __future__ import annotations

from typing import Any

import pytest

from bench.oracle import avro, jsonschema, xsd
from bench.oracle.jsonschema_declared import Declared
from bench.oracle.run import Family, run

PAIRS = 500
FAMILIES: dict[str, Family] = {"JsonSchema": jsonschema.family, "Avro": avro.family, "XSD": xsd.family}
#: The minimum percentage of pairs called readable; with fewer, a run would show little.
SHARES = {"JsonSchema": 45, "Avro": 30, "XSD": 18}


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", FAMILIES)
def test_what_is_readable_is_read(name: str) -> None:
    # SC-36: the newer schema refuses no data that the older one accepts and that has declared members only.
    report = run(FAMILIES[name], PAIRS, start=7)
    assert report.pairs == PAIRS
    assert report.closed == []
    assert 100 * report.share >= SHARES[name] and report.data > PAIRS and report.silent < PAIRS / 5


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("name", "members"), [("JsonSchema", jsonschema), ("Avro", avro), ("XSD", xsd)])
def test_an_oracle_finds_what_is_wrong(name: str, members: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # SC-39: if all pairs are called readable, the oracle finds data that cannot be read.
    monkeypatch.setattr(members.Schema, "unreadable", lambda *_: False)
    assert len(run(FAMILIES[name], 60, start=7).closed) > 5


OPTIONAL = {"type": "object", "properties": {"a": {"type": "integer"}}}
CHOICE: dict[str, Any] = {"anyOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]}
DECLARED = [
    pytest.param(OPTIONAL, {"a": 1}, True, id="a member by its name"),
    pytest.param(OPTIONAL, {"b": 1}, False, id="a member by another name"),
    pytest.param({"type": "array", "items": OPTIONAL}, [{"a": 1}, {"b": 1}], False, id="at every depth"),
    pytest.param({"type": "object"}, {"b": {"c": 1}}, True, id="a schema without members is open"),
    pytest.param({"additionalProperties": False}, {}, True, id="a schema of empty objects"),
    pytest.param({"patternProperties": {"^a": {}}}, {"ab": 1}, True, id="a member by a pattern"),
    pytest.param({"patternProperties": {"^a": {}}}, {"b": 1}, False, id="a member by no pattern"),
    pytest.param(
        OPTIONAL | {"additionalProperties": {"type": "null"}}, {"b": None}, True, id="content that says something"
    ),
    pytest.param(OPTIONAL | {"additionalProperties": True}, {"b": None}, False, id="content that says nothing"),
    pytest.param(OPTIONAL | {"required": ["b"]}, {"b": 1}, True, id="what is required is declared"),
    pytest.param(CHOICE, {"a": 1}, True, id="members of one alternative"),
    pytest.param(CHOICE, {"a": 1, "b": 1}, False, id="members of two alternatives"),
    pytest.param({"enum": [{"b": {"c": 1}}]}, {"b": {"c": 1}}, True, id="a value that is listed"),
]


@pytest.mark.parametrize(("schema", "value", "declared"), DECLARED)
def test_declared_members(schema: Any, value: Any, declared: bool) -> None:
    # SC-36: producers emit declared members only.
    assert Declared(schema).holds(value) == declared
