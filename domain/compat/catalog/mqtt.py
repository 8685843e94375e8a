"""Definitions of MQTT messages of both versions, by the fields of a PUBLISH packet.

Spec: MQTT 5.0, section 3.3; MQTT 3.1.1, section 3.3. Rules § 8.3, § 12.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from annals.domain.compat import uris
from annals.domain.compat.catalog import metaschema
from annals.domain.compat.catalog.metaschema import MalformedDefinition, Section, Sections, one_of, parsable_by
from annals.domain.compat.catalog.value_mapping import (
    add_leftover,
    as_scalar,
    as_template,
    as_text,
    has_plain_placeholders,
    section_leftovers,
)
from annals.domain.messaging.findings import names
from annals.domain.messaging.findings.topics import is_topic
from annals.domain.messaging.findings.unchecked_values import as_mapping, as_sequence
from annals.domain.model.validation.values import fits_in_header
from annals.domain.values.json_text import Json

DATASCHEMA: Final = ("payload", "dataschema")

#: Members of a PUBLISH packet, with the registry's names for them.
_PUBLISH: Final = {
    "qos": "qos",
    "retain": "retain",
    "topicname": "topic_name",
    "payloadformat": "payload_format_indicator",
    "expiryinterval": "message_expiry_interval",
    "responsetopic": "response_topic",
    "correlationdata": "correlation_data",
    "contenttype": "content_type",
}
_SCALAR_MEMBERS: Final = frozenset({"qos", "retain", "payloadformat", "expiryinterval"})
#: Members that MQTT 3.1.1 has as well.
_MQTT3_MEMBERS: Final = frozenset({"mqttversion", "qos", "retain", "topicname"})

SECTIONS: Final = {
    "publish": Section(
        {
            "mqttversion": one_of("3.1.1", "5.0"),
            "qos": metaschema.integer(0, 2),
            "retain": metaschema.boolean,
            "topicname": metaschema.text,
            "payloadformat": metaschema.integer(0, 1),
            "expiryinterval": metaschema.integer(0),
            "responsetopic": metaschema.text,
            "correlationdata": metaschema.binary,
            "contenttype": metaschema.text,
        }
    ),
    "userproperty": Section(check_others=metaschema.text),
    "payload": Section({"dataschema": parsable_by(uris.check_reference)}),
}


def check(sections: Sections) -> None:
    """Checks that the topic has no wildcards, and that a 3.1.1 message uses no features of 5.0."""
    publish = as_mapping(sections.get("publish"))
    if not is_topic(publish.get("topicname", "")):
        raise MalformedDefinition(
            "a message is published to one topic, so wildcards are not allowed", "publish", "topicname"
        )
    if publish.get("mqttversion") != "3.1.1":
        return
    for section, members in (
        ("publish", publish.keys() - _MQTT3_MEMBERS),
        ("userproperty", sections.get("userproperty", {})),
    ):
        for name in sorted(members):
            raise MalformedDefinition("MQTT 3.1.1 does not have this member", section, name)


def to_attributes(sections: Sections, leftovers: Sections) -> dict[str, Json]:
    publish = as_mapping(sections.get("publish"))
    options: dict[str, Json] = {}
    for name, option_name in _PUBLISH.items():
        if name not in publish:
            continue
        option_value = as_scalar(publish[name]) if name in _SCALAR_MEMBERS else as_template(option_name, publish[name])
        if option_value is None:
            add_leftover(leftovers, "publish", name, publish[name])
        else:
            options[option_name] = option_value
    properties = _properties(as_mapping(sections.get("userproperty")), leftovers)
    if properties:
        options["user_properties"] = properties
    return {"protocol": _protocol(publish.get("mqttversion"), leftovers), "protocoloptions": options}


def to_document(attributes: Mapping[str, Json], leftovers: Sections) -> Sections:
    options, publish_leftovers = as_mapping(attributes.get("protocoloptions")), section_leftovers(leftovers, "publish")
    is_mqtt3 = names.canonical_protocol(attributes.get("protocol")) == names.MQTT3
    publish: dict[str, Json] = {"mqttversion": "3.1.1" if is_mqtt3 else publish_leftovers.get("mqttversion", "5.0")}
    for name, option_name in _PUBLISH.items():
        value = options.get(option_name, publish_leftovers.get(name))
        if value is not None and (name in _MQTT3_MEMBERS or not is_mqtt3):
            publish[name] = value
    properties = (
        {}
        if is_mqtt3
        else _property_members(
            as_sequence(options.get("user_properties")), section_leftovers(leftovers, "userproperty")
        )
    )
    return {"publish": publish, **({"userproperty": properties} if properties else {})}


def _protocol(version: Json, leftovers: Sections) -> str:
    """The protocol for an MQTT version; without a version, MQTT 5.0. Any other value is added to `leftovers`."""
    if version is not None and version not in ("3.1.1", "5.0"):
        add_leftover(leftovers, "publish", "mqttversion", version)
    return names.MQTT3 if version == "3.1.1" else names.MQTT5


def _properties(members: Mapping[str, Json], leftovers: Sections) -> list[Json]:
    properties: list[Json] = []
    for name, value in members.items():
        text = as_text("value", value)
        if _is_name(name):
            properties.append({"name": name} if text is None else {"name": name, "value": text})
        if not _is_name(name) or (text is None and value != ""):
            add_leftover(leftovers, "userproperty", name, value)
    return properties


def _property_members(properties: Any, leftovers: Mapping[str, Json]) -> dict[str, Json]:
    """The user properties, the last one of equal names.

    A leftover counts only if attributes cannot have its name; a client of the registry removed any other.
    """
    members: dict[str, Json] = {}
    for row in map(as_mapping, properties):
        members[str(row.get("name"))] = row.get("value", leftovers.get(str(row.get("name")), ""))
    return members | {name: value for name, value in leftovers.items() if not _is_name(name)}


def _is_name(name: str) -> bool:
    """Whether the registry can store a user property with this name."""
    return has_plain_placeholders(name) and fits_in_header("name", name)
