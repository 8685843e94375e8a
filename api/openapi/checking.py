"""The path of ours in `api/routes` that checks a document without writing it."""

from __future__ import annotations

from typing import Final

from api.openapi.parts import TEXT, Schema, gives, own, parameter
from api.openapi.problems import refusals
from domain.formats import COMPATIBILITIES

_REFUSED: Final = (400, 401, 403, 404, 405, 413, 500)
_BOOLEAN: Final[Schema] = {"type": "boolean"}
_TEXTS: Final[Schema] = {"type": "array", "items": TEXT}
_PLACE: Final[Schema] = {
    "pointer": {**TEXT, "description": "A JSON Pointer, in documents that are JSON."},
    "line": {"type": "integer", "minimum": 1, "description": "In documents that are text."},
    "fragment": {**TEXT, "description": "What stands there."},
}
_VIOLATION: Final[Schema] = {"type": "object", "properties": {"text": TEXT, **_PLACE}, "required": ["text"]}
_INCOMPATIBILITY: Final[Schema] = {
    "type": "object",
    "properties": {
        "direction": {"enum": ["backward", "forward"]},
        "rule": {**TEXT, "description": "In the terms of the format."},
        "text": TEXT,
        "version": {"type": "object", "properties": _PLACE, "description": "Where it shows in the document."},
        "ancestor": {
            "type": "object",
            "properties": {"versionid": TEXT, **_PLACE},
            "required": ["versionid"],
            "description": "Where it shows in the Version.",
        },
    },
    "required": ["direction", "rule", "text", "version", "ancestor"],
}
_TOLD: Final[Schema] = {
    "type": "object",
    "properties": {
        "xid": TEXT,
        "format": TEXT,
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
        "post": own(
            "check",
            "Find out whether a document could be the next Version of a Resource",
            requestBody={"content": {"*/*": {"schema": {}}}, "description": "The document."},
            responses={
                "200": gives("What was found. Nothing is written.", _TOLD),
                **refusals(_REFUSED, own=True),
            },
        ),
    },
}
