"""Generated Avro schemas and data: data reported as readable can be read, and other implementations agree."""

from __future__ import annotations

import io
import warnings
from typing import Any

import fastavro
import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from annals.domain.formats import avro
from annals.domain.formats.contract import InvalidDocument
from tests.domain.formats.avro.avro_documents import PRIMITIVES, Values, evolutions, schemas, text
from tests.domain.formats.independent import Refused, check
from tests.support.examples import examples

_QUIET = settings(
    max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)


def read(document: Any, release: str = "1.11") -> Any:
    """Returns the schema of a document; skips the example if a change has made it invalid."""
    try:
        return avro.parse(text(document).encode(), f"Avro/{release}")
    except InvalidDocument:
        assume(False)


@_QUIET
@given(evolutions(), st.data())
def test_what_is_readable_is_read(pair: tuple[Any, Any], data: st.DataObject) -> None:
    # SC-36: an Avro library reads data of one schema with the other.
    writer, reader = pair
    wanted = read(reader)
    if why := avro.incompatibilities(wanted, read(writer)):
        event(why[0].rule)
        return
    event("readable")
    value = Values(writer).draw(data.draw, writer)
    written = io.BytesIO()
    fastavro.schemaless_writer(written, fastavro.parse_schema(writer), value)
    written.seek(0)
    fastavro.schemaless_reader(written, fastavro.parse_schema(writer), fastavro.parse_schema(reader))


@_QUIET
@given(schemas())
def test_a_schema_reads_its_own_data(document: Any) -> None:
    # SC-32: a schema is compatible with itself and with its canonical form.
    parsed = read(document)
    assert not avro.incompatibilities(parsed, parsed)
    form = avro.canonical_form(parsed)
    assert form.decode() == fastavro.schema.to_parsing_canonical_form(document)
    assert not avro.incompatibilities(parsed, avro.parse(form, "Avro/1.11"))


@_QUIET
@given(evolutions())
def test_apicurio_agrees(pair: tuple[Any, Any]) -> None:
    # SC-39: the checker of another registry agrees on generated schemas. They have no namespaces and no decimals, for
    # which it is known to differ (avro.yaml).
    older, newer = pair
    ours: bool | str
    try:
        reader, writer = (avro.parse(text(one).encode(), "Avro/1.12") for one in (newer, older))
        ours = not avro.incompatibilities(reader, writer)
    except InvalidDocument as violation:
        ours = violation.text
    try:
        theirs = check("avro", "backward", text(older), text(newer)).compatible
    except Refused as refusal:
        assert isinstance(ours, str), (ours, refusal)
        return
    if isinstance(ours, str):
        event("invalid here alone")
        assert _known(ours), ours
        return
    assert ours == theirs


def _known(text: str) -> bool:
    """Returns whether a document is refused for a rule that the other registry does not check (avro.yaml).

    The other registry finds an alias that names another field only if it compares these fields.
    """
    unchecked = ("defined before this place", "default is not a value", "names two types", "names two fields")
    return any(rule in text for rule in unchecked)


def _small() -> list[Any]:
    """Returns each primitive, types of each other kind, and unions of a primitive with each of them."""
    others = [
        {"type": "array", "items": "int"},
        {"type": "array", "items": "long"},
        {"type": "map", "values": "string"},
        {"type": "fixed", "name": "F", "size": 1},
        {"type": "fixed", "name": "F", "size": 2},
        {"type": "enum", "name": "E", "symbols": ["A"]},
        {"type": "enum", "name": "E", "symbols": ["A", "B"]},
        {"type": "enum", "name": "E", "symbols": ["B"], "default": "B"},
        {"type": "record", "name": "R", "fields": []},
        {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]},
        {"type": "record", "name": "R", "fields": [{"name": "a", "type": "long", "default": 1}]},
        {
            "type": "record",
            "name": "S",
            "aliases": ["R"],
            "fields": [{"name": "b", "type": "double", "aliases": ["a"]}],
        },
    ]
    single = [*PRIMITIVES, *others]
    return [*single, *([first, second] for first in PRIMITIVES for second in single if first != second)]


@pytest.mark.long
def test_all_pairs_of_small_schemas() -> None:
    # SC-39: another registry agrees on all promotions and mismatches, inside and outside unions.
    documents = _small()
    parsed = [read(document) for document in documents]
    different = [
        (writer, reader)
        for writer, written in zip(documents, parsed, strict=True)
        for reader, wanted in zip(documents, parsed, strict=True)
        if (not avro.incompatibilities(wanted, written))
        != check("avro", "backward", text(writer), text(reader)).compatible
    ]
    assert different == []


@_QUIET
@given(evolutions())
def test_the_avro_library_agrees(pair: tuple[Any, Any]) -> None:
    # SC-39: the checker in the Python library of Apache Avro agrees.
    compatibility = pytest.importorskip("avro.compatibility", reason="no package avro: pip install 'avro>=1.12'")
    schema = pytest.importorskip("avro.schema")
    older, newer = pair
    ours = not avro.incompatibilities(read(newer), read(older))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reader, writer = schema.parse(text(newer)), schema.parse(text(older))
    result = compatibility.ReaderWriterCompatibilityChecker().get_compatibility(reader, writer)
    assert ours == (result.compatibility is compatibility.SchemaCompatibilityType.compatible)


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_anything_ends_in_a_schema_or_a_violation(document: bytes) -> None:
    # SC-10: parse() raises no other exception.
    _parsed_or_refused(document)


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from(["int", "record", "R", "", "a.b", ["null"]]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "name",
                    "namespace",
                    "fields",
                    "items",
                    "values",
                    "symbols",
                    "size",
                    "default",
                    "aliases",
                    "order",
                ]
            ),
            inner | st.sampled_from(["record", "enum", "fixed", "array", "map", "error"]),
            max_size=6,
        )
    ),
    max_leaves=20,
)


@settings(max_examples=examples(1000), deadline=None)
@given(_JSON)
def test_any_json_ends_in_a_schema_or_a_violation(document: Any) -> None:
    # SC-10: parse() raises no other exception, for any JSON.
    _parsed_or_refused(text(document).encode())


def _parsed_or_refused(document: bytes) -> None:
    try:
        parsed = avro.parse(document, "Avro/1.12")
    except InvalidDocument:
        return
    assert not avro.incompatibilities(parsed, parsed)
