"""The path of ours for hashes of parts of the tree."""

from __future__ import annotations

from typing import Final

from api.audit.hashes import MOST
from api.openapi.parts import TEXT, WHOLE, Schema, headers, own, parameter
from api.openapi.problems import refusals

_REFUSED: Final = (400, 401, 403, 404, 405, 412, 500)
_PATH: Final = "An xid without its leading `/`, of an entity or a collection; empty for the registry."
_ASOF: Final = "A position of the log, an RFC 3339 time, or the correlation id of an interaction; now unless given."
_AT: Final = (
    "An xid that a part is to begin with, whether it is there or not; with a slash at its end, what comes after it in "
    "the tree. In the order of the tree; there is one part more than places."
)
_CUT: Final = "Into how many parts of nearly the same size to cut; fewer where fewer entities live. Not with `at`."
_HEX: Final[Schema] = {**TEXT, "pattern": "^[0-9a-f]{64}$"}
_PART: Final[Schema] = {
    "from": {**TEXT, "description": "The xid of the first entity in the order of the tree."},
    "to": {**TEXT, "description": "The xid of the last one."},
    "count": WHOLE,
    "hash": {**_HEX, "description": "The sum, modulo 2^256, of the hashes of the entities; of one, its own."},
}
_MOMENT: Final[Schema] = {
    "type": "object",
    "properties": {"position": WHOLE, "time": TEXT, "xregcorrelationid": TEXT},
    "required": ["position"],
}
_PARTS: Final[Schema] = {
    "type": "array",
    "items": {"type": "object", "properties": _PART, "required": ["count", "hash"]},
}
_ANSWER: Final[Schema] = {
    "type": "object",
    "properties": {"xid": TEXT, "asof": _MOMENT, **_PART, "parts": _PARTS},
    "required": ["xid", "asof", "count", "hash", "parts"],
}
_TAGGED: Final = headers("Link", "ETag")
_GIVES: Final[Schema] = {
    "description": "The hash of all, and of each part.",
    "headers": _TAGGED,
    "content": {
        "application/json": {"schema": _ANSWER},
        "application/x-ndjson": {"schema": TEXT},
        "text/csv": {"schema": TEXT},
    },
}

PATHS: Final[dict[str, Schema]] = {
    "/-/hash/{path}": {
        "parameters": [
            parameter("path", _PATH, TEXT, "path"),
            parameter("asof", _ASOF),
            parameter("from", "The xid of the first entity that counts, at or below the path."),
            parameter("to", "The xid of the last entity that counts."),
            parameter("parts", _CUT, {"type": "integer", "minimum": 2, "maximum": MOST}),
            parameter("at", _AT, {"type": "array", "items": TEXT, "maxItems": MOST - 1}),
            parameter("format", "Goes before the Accept header.", {"enum": ["json", "ndjson", "csv"]}),
        ],
        "get": own(
            "hash",
            "Read hashes of an entity or a collection and all below it, to compare with another registry's",
            responses={
                "200": _GIVES,
                "304": {"description": "The client has it.", "headers": _TAGGED},
                **refusals(_REFUSED, own=True),
            },
        ),
    }
}
