"""OpenAPI of `/-/findings`."""

from __future__ import annotations

from typing import Final

from api.audit.request_params import MAX_LIMIT
from api.openapi.builders import STRING_SCHEMA, Schema, own_operation, parameter, response_headers
from api.openapi.problems import error_responses

_REFUSED: Final = (400, 401, 403, 404, 405, 412, 500)
_MEMBERS: Final[Schema] = {
    "level": {"enum": ["L2", "L3"], "description": "A rule of the specification, or advice."},
    "rule": {**STRING_SCHEMA, "description": "The id of the rule."},
    "xid": STRING_SCHEMA,
    "path": {**STRING_SCHEMA, "description": "A JSON Pointer into the entity."},
    "text": STRING_SCHEMA,
}
_FINDING: Final[Schema] = {"type": "object", "properties": _MEMBERS, "required": list(_MEMBERS)}
_LISTED: Final[Schema] = {
    "type": "object",
    "properties": {"xid": STRING_SCHEMA, "findings": {"type": "array", "items": _FINDING}},
    "required": ["xid", "findings"],
}
#: The query parameters: description and schema of each.
_PARAMETERS: Final[dict[str, tuple[str, Schema]]] = {
    "level": ("Only one level.", {"enum": ["L2", "L3"]}),
    "rule": ("Only some rules, with commas.", STRING_SCHEMA),
    "after": ("Goes on behind a finding: what a Link to the next page has.", STRING_SCHEMA),
    "limit": (
        "How many to list at most; a Link leads to the next ones.",
        {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT},
    ),
    "asof": ("The moment to look at: a position of the log, an RFC 3339 time, or a correlation id.", STRING_SCHEMA),
    "format": ("Goes before the Accept header.", {"enum": ["json", "ndjson", "csv"]}),
}
_PATH: Final = "An xid without its leading `/`, of an entity or a collection; empty for the registry."
_TAGGED: Final = response_headers("Link", "ETag")
_CONTENT: Final[Schema] = {
    "application/json": {"schema": _LISTED},
    "application/x-ndjson": {"schema": STRING_SCHEMA},
    "text/csv": {"schema": STRING_SCHEMA},
}

PATHS: Final[dict[str, Schema]] = {
    "/-/findings/{path}": {
        "parameters": [
            parameter("path", _PATH, place="path"),
            *(parameter(name, says, schema) for name, (says, schema) in _PARAMETERS.items()),
        ],
        "get": own_operation(
            "findings",
            "List what the rules of endpoints and messages find in an entity and in what is below it",
            responses={
                "200": {
                    "description": "The findings, in the order of the tree.",
                    "headers": _TAGGED,
                    "content": _CONTENT,
                },
                "304": {"description": "The client has it.", "headers": _TAGGED},
                **error_responses(_REFUSED, own=True),
            },
        ),
    }
}
