"""Events as Kafka records: key, value and headers.

Spec: CloudEvents Kafka protocol binding 1.0; subscriptions 2.5 and 7; SUB-702, SUB-703, SUB-705, SUB-710.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from cloudevents.core.v1.event import CloudEvent

from annals.projections.subscriptions.sinks import cloudevents

#: The value of `partitionkeyextractor` for records without a key.
KEYLESS: Final = "none"
STRUCTURED: Final = f"{cloudevents.STRUCTURED}; charset=UTF-8".encode()

CONTENT_TYPE: Final = "content-type"


class KafkaRecord(NamedTuple):
    """The key, value and headers for a producer."""

    key: bytes | None
    value: bytes
    headers: list[tuple[str, bytes]]


def encode_record(event: CloudEvent, contentmode: str, extractor: str) -> KafkaRecord:
    """The record of an event. extractor: the attribute whose value is the key, or `none`.

    An event without data is structured in any mode, because a record without a value is a tombstone.
    Raises: ValueError for a value that a record cannot hold.
    """
    key = None if extractor == KEYLESS else _attribute_key(event, extractor)
    if contentmode != "binary" or event.get_data() is None:
        return KafkaRecord(key, cloudevents.structured_json(event), [(CONTENT_TYPE, STRUCTURED)])
    headers = [
        (CONTENT_TYPE if name == "datacontenttype" else f"ce_{name}", value.encode())
        for name, value in cloudevents.text_attributes(event).items()
    ]
    return KafkaRecord(key, cloudevents.data_bytes(event), headers)


def _attribute_key(event: CloudEvent, name: str) -> bytes | None:
    value = event.get_attributes().get(name)
    return None if value is None else cloudevents.attribute_text(value).encode()
