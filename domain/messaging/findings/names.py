"""Names of protocols and envelopes: which names are equivalent, and which agree.

Spec: endpoint 1.0-rc4, "protocol", "envelope". Rules EP-10 to 13, CM-14.
"""

from __future__ import annotations

import re
from typing import Final

HTTP: Final = "HTTP"
AMQP: Final = "AMQP/1.0"
MQTT3: Final = "MQTT/3.1.1"
MQTT5: Final = "MQTT/5.0"
KAFKA: Final = "KAFKA"
NATS: Final = "NATS"
MQTT: Final = (MQTT3, MQTT5)
#: The protocols that the specifications define, by the names that select their options in the model.
DEFINED_PROTOCOLS: Final = (HTTP, AMQP, MQTT3, MQTT5, KAFKA, NATS)

#: The versions of a name that mean a defined protocol; `None` matches any version, or none.
_VERSIONS: Final[dict[str, dict[str | None, str]]] = {
    "http": {None: HTTP},
    "kafka": {None: KAFKA},
    "nats": {None: NATS},
    "amqp": {"": AMQP, "1": AMQP, "1.0": AMQP},
    "mqtt": {"": MQTT5, "5": MQTT5, "5.0": MQTT5, "3.1.1": MQTT3},
}
_SELECTING_NAMES: Final = frozenset(name.casefold() for name in DEFINED_PROTOCOLS)
_VERSIONED_NAME: Final = re.compile(r"[^/\s]+/\S+\Z")
_NAME: Final = re.compile(r"[^/\s]+(?:/\S+)?\Z")


def canonical_protocol(name: str | None) -> str | None:
    """The defined protocol for a name or an alias (EP-10); None for any other."""
    family, _, version = (name or "").casefold().partition("/")
    names_by_version = _VERSIONS.get(family, {})
    return names_by_version.get(version) or names_by_version.get(None)


def selects_options(name: str) -> bool:
    """Whether the model knows the options of a protocol by this name; it knows no aliases (CM-06)."""
    return name.casefold() in _SELECTING_NAMES


def same_protocol(first: str, other: str) -> bool:
    """Whether two names mean one protocol (EP-11)."""
    return (canonical_protocol(first) or first.casefold()) == (canonical_protocol(other) or other.casefold())


def is_cloudevents(envelope: str | None) -> bool:
    """Whether an envelope is CloudEvents 1.0, the only one with rules here."""
    return (envelope or "").casefold() == "cloudevents/1.0"


def is_versioned(name: str) -> bool:
    """Whether a name is `<NAME>/<VERSION>`, which is split at its first slash (MS-61)."""
    return bool(_VERSIONED_NAME.match(name))


def is_name(name: str) -> bool:
    """Whether a name is `<NAME>` or `<NAME>/<VERSION>`."""
    return bool(_NAME.match(name))


def is_envelope_allowed(group: str, message: str) -> bool:
    """Whether an endpoint with one envelope may have a message with the other: an equal or more precise one (EP-13)."""
    group_envelope, message_envelope = group.casefold(), message.casefold()
    return message_envelope == group_envelope or message_envelope.startswith(
        group_envelope + ("." if "/" in group_envelope else "/")
    )
