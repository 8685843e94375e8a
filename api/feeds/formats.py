"""The formats of a feed: a JSON array, JSON lines, or server-sent events.

Spec: RFC 9110, "Accept"; CloudEvents JSON format, "JSON Batch Format"; HTML, "Server-sent events".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

from annals.api.http.response import JSON
from annals.domain.errors.http_errors import NotAcceptable
from annals.projections.log.json_lines import LogLine

NDJSON: Final = "application/x-ndjson"
EVENT_STREAM: Final = "text/event-stream"
CLOUDEVENTS_BATCH: Final = "application/cloudevents-batch+json"

_WEIGHT: Final = re.compile(r"q\s*=\s*([01](?:\.[0-9]{0,3})?)\Z")


class PositionLines(NamedTuple):
    """The lines of one log position. A feed never splits them. event_count: how many of them count towards a limit."""

    position: int
    items: Sequence[LogLine]
    event_count: int


#: What a media type is negotiated for.
Format = TypeVar("Format")
#: Serializes groups. The flag is true for the first groups of a response.
WriteLines = Callable[[Iterable[PositionLines], bool], bytes]


@dataclass(frozen=True, slots=True)
class FeedFormat:
    """before, after: bytes around all groups. limit: default number of events; None for all.

    is_endless: whether the response continues until the client disconnects.
    """

    content_type: tuple[bytes, bytes]
    write: WriteLines
    before: bytes = b""
    after: bytes = b""
    limit: int | None = None
    is_endless: bool = False


def _write_array(groups: Iterable[PositionLines], is_first: bool) -> bytes:
    joined_items = b",".join([item.data for group in groups for item in group.items])
    return joined_items if is_first or not joined_items else b"," + joined_items


def _write_lines(groups: Iterable[PositionLines], is_first: bool) -> bytes:
    return b"".join([item.data + b"\n" for group in groups for item in group.items])


def _write_server_sent_events(groups: Iterable[PositionLines], is_first: bool) -> bytes:
    """The groups as server-sent events.

    Only the last line of a position carries the id. A reader that disconnects earlier receives the whole position
    again.
    """
    return b"".join(
        [
            (b"id: %d\nevent: %b\ndata: %b\n\n" % (group.position, item.name.encode(), item.data))
            if item is group.items[-1]
            else b"event: %b\ndata: %b\n\n" % (item.name.encode(), item.data)
            for group in groups
            for item in group.items
        ]
    )


def heartbeat(position: int) -> bytes:
    """What an idle stream sends.

    It is no event, but its id lets a reader resume after the events that were filtered out.
    """
    return b": \nid: %d\n\n" % position


def _content_type(media_type: str) -> tuple[bytes, bytes]:
    return b"content-type", media_type.encode()


#: Default number of events in an array.
PAGE_SIZE: Final = 1000
_JSON_FORMAT: Final = FeedFormat(JSON, _write_array, b"[", b"]", PAGE_SIZE)
_LINES_FORMAT: Final = FeedFormat(_content_type(NDJSON), _write_lines)
_EVENT_STREAM_FORMAT: Final = FeedFormat(_content_type(EVENT_STREAM), _write_server_sent_events, is_endless=True)
#: The formats of each feed by media type. The first is the default.
EVENT_FORMATS: Final = {
    CLOUDEVENTS_BATCH: FeedFormat(_content_type(CLOUDEVENTS_BATCH), _write_array, b"[", b"]", PAGE_SIZE),
    NDJSON: _LINES_FORMAT,
    EVENT_STREAM: _EVENT_STREAM_FORMAT,
    "application/json": _JSON_FORMAT,
}
LOG_FORMATS: Final = {
    "application/json": _JSON_FORMAT,
    NDJSON: _LINES_FORMAT,
    EVENT_STREAM: _EVENT_STREAM_FORMAT,
}


def negotiate_format(accept: str | None, formats: Mapping[str, Format]) -> Format:
    """The format that the client prefers; the first of several with equal weight. formats: by media type.

    Raises: NotAcceptable.
    """
    media_ranges = [_parse_range(part) for part in (accept or "*/*").lower().split(",")]
    weights = {name: _weight(name, media_ranges) for name in formats}
    preferred = max(formats, key=weights.__getitem__)
    if not weights[preferred]:
        raise NotAcceptable(list=", ".join(formats))
    return formats[preferred]


def _parse_range(media_range: str) -> tuple[str, float]:
    name, *parameters = (parameter.strip() for parameter in media_range.split(";"))
    match = next(filter(None, map(_WEIGHT.match, parameters)), None)
    return name, float(match[1]) if match else 1.0


def _weight(name: str, media_ranges: Sequence[tuple[str, float]]) -> float:
    """The weight of a media type, from the most specific range that matches it."""
    weights = dict(media_ranges)
    matching_ranges = (name, name.partition("/")[0] + "/*", "*/*")
    return next((weights[media_range] for media_range in matching_ranges if media_range in weights), 0.0)
