"""OpenAPI of `/-/check`."""

from __future__ import annotations

from typing import Final

from api.openapi.builders import STRING_SCHEMA, Schema, json_result, own_operation, parameter
from api.openapi.problems import error_responses
from domain.formats import COMPATIBILITIES

_REFUSED: Final = (400, 401, 403, 404, 405, 413, 500)
_BOOLEAN: Final[Schema] = {"type": "boolean"}
_TEXTS: Final[Schema] = {"type": "array", "items": STRING_SCHEMA}
_PLACE: Final[Schema] = {
    "pointer": {**STRING_SCHEMA, "description": "A JSON Pointer, in documents that are JSON."},
    "line": {"type": "integer", "minimum": 1, "description": "In documents that are text."},
    "fragment": {**STRING_SCHEMA, "description": "What stands there."},
}
_VIOLATION: Final[Schema] = {"type": "object", "properties": {"text": STRING_SCHEMA, **_PLACE}, "required": ["text"]}
_INCOMPATIBILITY: Final[Schema] = {
    "type": "object",
    "properties": {
        "direction": {"enum": ["backward", "forward"]},
        "rule": {**STRING_SCHEMA, "description": "In the terms of the format."},
        "text": STRING_SCHEMA,
        "version": {"type": "object", "properties": _PLACE, "description": "Where it shows in the document."},
        "ancestor": {
            "type": "object",
            "properties": {"versionid": STRING_SCHEMA, **_PLACE},
            "required": ["versionid"],
            "description": "Where it shows in the Version.",
        },
    },
    "required": ["direction", "rule", "text", "version", "ancestor"],
}
_TOLD: Final[Schema] = {
    "type": "object",
    "properties": {
        "xid": STRING_SCHEMA,
        "format": STRING_SCHEMA,
        "valid": _BOOLEAN,
        "violations": {"type": "array", "items": _VIOLATION},
        "compatibility": {"enum": [None, *COMPATIBILITIES]},
        "against": {**_TEXTS, "description": "The Versions, by id, nearest first."},
        "compatible": {"type": ["boolean", "null"], "description": "Null where nothing could be compared."},
        "reason": {"type": ["string", "null"], "description": "Why nothing could be, although there is a rule."},
        "incompatibilities": {"type": "array", "items": _INCOMPATIBILITY},
    },
}
_TOLD["required"] = list(_TOLD["properties"])


PATHS: Final[dict[str, Schema]] = {
    "/-/check/{path}": {
        "parameters": [
            parameter("path", "An xid without its leading `/`, of a Resource with documents.", place="path"),
            parameter("format", "That of the document, where it is not the Resource's, or there is none yet."),
            parameter("compatibility", "The rule, where it is not the Resource's."),
            parameter("against", "`latest`, `all`, or ids of Versions with commas, where not as the rule says."),
        ],
        "post": own_operation(
            "check",
            "Find out whether a document could be the next Version of a Resource",
            requestBody={"content": {"*/*": {"schema": {}}}, "description": "The document."},
            responses={
                "200": json_result("What was found. Nothing is written.", _TOLD),
                **error_responses(_REFUSED, own=True),
            },
        ),
    },
}
