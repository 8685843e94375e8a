"""The parts of an event from which messages are built: its JSON form, its data as bytes, its attributes as text.

Spec: CloudEvents 1.0, "Type System"; JSON Event Format; SUB-702, 703.
"""

from __future__ import annotations

import re
from base64 import b64encode
from datetime import datetime
from typing import Any, Final

import orjson
from cloudevents.core.v1.event import CloudEvent

#: The media type of one event as a JSON value.
STRUCTURED: Final = "application/cloudevents+json"

_JSON_TYPE: Final = re.compile(r"[^/;]+/(?:[^;]+\+)?json\s*(?:;|\Z)", re.IGNORECASE)
#: Types whose JSON form is also their canonical form.
_NATIVE_TYPES: Final = (str, bool, int)
#: Characters that CloudEvents strings may not hold. JSON can escape them; headers of most protocols cannot.
_CONTROL_CHARACTERS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def is_sent_binary(event: CloudEvent, contentmode: str) -> bool:
    """Whether an event is sent in binary mode: the setting asks for it and the event has data (SUB-702).

    Control characters in an attribute rule out binary mode.
    """
    if contentmode != "binary" or event.get_data() is None:
        return False
    return not any(_CONTROL_CHARACTERS.search(attribute_text(value)) for value in event.get_attributes().values())


def structured_json(event: CloudEvent) -> bytes:
    """An event as one JSON value. Raises: ValueError if JSON cannot represent it."""
    members: dict[str, Any] = {
        name: value if isinstance(value, _NATIVE_TYPES) else attribute_text(value)
        for name, value in event.get_attributes().items()
        if value is not None
    }
    data = event.get_data()
    if isinstance(data, bytes):
        members["data_base64"] = b64encode(data).decode()
    elif data is not None:
        members["data"] = data
    try:
        return orjson.dumps(members)
    except TypeError as error:
        raise ValueError("not a JSON value") from error


def text_attributes(event: CloudEvent) -> dict[str, str]:
    """The context attributes as text, including `datacontenttype`."""
    return {name: attribute_text(value) for name, value in event.get_attributes().items() if value is not None}


def data_bytes(event: CloudEvent) -> bytes:
    """The data of an event as bytes, in the format that `datacontenttype` names; JSON if it names none.

    Raises: ValueError if JSON cannot represent the data.
    """
    data = event.get_data()
    if isinstance(data, bytes):
        return data
    if isinstance(data, str) and not _JSON_TYPE.match(str(event.get_attributes().get("datacontenttype", "a/json"))):
        return data.encode()
    try:
        return orjson.dumps(data)
    except TypeError as error:
        raise ValueError("not a JSON value") from error


def attribute_text(value: Any) -> str:
    """The canonical string of an attribute value."""
    match value:
        case bool():
            return "true" if value else "false"
        case bytes():
            return b64encode(value).decode()
        case datetime():
            return _time_text(value)
        case _:
            return str(value)


def _time_text(value: datetime) -> str:
    text = value.isoformat()
    return text.removesuffix("+00:00") + "Z" if text.endswith("+00:00") else text
