"""OpenAPI of subscriptions, their actions, dead letters and previews."""

from __future__ import annotations

from typing import Final

from api.feeds.dry_run_openapi import or_dry_run
from api.feeds.formats import NDJSON
from api.openapi.builders import STRING_SCHEMA, UINTEGER_SCHEMA, Schema, json_result, parameter, response_headers
from api.openapi.problems import error_responses
from api.subscriptions.config import MEDIA_TYPES
from api.subscriptions.dead_letters import MAX_LIMIT as MOST_LETTERS
from api.subscriptions.previews import MAX_MATCHES as MOST_MATCHES
from api.subscriptions.reading import MAX_LIMIT
from domain.subscriptions.filters import DIALECTS
from domain.subscriptions.sink_uris import PROTOCOLS

_ANY: Final[Schema] = {"type": "object"}
_READ: Final = (400, 401, 403, 404, 405, 500)
_WRITTEN: Final = (400, 401, 403, 404, 405, 406, 409, 412, 413, 415, 429, 500, 503)
_MOMENT: Final = (
    "A moment of the past: a position of the log, an RFC 3339 time, or the correlation id of an interaction."
)

#: A subscription as a client sends it. Members that are not required have the defaults that OPTIONS shows.
_SENT: Final[Schema] = {
    "type": "object",
    "properties": {
        "id": {**STRING_SCHEMA, "description": "Chosen by the server; a PUT may repeat it."},
        "source": {**STRING_SCHEMA, "description": "Events have exactly this source."},
        "types": {
            "type": "array",
            "items": STRING_SCHEMA,
            "minItems": 1,
            "description": "Events have one of these types.",
        },
        "config": {
            "type": "object",
            "properties": {
                "families": {"type": "array", "items": STRING_SCHEMA},
                "startposition": {"type": ["integer", "string"]},
                "starttime": {**STRING_SCHEMA, "format": "date-time"},
            },
        },
        "filters": {
            "type": "array",
            "items": {"type": "object", "properties": {key: {} for key in DIALECTS}, "maxProperties": 1},
            "description": "All of them have to be true.",
        },
        "sink": {**STRING_SCHEMA, "format": "uri"},
        "sinkcredential": {**_ANY, "description": "Secrets in it are never shown again."},
        "protocol": {"enum": list(PROTOCOLS)},
        "protocolsettings": _ANY,
        "status": _ANY,
    },
}
_SUBSCRIPTION: Final[Schema] = {**_SENT, "required": ["id", "config", "sink", "protocol", "protocolsettings"]}
_STATUS: Final[Schema] = {"type": "object", "properties": {"state": STRING_SCHEMA}, "required": ["state"]}
_LETTER: Final[Schema] = {"type": "object", "properties": {"sequence": STRING_SCHEMA}, "required": ["sequence"]}
_SPAN: Final[Schema] = {
    "fromposition": UINTEGER_SCHEMA,
    "fromtime": {**STRING_SCHEMA, "format": "date-time"},
    "toposition": UINTEGER_SCHEMA,
}
_REPLAY: Final[Schema] = {"type": "object", "properties": {**_SPAN, "parallel": {"type": "boolean"}}}
_COUNTS: Final[Schema] = dict.fromkeys(("from", "to", "position", "considered", "matched"), UINTEGER_SCHEMA)
_PREVIEW: Final[Schema] = {
    "type": "object",
    "properties": {
        **_COUNTS,
        "complete": {"type": "boolean", "description": "Whether there was time for the whole stretch."},
        "families": {**_ANY, "description": "The same counts by family, and in these by type."},
        "matches": {"type": "array", "items": _ANY},
        "errors": {"type": "array", "items": _ANY, "description": "Expressions that could not be evaluated."},
    },
    "required": [*_COUNTS, "complete", "families", "matches", "errors"],
}
_OFFER: Final[Schema] = {
    "type": "object",
    "properties": {"protocols": _ANY, "dialects": {"type": "array", "items": STRING_SCHEMA}, "config": _ANY},
    "required": ["protocols", "dialects", "config"],
}


def _operation(
    name: str, summary: str, answers: Schema, refused: tuple[int, ...], body: Schema | None = None
) -> Schema:
    content = {type: {"schema": body} for type in MEDIA_TYPES} if body else {}
    return {
        "operationId": f"subscriptions.{name}",
        "summary": summary,
        "tags": ["subscriptions"],
        **({"requestBody": {"content": content}} if body else {}),
        "responses": {**answers, **error_responses(refused, own=True)},
    }


_ID: Final = parameter("id", "The id of a subscription.", STRING_SCHEMA, "path")
_SEQUENCE: Final = parameter(
    "sequence", "The sequence of the event that could not be delivered.", STRING_SCHEMA, "path"
)
_ASOF: Final = parameter("asof", _MOMENT, STRING_SCHEMA)
_DRYRUN: Final = parameter("dryrun", "Answers with the events that it would record, and does nothing.", {"const": ""})
_RECORDED: Final = "xRegistry-xregcorrelationid"
_UNCHANGED: Final[Schema] = {"304": {"description": "The client has it.", "headers": response_headers("Link", "ETag")}}


