"""OpenAPI of `/-/hash`."""

from __future__ import annotations

from typing import Final

from api.audit.hashes import MAX_PARTS
from api.openapi.builders import STRING_SCHEMA, UINTEGER_SCHEMA, Schema, own_operation, parameter, response_headers
from api.openapi.problems import error_responses

_REFUSED: Final = (400, 401, 403, 404, 405, 412, 500)
_PATH: Final = "An xid without its leading `/`, of an entity or a collection; empty for the registry."
_ASOF: Final = "A position of the log, an RFC 3339 time, or the correlation id of an interaction; now unless given."
_AT: Final = (
    "An xid that a part is to begin with, whether it is there or not; with a slash at its end, what comes after it in "
    "the tree. In the order of the tree; there is one part more than places."
)
_CUT: Final = "Into how many parts of nearly the same size to cut; fewer where fewer entities live. Not with `at`."
_HEX: Final[Schema] = {**STRING_SCHEMA, "pattern": "^[0-9a-f]{64}$"}
_PART: Final[Schema] = {
    "from": {**STRING_SCHEMA, "description": "The xid of the first entity in the order of the tree."},
    "to": {**STRING_SCHEMA, "description": "The xid of the last one."},
    "count": UINTEGER_SCHEMA,
    "hash": {**_HEX, "description": "The sum, modulo 2^256, of the hashes of the entities; of one, its own."},
}
_MOMENT: Final[Schema] = {
    "type": "object",
    "properties": {"position": UINTEGER_SCHEMA, "time": STRING_SCHEMA, "xregcorrelationid": STRING_SCHEMA},
    "required": ["position"],
}
_PARTS: Final[Schema] = {
    "type": "array",
    "items": {"type": "object", "properties": _PART, "required": ["count", "hash"]},
}
_ANSWER: Final[Schema] = {
    "type": "object",
    "properties": {"xid": STRING_SCHEMA, "asof": _MOMENT, **_PART, "parts": _PARTS},
    "required": ["xid", "asof", "count", "hash", "parts"],
}
_TAGGED: Final = response_headers("Link", "ETag")
_GIVES: Final[Schema] = {
    "description": "The hash of all, and of each part.",
    "headers": _TAGGED,
    "content": {
        "application/json": {"schema": _ANSWER},
        "application/x-ndjson": {"schema": STRING_SCHEMA},
        "text/csv": {"schema": STRING_SCHEMA},
    },
}

PATHS: Final[dict[str, Schema]] = {
    "/-/hash/{path}": {
        "parameters": [
            parameter("path", _PATH, STRING_SCHEMA, "path"),
            parameter("asof", _ASOF),
            parameter("from", "The xid of the first entity that counts, at or below the path."),
            parameter("to", "The xid of the last entity that counts."),
            parameter("parts", _CUT, {"type": "integer", "minimum": 2, "maximum": MAX_PARTS}),
            parameter("at", _AT, {"type": "array", "items": STRING_SCHEMA, "maxItems": MAX_PARTS - 1}),
            parameter("format", "Goes before the Accept header.", {"enum": ["json", "ndjson", "csv"]}),
        ],
        "get": own_operation(
            "hash",
            "Read hashes of an entity or a collection and all below it, to compare with another registry's",
            responses={
                "200": _GIVES,
                "304": {"description": "The client has it.", "headers": _TAGGED},
                **error_responses(_REFUSED, own=True),
            },
        ),
    }
}
