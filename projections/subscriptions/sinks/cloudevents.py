"""An event in the parts that messages are made of: its JSON form, its data as bytes, its attributes as text.

Spec: CloudEvents 1.0, "Type System"; JSON Event Format; SUB-702, 703.
"""

from __future__ import annotations

import re
from base64 import b64encode
from datetime import datetime
from typing import Any, Final

import orjson
from cloudevents.core.v1.event import CloudEvent

#: The media type of an event as one JSON value.
STRUCTURED: Final = "application/cloudevents+json"

_JSON: Final = re.compile(r"[^/;]+/(?:[^;]+\+)?json\s*(?:;|\Z)", re.IGNORECASE)
#: What JSON has a form of that is the canonical one too.
_PLAIN: Final = (str, bool, int)
#: What strings of CloudEvents may not hold; JSON has a way to write it, headers of most protocols have none.
_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def is_sent_binary(event: CloudEvent, contentmode: str) -> bool:
    """Whether an event is sent in binary mode: where it is asked for, and the event has data (SUB-702)."""
    if contentmode != "binary" or event.get_data() is None:
        return False
    return not any(_CONTROLS.search(attribute_text(value)) for value in event.get_attributes().values())


def structured_json(event: CloudEvent) -> bytes:
    """An event as one JSON value. Raises: ValueError for one that JSON cannot hold."""
    whole: dict[str, Any] = {
        name: value if isinstance(value, _PLAIN) else attribute_text(value)
        for name, value in event.get_attributes().items()
        if value is not None
    }
    data = event.get_data()
    if isinstance(data, bytes):
        whole["data_base64"] = b64encode(data).decode()
    elif data is not None:
        whole["data"] = data
    try:
        return orjson.dumps(whole)
    except TypeError as error:
        raise ValueError("not a JSON value") from error


def text_attributes(event: CloudEvent) -> dict[str, str]:
    """The context attributes as text, `datacontenttype` with them."""
    return {name: attribute_text(value) for name, value in event.get_attributes().items() if value is not None}


def data_bytes(event: CloudEvent) -> bytes:
    """The data of an event as bytes, in the format that `datacontenttype` names; JSON where it names none.

    Raises: ValueError for what JSON cannot hold.
    """
    data = event.get_data()
    if isinstance(data, bytes):
        return data
    if isinstance(data, str) and not _JSON.match(str(event.get_attributes().get("datacontenttype", "a/json"))):
        return data.encode()
    try:
        return orjson.dumps(data)
    except TypeError as error:
        raise ValueError("not a JSON value") from error


def attribute_text(value: Any) -> str:
    """The canonical string of an attribute's value."""
    match value:
        case bool():
            return "true" if value else "false"
        case bytes():
            return b64encode(value).decode()
        case datetime():
            return _time(value)
        case _:
            return str(value)


def _time(value: datetime) -> str:
    written = value.isoformat()
    return written.removesuffix("+00:00") + "Z" if written.endswith("+00:00") else written
