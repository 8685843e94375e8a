"""CloudEvents as AMQP messages, structured or binary.

Spec: CloudEvents AMQP protocol binding 1.0.2, section 3; SUB-702 to 704.
"""

from __future__ import annotations

from typing import Any, Final

from cloudevents.core.v1.event import CloudEvent
from proton import Message

from annals.projections.subscriptions.sinks.cloudevents import STRUCTURED, attribute_text, data_bytes, structured_json

#: Prefix of attribute names. JMS does not allow the binding's other prefix, which has a colon.
_PREFIX: Final = "cloudEvents_"


def encode_message(event: CloudEvent, address: str, binary: bool) -> bytes:
    """A message in AMQP's encoding. An event without data is structured in either mode.

    Raises: ValueError, RecursionError for data that cannot be written.
    """
    attributes = {name: value for name, value in event.get_attributes().items() if value is not None}
    message: Any = Message(id=str(attributes["id"]), address=address, durable=True, inferred=True)
    if binary and event.get_data() is not None:
        message.body = data_bytes(event)
        if content_type := attributes.pop("datacontenttype", None):
            message.content_type = str(content_type)
        message.properties = {_PREFIX + name: _property_value(value) for name, value in attributes.items()}
    else:
        message.body = structured_json(event)
        message.content_type = f"{STRUCTURED}; charset=UTF-8"
    encoded: bytes = message.encode()
    return encoded


def _property_value(value: Any) -> Any:
    """The value as Proton encodes it: int as long, bool as boolean, bytes as binary, anything else as text.

    Times are text too: AMQP's have only milliseconds, and an event has the same time everywhere (SUB-114).
    """
    is_native = type(value) in (bool, bytes) or (type(value) is int and abs(value) < 1 << 31)
    return value if is_native else attribute_text(value)
