"""Events as Kafka records: key, value and headers.

Spec: CloudEvents Kafka protocol binding 1.0; subscriptions 2.5 and 7; SUB-702, SUB-703, SUB-705, SUB-710.
"""

from __future__ import annotations

import re
from base64 import b64encode
from datetime import datetime
from typing import Any, Final, NamedTuple

import orjson
from cloudevents.core.bindings import kafka as binding
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent

from domain.cesql.values import string

#: The name that asks for records without a key.
KEYLESS: Final = "none"
STRUCTURED: Final = b"application/cloudevents+json; charset=UTF-8"

_FORMAT: Final = JSONFormat()
_JSON: Final = re.compile(r"[^/;]+/(?:[^/;]+\+)?json\s*(?:;|\Z)", re.IGNORECASE)


class Record(NamedTuple):
    """What a producer is given."""

    key: bytes | None
    value: bytes
    headers: list[tuple[str, bytes]]


def record(event: CloudEvent, contentmode: str, extractor: str) -> Record:
    """The record of an event. extractor: the attribute whose value is the key, or `none`.

    An event without data is structured in any mode, because a record without a value is a tombstone.
    Raises: TypeError, ValueError where a value is none that an event can have.
    """
    key = None if extractor == KEYLESS else _key(event, extractor)
    data = event.get_data()
    if contentmode != "binary" or data is None:
        # The library does not say the encoding, which receivers are told of in every protocol.
        value = binding.to_structured(event, _FORMAT, lambda _: None).value
        return Record(key, value, [("content-type", STRUCTURED)])
    return Record(key, _value(data, event.get_datacontenttype()), _headers(event))


def _key(event: CloudEvent, name: str) -> bytes | None:
    value = event.get_attributes().get(name)
    return None if value is None else _text(value).encode()


def _headers(event: CloudEvent) -> list[tuple[str, bytes]]:
    # Not the library's: it writes a Boolean as Python does.
    return [
        ("content-type" if name == "datacontenttype" else f"ce_{name}", _text(value).encode())
        for name, value in event.get_attributes().items()
        if value is not None
    ]


def _text(value: Any) -> str:
    """The canonical string of an attribute."""
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, bytes):
        return b64encode(value).decode()
    return string(value)


def _value(data: Any, contenttype: str | None) -> bytes:
    # Not the library's: it knows no JSON but objects, and writes the rest as Python does.
    if isinstance(data, bytes | bytearray):
        return bytes(data)
    if contenttype is None or _JSON.match(contenttype):
        return orjson.dumps(data)
    if isinstance(data, str):
        return data.encode()
    raise TypeError(f"data of the type {contenttype} has to be text or bytes")
