"""OpenAPI of `/-/links`."""

from __future__ import annotations

from typing import Any, Final

from api.feeds.dry_run_openapi import or_dry_run
from api.feeds.formats import CLOUDEVENTS_BATCH, NDJSON
from api.openapi.builders import (
    STRING_SCHEMA,
    UINTEGER_SCHEMA,
    WRITE_HEADERS,
    Schema,
    json_content,
    json_result,
    own_operation,
    parameter,
)
from api.openapi.problems import error_responses
from api.replication.notifications import CLOUDEVENT_JSON
from api.replication.representations import LINK_STATES
from domain.replication.link import MODES
from projections.replication.link_status import DIFFERS, EQUAL, UNKNOWN

_ANY: Final[Schema] = {"type": "object"}
_NUMBER: Final[Schema] = {"type": "number", "minimum": 0}
_READ: Final = (400, 401, 403, 404, 405, 500)
_WRITTEN: Final = (400, 401, 403, 404, 405, 413, 500, 503)
_ACTED: Final = (*_WRITTEN, 409, 502)
_XIDS: Final[Schema] = {"type": "array", "items": STRING_SCHEMA, "minItems": 1}
_SENT: Final[Schema] = {
    "type": "object",
    "properties": {
        "id": {**STRING_SCHEMA, "description": "Letters, digits, `.`, `_`, `~` and `-`; a PUT may repeat it."},
        "url": {
            **STRING_SCHEMA,
            "description": "Root of the other registry, or of its older API; `kafka://` for a topic.",
        },
        "dialect": {"enum": list(MODES), "default": "log"},
        "mode": {"enum": list(dict.fromkeys(mode for modes in MODES.values() for mode in modes)), "default": "pull"},
        "scope": {
            "type": "object",
            "properties": {"groups": _XIDS, "resources": _XIDS, "filters": {"type": "array", "items": _ANY}},
            "description": "What of the registry; all of it, unless something is named.",
        },
        "names": {
            "type": "object",
            "additionalProperties": STRING_SCHEMA,
            "description": "Groups there, and as what here.",
        },
        "interval": {**_NUMBER, "description": "Seconds between looks, and between checks."},
        "conflicts": {"enum": ["rename", "skip"], "default": "rename"},
        "remote": {
            **STRING_SCHEMA,
            "description": "Id of the link at the other end that takes in what this one pushes.",
        },
        "credential": {
            "type": "object",
            "properties": {
                "type": {"enum": ["bearer", "basic"]},
                **dict.fromkeys(("token", "username", "password"), STRING_SCHEMA),
            },
            "description": "What the other registry is told. Secrets in it are never shown again.",
        },
        "enabled": {"type": "boolean", "default": True},
        "status": _ANY,
    },
}
_LAG: Final[Schema] = {"type": "object", "properties": {"positions": UINTEGER_SCHEMA, "seconds": _NUMBER}}
_STATUS: Final[Schema] = {
    "type": "object",
    "properties": {
        "state": {"enum": list(LINK_STATES)},
        "position": {
            **UINTEGER_SCHEMA,
            "description": "Of the other log, up to which all is here; of this one, for a push.",
        },
        "lag": _LAG,
        "verdict": {"enum": [EQUAL, DIFFERS, UNKNOWN], "description": "Whether both ends hold the same."},
        "difference": {
            "type": "object",
            "properties": {"xid": STRING_SCHEMA},
            "description": "The first entity that differs.",
        },
        "lastcontact": {**_NUMBER, "description": "Seconds since 1970."},
        "error": {**STRING_SCHEMA, "description": "What went wrong last."},
    },
    "required": ["state", "position"],
}
_LINK: Final[Schema] = {
    "type": "object",
    "properties": {**_SENT["properties"], "status": _STATUS},
    "required": ["id", "url", "dialect", "mode", "scope", "interval", "conflicts", "enabled", "status"],
}
_REPAIRED: Final[Schema] = {**_LINK, "properties": {**_LINK["properties"], "repaired": UINTEGER_SCHEMA}}
_ID: Final = parameter("id", "The id of a link.", STRING_SCHEMA, "path")
_DRYRUN: Final = parameter("dryrun", "Answers with the events that it would append, and does nothing.", {"const": ""})


