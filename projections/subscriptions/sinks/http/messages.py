"""Events as bodies and headers of HTTP requests: structured, binary and batched.

Spec: CloudEvents HTTP protocol binding 1.0.2, JSON format 1.0.2, "JSON Batch Format"; rules SUB-701 to 703, SUB-706.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple
from urllib.parse import quote

from cloudevents.core.v1.event import CloudEvent

from annals.projections.subscriptions.sinks import cloudevents

#: Charset names ignore case, but the JavaScript CloudEvents library recognizes only this spelling.
STRUCTURED: Final = "application/cloudevents+json; charset=utf-8"
BATCHED: Final = "application/cloudevents-batch+json; charset=UTF-8"

#: Characters that a header value carries unescaped: printable ASCII except quotation marks and percent signs.
_UNENCODED: Final = "".join(chr(each) for each in range(0x21, 0x7F) if each not in b'"%')


class HttpMessage(NamedTuple):
    """A request without the headers that depend on the sender."""

    headers: tuple[tuple[str, str], ...]
    body: bytes


def encode_message(events: Sequence[CloudEvent], contentmode: str) -> HttpMessage:
    """The message of one event, or of a batch of events. Raises: ValueError if an event cannot be written."""
    if contentmode == "batched":
        return HttpMessage(
            (("Content-Type", BATCHED),), b"[" + b",".join(map(cloudevents.structured_json, events)) + b"]"
        )
    (event,) = events
    # Webhooks need a payload and its content type, so an event that lacks either is sent structured.
    if cloudevents.is_sent_binary(event, contentmode) and event.get_datacontenttype():
        return HttpMessage(tuple(_binary_headers(event)), cloudevents.data_bytes(event))
    return HttpMessage((("Content-Type", STRUCTURED),), cloudevents.structured_json(event))


def _binary_headers(event: CloudEvent) -> list[tuple[str, str]]:
    attributes = cloudevents.text_attributes(event)
    contenttype = attributes.pop("datacontenttype")
    return [("Content-Type", contenttype), *((f"ce-{name}", header_value(text)) for name, text in attributes.items())]


def header_value(text: str) -> str:
    """A text as a header value, percent-encoded (SUB-701)."""
    return quote(text, safe=_UNENCODED)
