"""Formats of message Groups, and the equivalent attributes of the registry.

`MQTT` and unknown names have no attribute: each message has its own MQTT version. Rules LEG-304, § 12.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from annals.domain.compat.catalog import amqp, cloudevents
from annals.domain.messaging.findings import names
from annals.domain.messaging.findings.unchecked_values import as_text
from annals.domain.values.json_text import Json

#: The format of a Group whose attributes declare none.
XREGISTRY_FORMAT: Final = "xRegistry"

_CLOUDEVENTS: Final = "CloudEvents"
_ATTRIBUTES: Final[Mapping[str, Mapping[str, str]]] = {
    _CLOUDEVENTS: {"envelope": cloudevents.ENVELOPE},
    "AMQP": {"protocol": amqp.PROTOCOL},
    "NATS": {"protocol": names.NATS},
}


def to_attributes(format: str) -> dict[str, str]:
    """The attributes of a Group with this format; empty for formats that the registry cannot express."""
    return dict(_ATTRIBUTES.get(format, {}))


def messagegroup_format(attributes: Mapping[str, Json], stored: str | None = None) -> str:
    """The format of a Group. stored: the name that a client gave it; it applies where attributes cannot express it."""
    declared = declared_formats(attributes)
    if declared:
        return declared[0]
    return XREGISTRY_FORMAT if stored is None or stored in _ATTRIBUTES else stored


def declared_formats(attributes: Mapping[str, Json]) -> list[str]:
    """The formats that the attributes of a Group or a message declare, the decisive one first."""
    envelope, protocol = as_text(attributes.get("envelope")), as_text(attributes.get("protocol"))
    formats = [_CLOUDEVENTS] if envelope else []
    return [*formats, protocol.partition("/")[0].upper()] if protocol else formats
