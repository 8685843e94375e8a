"""Every valid document of a message definition is mapped without loss to attributes that the registry accepts."""

from __future__ import annotations

from datetime import timedelta
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annals.domain.compat.catalog.attributes import SchemaReference, to_attributes, to_document
from annals.domain.compat.catalog.documents import MalformedDefinition, parse_definition
from annals.domain.decisions.commands import WriteMethod, WriteTree
from annals.domain.decisions.decide import decide
from annals.domain.decisions.world import Context
from annals.domain.model.builtin import default_source
from annals.domain.values.json_text import dumps, loads
from tests.data import DEFINITIONS
from tests.domain.compat.definitions import DOCUMENTS, GARBLED, HERE, normal_form, text_of
from tests.support.examples import examples
from tests.support.registries.memory import START, MemoryRegistry

MESSAGE = "/messagegroups/g/messages/m"
SOME = settings(max_examples=examples(80), deadline=None, suppress_health_check=list(HealthCheck))
FORMATS = pytest.mark.parametrize("format", DOCUMENTS)


def find(uri: str) -> SchemaReference | None:
    """Finds the only schema of this registry, to which one of the generated URIs refers."""
    return SchemaReference("/schemagroups/g/schemas/s", "Avro/1.11.0") if uri == HERE else None


def stored(attributes: dict[str, Any]) -> dict[str, Any]:
    """Returns the attributes that the registry stores for a message, under strict validation."""
    strict = Context(START + timedelta(days=1), "strict", domainvalidation="strict")
    decision = decide(WriteTree(MESSAGE, loads(dumps(attributes)), WriteMethod.PUT), empty().world, strict)
    (version,) = (event for event in decision.events if event.xid == f"{MESSAGE}/versions/1")
    return version.attributes


@cache
def empty() -> MemoryRegistry:
    """Returns an empty registry with the built-in models."""
    return MemoryRegistry(default_source())


@FORMATS
@SOME
@given(data=st.data())
def test_nothing_is_lost(format: str, data: st.DataObject) -> None:
    # LEG-1203: a document that is generated from the attributes and the rest has the meaning of the original one
    text = text_of(data.draw(DOCUMENTS[format]))
    document = parse_definition(format, text).document
    assert document is not None
    attributes, left = to_attributes(format, document, find)
    assert normal_form(format, to_document(format, attributes, left)) == normal_form(format, loads(text))
    copied = loads(dumps(left))
    again = to_document(format, stored(attributes), copied)
    assert normal_form(format, again) == normal_form(format, loads(text))
    assert dumps(copied) == dumps(left)


@FORMATS
@SOME
@given(data=st.data())
def test_what_is_made_again_is_valid(format: str, data: st.DataObject) -> None:
    # LEG-802, LEG-1203: a generated document can be published, and maps to the same attributes
    document = parse_definition(format, text_of(data.draw(DOCUMENTS[format]))).document
    mapped = to_attributes(format, document, find)
    again = parse_definition(format, dumps(to_document(format, *mapped))).document
    assert to_attributes(format, again, find).attributes == mapped.attributes


@FORMATS
@SOME
@given(document=GARBLED)
def test_refusals_have_a_position(format: str, document: dict[str, Any]) -> None:
    # LEG-802, LEG-803: any section is either accepted or refused with its place in the document
    try:
        found = parse_definition(format, text_of(document)).document
    except MalformedDefinition as error:
        names = error.pointer.split("/")
        assert names == [""] or names[1] in (*document, "attributes")
    else:
        assert to_document(format, *to_attributes(format, found)) is not None


@pytest.mark.parametrize("format", DEFINITIONS)
def test_samples(format: str) -> None:
    # LEG-1203: realistic documents are mapped without loss, and all but a few members become attributes
    document = parse_definition(format, DEFINITIONS[format].read_bytes()).document
    assert document is not None
    attributes, left = to_attributes(format, document)
    assert normal_form(format, to_document(format, stored(attributes), left)) == normal_form(format, document)
    assert left == LEFT[format]


LEFT: dict[str, Any] = {
    "CloudEvents": {},
    "AMQP": {
        "applicationproperties": {"customerName": "{name}"},
        "applicationdata": {"dataschema": "urn:example:parcels:pickup", "amqpencoding": "Data"},
    },
    "MQTT": {
        "publish": {"contenttype": "application/json; charset=utf-8"},
        "userproperty": {"path": "/beds{/bed*}"},
        "payload": {"dataschema": "/schemagroups/Glasshouse/schemas/Moisture/versions/3"},
    },
    "NATS": {
        "message": {"queue": "stations"},
        "payload": {"dataschema": "https://registry.example.org/schemagroups/Tides/schemas/Level/versions/2"},
        "jetstream": {"stream": "TIDE", "maxage": 86400},
    },
}