def _operation(
    name: str, summary: str, responses: Schema, refused: tuple[int, ...], body: Schema | None = None
) -> Schema:
    said: dict[str, Any] = {"responses": {**responses, **error_responses(refused, own=True)}}
    if body is not None:
        said["requestBody"] = {"required": True, **json_content(body)}
    return own_operation(f"links.{name}", summary, **said)


def _tried(operation: Schema) -> Schema:
    return {**operation, "parameters": [_DRYRUN]}


PATHS: Final[dict[str, Schema]] = {
    "/-/links": {
        "get": _operation(
            "list",
            "List all replication links",
            {"200": json_result("They.", {"type": "array", "items": _LINK})},
            _READ,
        ),
        "post": _tried(
            _operation(
                "create",
                "Copy from another registry, or to it",
                {
                    "201": json_result("The link, with defaults.", _LINK, *WRITE_HEADERS[:1], "Location"),
                    "200": or_dry_run(None),
                },
                _WRITTEN,
                {**_SENT, "required": ["id", "url"]},
            )
        ),
    },
    "/-/links/{id}": {
        "parameters": [_ID],
        "get": _operation("read", "Read a link and how it goes", {"200": json_result("It.", _LINK)}, _READ),
        "put": _tried(
            _operation(
                "replace",
                "Make or replace a link",
                {
                    "201": json_result("The link, with defaults.", _LINK, *WRITE_HEADERS[:1], "Location"),
                    "200": or_dry_run(json_result("It, with defaults.", _LINK, *WRITE_HEADERS[:1])),
                },
                _WRITTEN,
                {**_SENT, "required": ["url"]},
            )
        ),
        "delete": _tried(
            _operation(
                "delete",
                "Delete a link; what came over it stays and becomes writable",
                {"204": {"description": "It is gone."}, "200": or_dry_run(None)},
                _WRITTEN,
            )
        ),
    },
    "/-/links/{id}/actions/{action}": {
        "parameters": [
            _ID,
            parameter("action", "What to do.", {"enum": ["promote", "pause", "resume", "check", "repair"]}, "path"),
        ],
        "post": _tried(
            _operation(
                "act",
                "Promote, pause, resume, check or repair what comes over a link",
                {"200": or_dry_run(json_result("The link; after a repair, how many entities differed.", _REPAIRED))},
                _ACTED,
            )
        ),
    },
    "/-/links/{id}/log": {
        "parameters": [_ID],
        "post": _operation(
            "receive",
            "Take in what another registry pushes of its log",
            {
                "200": json_result(
                    "Up to which position of the other log all is here.",
                    {"type": "object", "properties": {"position": UINTEGER_SCHEMA}, "required": ["position"]},
                )
            },
            (*_WRITTEN, 409, 415),
        )
        | {
            "parameters": [parameter("after", "The position beyond which the lines begin.", UINTEGER_SCHEMA)],
            "requestBody": {"required": True, "content": {NDJSON: {"schema": STRING_SCHEMA}}},
        },
    },
    "/-/links/{id}/events": {
        "parameters": [_ID],
        "post": _operation(
            "hear",
            "Say that something has happened in the registry that a link copies",
            {
                "202": {"description": "A link of this id, if there is one, looks at it."},
                "429": {"description": "There are too many at a time."},
            },
            (400, 405, 413, 415, 500),
        )
        | {
            "security": [],
            "requestBody": {
                "required": True,
                "content": {name: {"schema": {}} for name in (CLOUDEVENT_JSON, CLOUDEVENTS_BATCH, "*/*")},
            },
        },
        "options": own_operation(
            "links.consent",
            "Ask whether a link takes events",
            security=[],
            responses={
                "200": {"description": "Yes, if WebHook-Allowed-Origin says so: for the hosts that links hear of."},
                **error_responses((500,), own=True),
            },
        ),
    },
}