def _with(parameters: list[Schema], operation: Schema) -> Schema:
    return {**operation, "parameters": parameters}


PATHS: Final[dict[str, Schema]] = {
    "/subscriptions": {
        "get": _with(
            [
                parameter("protocol", "Only those of a protocol.", STRING_SCHEMA),
                parameter("source", "Only those to a source.", STRING_SCHEMA),
                parameter("state", "Only those in a state, such as `suspended`.", STRING_SCHEMA),
                parameter("limit", "How many at most.", {**UINTEGER_SCHEMA, "minimum": 1, "maximum": MAX_LIMIT}),
                parameter("after", "Where a Link to the next page goes on.", UINTEGER_SCHEMA),
                _ASOF,
            ],
            _operation(
                "list",
                "List the subscriptions that the caller may see, in the order of their creation",
                {"200": json_result("They.", {"type": "array", "items": _SUBSCRIPTION})},
                _READ,
            ),
        ),
        "post": _with(
            [_DRYRUN],
            _operation(
                "create",
                "Subscribe to events",
                {
                    "201": json_result(
                        "The subscription, with defaults.", _SUBSCRIPTION, _RECORDED, "Location", "ETag"
                    ),
                    "200": or_dry_run(None),
                },
                _WRITTEN,
                {**_SENT, "required": ["sink", "protocol"]},
            ),
        ),
    },
    "/subscriptions/{id}": {
        "parameters": [_ID],
        "get": _with(
            [_ASOF],
            _operation(
                "read",
                "Read a subscription and how its deliveries go",
                {"200": json_result("It.", _SUBSCRIPTION, "ETag"), **_UNCHANGED},
                _READ,
            ),
        ),
        "put": _with(
            [_DRYRUN],
            _operation(
                "replace",
                "Replace a subscription",
                {"200": or_dry_run(json_result("It, with defaults.", _SUBSCRIPTION))},
                _WRITTEN,
                {**_SENT, "required": ["sink", "protocol"]},
            ),
        ),
        "delete": _with(
            [_DRYRUN],
            _operation(
                "delete",
                "Delete a subscription",
                {"200": or_dry_run(json_result("What it was last.", _SUBSCRIPTION))},
                _WRITTEN,
            ),
        ),
    },
    "/subscriptions/{id}/actions/{action}": {
        "parameters": [
            _ID,
            parameter("action", "What to do.", {"enum": ["pause", "resume", "verify", "replay"]}, "path"),
        ],
        "post": _with(
            [_DRYRUN],
            _operation(
                "act",
                "Steer the deliveries of a subscription",
                {"202": json_result("The status.", _STATUS), "200": or_dry_run(None)},
                _WRITTEN,
                _REPLAY,
            ),
        ),
    },
    "/subscriptions/{id}/deadletters": {
        "parameters": [_ID],
        "get": _with(
            [
                parameter("after", "Goes on behind a sequence.", STRING_SCHEMA),
                parameter("limit", "How many at most.", {**UINTEGER_SCHEMA, "minimum": 1, "maximum": MOST_LETTERS}),
            ],
            _operation(
                "deadletters",
                "List what could not be delivered",
                {"200": json_result("It.", {"type": "array", "items": _LETTER})},
                _READ,
            ),
        ),
    },
    "/subscriptions/{id}/deadletters/{sequence}": {
        "parameters": [_ID, _SEQUENCE],
        "get": _operation("deadletter", "Read a dead letter", {"200": json_result("It.", _LETTER)}, _READ),
        "delete": _operation(
            "discard", "Discard a dead letter", {"200": json_result("What it was.", _LETTER)}, _WRITTEN
        ),
    },
    "/subscriptions/{id}/deadletters/{sequence}/redeliver": {
        "parameters": [_ID, _SEQUENCE],
        "post": _operation(
            "redeliver", "Try to deliver a dead letter again", {"202": json_result("The status.", _STATUS)}, _WRITTEN
        ),
    },
    "/-/subscriptions/preview": {
        "post": _operation(
            "preview",
            "See what a subscription would have been told of the past; nothing is stored or sent",
            {
                "200": {
                    "description": "How many events it would have been told, and the first of them.",
                    "headers": response_headers("Link"),
                    "content": {"application/json": {"schema": _PREVIEW}, NDJSON: {"schema": STRING_SCHEMA}},
                }
            },
            _WRITTEN,
            {
                "type": "object",
                "properties": {
                    **_SENT["properties"],
                    **_SPAN,
                    "limit": {**UINTEGER_SCHEMA, "maximum": MOST_MATCHES},
                },
            },
        ),
    },
    "/-/subscriptions/{id}/consent/{secret}": {
        "parameters": [_ID, parameter("secret", "What the sink was sent.", STRING_SCHEMA, "path")],
        **{
            method: _operation(
                f"consent.{method}",
                "Consent to being sent events, as the sink that was asked",
                {"200": json_result("Events will be sent.", _ANY)},
                (400, 404, 405, 413, 500),
            )
            for method in ("get", "post")
        },
    },
}
