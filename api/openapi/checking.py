"""The path of ours in `api/routes` that checks a document without writing it."""

from __future__ import annotations

from typing import Any, Final

from api.openapi.problems import refusals
from domain.formats import COMPATIBILITIES

Schema = dict[str, Any]

_REFUSED: Final = (400, 401, 403, 404, 405, 413, 500)
_TEXT: Final[Schema] = {"type": "string"}
_BOOLEAN: Final[Schema] = {"type": "boolean"}
_TEXTS: Final[Schema] = {"type": "array", "items": _TEXT}
_PLACE: Final[Schema] = {
    "pointer": {**_TEXT, "description": "A JSON Pointer, in documents that are JSON."},
    "line": {"type": "integer", "minimum": 1, "description": "In documents that are text."},
    "fragment": {**_TEXT, "description": "What stands there."},
}
_VIOLATION: Final[Schema] = {"type": "object", "properties": {"text": _TEXT, **_PLACE}, "required": ["text"]}
_INCOMPATIBILITY: Final[Schema] = {
    "type": "object",
    "properties": {
        "direction": {"enum": ["backward", "forward"]},
        "rule": {**_TEXT, "description": "In the terms of the format."},
        "text": _TEXT,
        "version": {"type": "object", "properties": _PLACE, "description": "Where it shows in the document."},
        "ancestor": {
            "type": "object",
            "properties": {"versionid": _TEXT, **_PLACE},
            "required": ["versionid"],
            "description": "Where it shows in the Version.",
        },
    },
    "required": ["direction", "rule", "text", "version", "ancestor"],
}
_TOLD: Final[Schema] = {
    "type": "object",
    "properties": {
        "xid": _TEXT,
        "format": _TEXT,
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


def _parameter(name: str, says: str, place: str = "query", **more: Any) -> Schema:
    return {"name": name, "in": place, "description": says, "schema": _TEXT, **more}


PATHS: Final[dict[str, Schema]] = {
    "/-/check/{path}": {
        "parameters": [
            _parameter("path", "An xid without its leading `/`, of a Resource with documents.", "path", required=True),
            _parameter("format", "That of the document, where it is not the Resource's, or there is none yet."),
            _parameter("compatibility", "The rule, where it is not the Resource's."),
            _parameter("against", "`latest`, `all`, or ids of Versions with commas, where not as the rule says."),
        ],
        "post": {
            "operationId": "own.check",
            "summary": "Find out whether a document could be the next Version of a Resource",
            "tags": ["server"],
            "requestBody": {"content": {"*/*": {"schema": {}}}, "description": "The document."},
            "responses": {
                "200": {
                    "description": "What was found. Nothing is written.",
                    "headers": {"Link": {"$ref": "#/components/headers/Link"}},
                    "content": {"application/json": {"schema": _TOLD}},
                },
                **refusals(_REFUSED, own=True),
            },
        },
    },
}
