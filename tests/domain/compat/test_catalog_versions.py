"""The format of a Version of a message definition (LEG-522, LEG-1203, § 12)."""

from __future__ import annotations

from typing import Any

import pytest

from annals.domain.compat.catalog import version_formats

CE = {"envelope": "CloudEvents/1.0"}
MQTT = {"protocol": "MQTT/3.1.1"}
BOTH = {**CE, "protocol": "amqp/1.0"}
SENT = {"document": "hash"}


@pytest.mark.parametrize(
    ("attributes", "facade", "of_group", "expected"),
    [
        ({}, {}, "AMQP", "AMQP"),
        ({}, SENT, "xRegistry", "xRegistry"),
        (CE, SENT, "AMQP", "CloudEvents"),
        (CE, {}, "AMQP", "CloudEvents"),
        (CE, SENT, "xRegistry", "CloudEvents"),
        (CE, {}, "xRegistry", "xRegistry"),
        (CE, SENT, "KAFKA", "CloudEvents"),
        (CE, {}, "own", "own"),
        (MQTT, SENT, "NATS", "MQTT"),
        (BOTH, SENT, "AMQP", "AMQP"),
        (BOTH, SENT, "CloudEvents", "CloudEvents"),
        (BOTH, SENT, "NATS", "CloudEvents"),
        (BOTH, {**SENT, "format": "AMQP"}, "CloudEvents", "AMQP"),
        ({}, {**SENT, "format": "own"}, "CloudEvents", "own"),
        (CE, {**SENT, "format": "own"}, "CloudEvents", "own"),
        (MQTT, {"format": "CloudEvents"}, "MQTT", "MQTT"),
    ],
)
def test_the_format_of_a_version(
    attributes: dict[str, Any], facade: dict[str, Any], of_group: str, expected: str
) -> None:
    # the recorded format, unless attributes declare another; else the Group's, if the attributes declare it or none;
    # else the first one that the attributes declare
    assert version_formats.version_format(attributes, facade, of_group) == expected


@pytest.mark.parametrize(
    ("format", "attributes", "recorded"),
    [
        ("CloudEvents", CE, None),
        ("MQTT", MQTT, None),
        ("AMQP", BOTH, None),
        ("own", {}, "own"),
        ("amqp", {}, "amqp"),
        (None, {}, None),
    ],
)
def test_what_is_recorded_of_a_format(format: str | None, attributes: dict[str, Any], recorded: str | None) -> None:
    assert version_formats.recorded_format(format, attributes) == recorded


def test_a_format_stays_when_its_document_goes() -> None:
    # LEG-1203: the rest of the document has this format
    facade = {"document": "hash", "contenttype": "a/b", "left": {"header": {"ttl": ""}}}
    left = {"left": facade["left"]}
    assert version_formats.without_document(MQTT, facade, "MQTT", "MQTT") == left
    assert version_formats.without_document(MQTT, facade, "MQTT", "NATS") == left
    assert version_formats.without_document(MQTT, facade, "MQTT", "xRegistry") == {**left, "format": "MQTT"}
