"""OpenAPI of `/-/resolved`, `/-/match` and `/-/import`."""

from __future__ import annotations

from typing import Final

from api.feeds.dry_run_openapi import or_dry_run
from api.openapi.builders import (
    STRING_SCHEMA,
    WRITE_HEADERS,
    Schema,
    json_content,
    json_result,
    own_operation,
    parameter,
    response_headers,
)
from api.openapi.problems import error_responses
from domain.messaging.rc2 import DIALECTS
from domain.messaging.resolve import UnresolvedReason

_OBJECT: Final[Schema] = {"type": "object"}
_READ: Final = (400, 401, 403, 404, 405, 412, 500)
_ASKED: Final = (400, 401, 403, 404, 405, 413, 500)
_WRITTEN: Final = (400, 401, 403, 404, 405, 406, 413, 500, 503)

_UNRESOLVED: Final[Schema] = {
    "type": "object",
    "properties": {"uri": STRING_SCHEMA, "reason": {"enum": [reason.value for reason in UnresolvedReason]}},
    "required": ["uri", "reason"],
}
_RESOLVED: Final[Schema] = {
    "type": "object",
    "properties": {
        "xid": STRING_SCHEMA,
        "message": {**_OBJECT, "description": "The message with what its bases give it."},
        "bases": {
            "type": "array",
            "items": STRING_SCHEMA,
            "description": "Versions that it was made of, nearest first.",
        },
        "implied": {
            "type": "array",
            "items": STRING_SCHEMA,
            "description": "JSON pointers to values that nobody wrote.",
        },
        "unresolved": _UNRESOLVED,
    },
    "required": ["xid", "message", "bases"],
}
_EFFECTIVE: Final[Schema] = {
    "type": "object",
    "properties": {
        "xid": STRING_SCHEMA,
        "messages": {"type": "array", "items": _RESOLVED},
        "unresolved": {"type": "array", "items": _UNRESOLVED},
    },
    "required": ["xid", "messages", "unresolved"],
}
_MATCHES: Final[Schema] = {
    "type": "object",
    "properties": {
        "matches": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "xid": STRING_SCHEMA,
                    "bindings": {"type": "object", "additionalProperties": STRING_SCHEMA},
                    "parts": {"type": "array", "items": {"enum": ["envelope", "protocol"]}},
                },
                "required": ["xid", "bindings", "parts"],
            },
        }
    },
    "required": ["matches"],
}
_MESSAGE: Final[Schema] = {
    "description": "A structured CloudEvent, or the parts of a message in the words of a definition.",
    "type": "object",
    "anyOf": [
        {"properties": {"specversion": STRING_SCHEMA}, "required": ["specversion"]},
        {"properties": {"envelope": STRING_SCHEMA, "envelopemetadata": _OBJECT}, "required": ["envelope"]},
        {"properties": {"protocol": STRING_SCHEMA, "protocoloptions": _OBJECT}, "required": ["protocol"]},
    ],
}
_CHANGE: Final[Schema] = {
    "type": "object",
    "properties": {
        "path": {
            **STRING_SCHEMA,
            "description": "JSON pointer to the object that was changed, in the document as it came.",
        },
        "from": {**_OBJECT, "description": "The members that it had."},
        "to": {**_OBJECT, "description": "Those in their place; none where they are left out."},
        "why": STRING_SCHEMA,
    },
    "required": ["path", "from", "to", "why"],
}
_IMPORTED: Final[Schema] = {
    "type": "object",
    "properties": {
        "result": {**_OBJECT, "description": "What `POST /` answers with: the Groups that were written, by type."},
        "report": {"type": "array", "items": _CHANGE},
    },
    "required": ["result", "report"],
}


def _takes(schema: Schema) -> Schema:
    return {"required": True, **json_content(schema)}


PATHS: Final[dict[str, Schema]] = {
    "/-/resolved/{path}": {
        "parameters": [
            parameter(
                "path",
                "An xid without its leading `/`: of a message or a Version of one, of an endpoint or a message group.",
                STRING_SCHEMA,
                "path",
            ),
            parameter("asof", "A position of the log, an RFC 3339 time, or a correlation id.", STRING_SCHEMA),
        ],
        "get": own_operation(
            "resolved",
            "Read a message with what its base messages give it, or all messages of an endpoint or a group",
            responses={
                "200": json_result("The message, or the messages.", {"anyOf": [_RESOLVED, _EFFECTIVE]}, "ETag"),
                "304": {"description": "The client has it.", "headers": response_headers("Link", "ETag")},
                **error_responses(_READ, own=True),
            },
        ),
    },
    "/-/match/{path}": {
        "parameters": [
            parameter(
                "path",
                "An xid without its leading `/`, of an endpoint or a message group.",
                STRING_SCHEMA,
                "path",
            )
        ],
        "post": own_operation(
            "match",
            "Find out which message definitions a message meets",
            requestBody=_takes({"anyOf": [_MESSAGE, {"type": "array", "items": _MESSAGE}]}),
            responses={
                "200": json_result(
                    "The definitions that it meets; of a batch, those of each message.",
                    {"anyOf": [_MATCHES, {"type": "array", "items": _MATCHES}]},
                ),
                **error_responses(_ASKED, own=True),
            },
        ),
    },
    "/-/import": {
        "parameters": [
            parameter("dialect", "The form that the document is in.", {"enum": list(DIALECTS)}, required=True),
            parameter("dryrun", "Answers with the events that it would append, and does nothing.", {"const": ""}),
        ],
        "post": own_operation(
            "import",
            "Take in a document in an older form, as one change of now",
            requestBody=_takes(_OBJECT),
            responses={
                "200": or_dry_run(
                    json_result("What was written, and what was changed before.", _IMPORTED, *WRITE_HEADERS)
                ),
                **error_responses(_WRITTEN, own=True),
            },
        ),
    },
}
