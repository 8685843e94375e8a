"""OpenAPI of the feeds: `/-/events`, `/-/log` and `/-/documents`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from api.feeds.formats import CLOUDEVENTS_BATCH, EVENT_STREAM, NDJSON, PAGE_SIZE
from api.feeds.request_params import MAX_LIMIT, MAX_WAIT
from api.openapi.builders import STRING_SCHEMA, UINTEGER_SCHEMA, Schema, own_operation, parameter, response_headers
from api.openapi.problems import error_responses
from domain.subscriptions.event_families import FAMILIES, XREGISTRY

_TIME: Final[Schema] = {"type": "string", "format": "date-time"}
_HASH: Final[Schema] = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_MOMENT: Final = "a position of the log, an RFC 3339 time, or the correlation id of an interaction"
_READ: Final = (401, 403, 404, 405, 500)
_CHOSEN: Final = (400, *_READ)
_FED: Final = (400, 401, 403, 404, 405, 406, 500)

#: The query parameters of both feeds, and those that select events: description and schema of each.
_GOING_ON: Final[dict[str, tuple[str, Schema]]] = {
    "after": (f"Goes on behind a moment: {_MOMENT}. The header Last-Event-ID goes before it.", STRING_SCHEMA),
    "limit": (
        f"The most events; of CloudEvents never more than {MAX_LIMIT:,} unless they are streamed. Without it an array "
        f"has {PAGE_SIZE:,}, other forms all. What is of one position stays together; pages of the log end where an "
        "interaction does, unless one alone is larger.",
        {**UINTEGER_SCHEMA, "minimum": 1},
    ),
    "wait": ("Seconds to wait for the first event.", {"type": "number", "minimum": 0, "maximum": MAX_WAIT}),
}
_CARRIED: Final[dict[str, tuple[str, Schema]]] = {
    "documents": (
        "With it, a document that events refer to comes before the first event of an interaction that does so.",
        {"enum": ["", "true", "false"]},
    )
}
_CHOOSING: Final[dict[str, tuple[str, Schema]]] = {
    "type": (
        "Types of events, with commas between them; one with `*` at its end stands for all that begin so.",
        STRING_SCHEMA,
    ),
    "subject": ("The subject of events, such as an xid, for those about it and whatever is below it.", STRING_SCHEMA),
    "sql": (
        "A CESQL expression that is true for the event, without an error, such as `type LIKE '%.deleted'`.",
        STRING_SCHEMA,
    ),
    "from": ("Only what happened at a time or later.", _TIME),
    "until": ("Only what happened by a time.", _TIME),
    "xregcorrelationid": ("Only what one interaction did.", STRING_SCHEMA),
    "family": (
        f"Families of events, with commas between them: {', '.join(FAMILIES)}. Without it, {XREGISTRY} only.",
        {"type": "array", "items": {"type": "string", "enum": list(FAMILIES)}, "default": [XREGISTRY]},
    ),
}
_ASOF: Final[dict[str, tuple[str, Schema]]] = {"asof": (f"The head as it was at a moment: {_MOMENT}.", STRING_SCHEMA)}

_EVENT: Final[Schema] = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("specversion", "id", "source", "type", "subject", "xregcorrelationid"), STRING_SCHEMA),
        "time": _TIME,
        "datacontenttype": STRING_SCHEMA,
        "data": {"type": "object", "properties": {"changed": {"type": "array", "items": STRING_SCHEMA}}},
    },
    "required": ["specversion", "id", "source", "type", "subject", "time", "xregcorrelationid"],
}
_INTERACTION: Final[Schema] = {
    "type": "object",
    "description": "An interaction, before its events.",
    "properties": {
        **dict.fromkeys(("first", "last"), UINTEGER_SCHEMA),
        **dict.fromkeys(("xregcorrelationid", "caller", "command", "registryurl"), STRING_SCHEMA),
        **{"time": _TIME, "chain": _HASH, "state": _HASH},
    },
    "required": ["first", "last"],
}
_STORED: Final[Schema] = {
    "type": "object",
    "description": "An event: what follows `topic` is the stored state without its opening brace, byte for byte.",
    "properties": {
        **dict.fromkeys(("position", "revision", "epoch", "born"), UINTEGER_SCHEMA),
        **dict.fromkeys(("stream", "topic", "xid", "type", "xregcorrelationid"), STRING_SCHEMA),
        **{"attributes": {"type": "object"}, "private": {"type": "object"}, "time": _TIME},
        "changed": {"type": "array", "items": STRING_SCHEMA},
    },
    "required": ["position", "stream", "revision", "topic"],
}
_DOCUMENT: Final[Schema] = {
    "type": "object",
    "description": "A document, where the query asks for documents.",
    "properties": {"document": _HASH, "base64": {"type": "string", "contentEncoding": "base64"}},
    "required": ["document", "base64"],
}
_HEAD: Final[Schema] = {
    "type": "object",
    "properties": {
        "position": UINTEGER_SCHEMA,
        "time": _TIME,
        "xregcorrelationid": STRING_SCHEMA,
        "chain": _HASH,
        "state": _HASH,
    },
    "required": ["position", "chain", "state"],
}


_UPSTREAM: Final[Schema] = {
    "type": "object",
    "properties": {
        "registry": {**STRING_SCHEMA, "description": "Correlation id of the interaction that made it."},
        "follows": {
            "type": "array",
            "items": {"type": "object"},
            "description": "Its links, each with those behind it.",
        },
    },
    "required": ["registry", "follows"],
}


def _get(name: str, summary: str, parameters: list[Schema], answers: Schema, refused: tuple[int, ...]) -> Schema:
    """The path item of a read-only path."""
    shown: Schema = {"get": own_operation(name, summary, responses={**answers, **error_responses(refused, own=True)})}
    return {"parameters": parameters, **shown} if parameters else shown


def _in_query(*some: Mapping[str, tuple[str, Schema]]) -> list[Schema]:
    return [parameter(name, says, schema) for rows in some for name, (says, schema) in rows.items()]


def _gives(says: str, content: Mapping[str, Schema], *names: str) -> Schema:
    bodies = {name: {"schema": each} for name, each in content.items()}
    return {"description": says, "headers": response_headers("Link", *names), "content": bodies}


def _fed(items: Schema, *arrays: str) -> Schema:
    """The 200 response of a feed in each format. arrays: the media types whose body is a JSON array."""
    forms = {
        **{name: {"type": "array", "items": items} for name in arrays},
        NDJSON: STRING_SCHEMA,
        EVENT_STREAM: STRING_SCHEMA,
    }
    return {"200": _gives("Events, and a Link with the relation `next` to those behind them.", forms)}


_UNCHANGED: Final[Schema] = {"304": {"description": "The client has it."}}
_SHA256: Final[Schema] = {"name": "sha256", "in": "path", "required": True, "schema": _HASH}

PATHS: Final[dict[str, dict[str, Any]]] = {
    "/-/events": _get(
        "events",
        "Read or follow what has happened, as CloudEvents",
        _in_query(_GOING_ON, _CHOOSING),
        _fed(_EVENT, CLOUDEVENTS_BATCH, "application/json"),
        _FED,
    ),
    "/-/log": _get(
        "log",
        "Read or follow the log itself, interaction by interaction",
        _in_query(_GOING_ON, _CARRIED),
        _fed({"anyOf": [_INTERACTION, _DOCUMENT, _STORED]}, "application/json"),
        _FED,
    ),
    "/-/log/head": _get(
        "log-head",
        "Read where the log ends, or ended, with the hashes that prove it",
        _in_query(_ASOF),
        {"200": _gives("The last interaction by then.", {"application/json": _HEAD}, "ETag"), **_UNCHANGED},
        _CHOSEN,
    ),
    "/-/log/upstream": _get(
        "log-upstream",
        "Read which registry this is and which ones it follows by their logs",
        [],
        {"200": _gives("By that, links that would make a ring are found.", {"application/json": _UPSTREAM})},
        _READ,
    ),
    "/-/documents/{sha256}": _get(
        "documents",
        "Read a document by its SHA-256",
        [_SHA256],
        {"200": _gives("Its bytes.", {"application/octet-stream": {}}, "ETag"), **_UNCHANGED},
        _READ,
    ),
}
