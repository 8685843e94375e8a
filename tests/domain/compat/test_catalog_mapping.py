"""Documents of message definitions and attributes of messages, formats of Groups, and messages without a document.

The tables are catalog_mapping.yaml and catalog_changed.yaml.
"""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from annals.domain.compat.catalog import groups
from annals.domain.compat.catalog.attributes import MappedDefinition, SchemaReference, to_attributes, to_document
from annals.domain.compat.catalog.documents import parse_definition
from annals.domain.values.json_text import dumps
from tests.domain.compat.definitions import text_of


def table(name: str) -> Any:
    return yaml.load(Path(__file__).with_name(name).read_text(), yaml.CSafeLoader)


MAPPED, CHANGED = table("catalog_mapping.yaml"), table("catalog_changed.yaml")


def find(uri: str) -> SchemaReference | None:
    """Finds the only schema of this registry."""
    return SchemaReference("/schemagroups/g/schemas/s", "Avro/1.11.0") if uri == "https://here/s" else None


@pytest.mark.parametrize("row", MAPPED, ids=[row["rule"] for row in MAPPED])
def test_there_and_back(row: dict[str, Any]) -> None:
    # LEG-1203
    document = parse_definition(row["format"], text_of(row["document"])).document
    mapped = to_attributes(row["format"], document, find)
    assert mapped == MappedDefinition({**row["as"], **row["attributes"]}, row["left"])
    assert to_document(row["format"], *mapped) == row.get("back", row["document"])


@pytest.mark.parametrize("row", CHANGED, ids=[row["rule"] for row in CHANGED])
def test_changed(row: dict[str, Any]) -> None:
    # LEG-1203: attributes that an xRegistry client writes win; only data that attributes cannot hold is added to them
    attributes, left = to_attributes(row["format"], parse_definition(row["format"], dumps(row["document"])).document)
    changed = deepcopy(attributes)
    for path, value in row["changed"].items():
        *above, name = path.split(".")
        place = changed
        for each in above:
            place = place[each]
        place[name] = value
        if value is None:
            del place[name]
    before = deepcopy(left)
    assert to_document(row["format"], changed, left) == row["again"]
    assert left == before


@pytest.mark.parametrize(
    ("format", "attributes"),
    [
        ("CloudEvents", {"envelope": "CloudEvents/1.0"}),
        ("AMQP", {"protocol": "AMQP/1.0"}),
        ("NATS", {"protocol": "NATS"}),
        ("MQTT", {}),
        ("amqp", {}),
        ("Custom", {}),
    ],
)
def test_formats_of_groups(format: str, attributes: dict[str, str]) -> None:
    # § 12, LEG-304: a Group returns the format that it was given
    assert groups.to_attributes(format) == attributes
    assert groups.messagegroup_format(attributes, format) == format


@pytest.mark.parametrize(
    ("attributes", "stored", "format"),
    [
        ({"envelope": "CloudEvents/1.0", "protocol": "KAFKA"}, None, "CloudEvents"),
        ({"protocol": "Kafka/2.0"}, None, "KAFKA"),
        ({"protocol": "mqtt/5.0"}, None, "MQTT"),
        ({}, None, "xRegistry"),
        ({"protocol": "AMQP/1.0"}, "MQTT", "AMQP"),
        ({"protocol": "NATS"}, "Custom", "NATS"),
        ({}, "CloudEvents", "xRegistry"),
        ({"protocol": "MQTT/3.1.1"}, "MQTT", "MQTT"),
    ],
)
def test_formats_of_groups_of_the_registry(attributes: dict[str, str], stored: str | None, format: str) -> None:
    # § 12: attributes win; a stored name that attributes cannot express holds until they declare a format
    assert groups.messagegroup_format(attributes, stored) == format


def test_a_format_without_metaschema() -> None:
    # LEG-803: nothing is mapped; the document of a message without one is made of all its attributes
    assert to_attributes("Custom", parse_definition("Custom", b"\0").document) == MappedDefinition({}, {})
    message = {"messageid": "m", "protocol": "KAFKA", "protocoloptions": {"topic": "t"}, "dataschemaformat": "Avro/1.9"}
    attributes = {name: value for name, value in message.items() if name != "messageid"}
    assert to_document("KAFKA", message, {}) == attributes


def test_messages_that_the_registry_wrote() -> None:
    # LEG-1201: a document is made of attributes alone, whether all of them exist or none
    assert to_document("CloudEvents", {"protocol": "KAFKA"}, {}) == {"attributes": {}}
    assert to_document("AMQP", {}, {}) == {}
    assert to_document("NATS", {"datacontenttype": "a/b"}, {}) == {"payload": {"contenttype": "a/b"}}
    declared = {"type": {"value": "a"}, "subject": {"required": False}}
    message = {"envelope": "CloudEvents/1.0", "envelopemetadata": declared, "protocol": "NATS"}
    assert to_document("CloudEvents", message, {}) == {"attributes": {"type": "a", "subject": ""}}
