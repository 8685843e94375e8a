"""OpenAPI of the audit trail: `/-/history`, `/-/interactions` and `/-/diff`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from api.audit import diff, history, interactions
from api.audit.representations import IMAGES
from api.audit.request_params import MAX_LIMIT
from api.openapi.builders import STRING_SCHEMA, UINTEGER_SCHEMA, Schema, own_operation, parameter, response_headers
from api.openapi.problems import error_responses

_REFUSED: Final = (400, 401, 403, 404, 405, 412, 500)
_MAYBE: Final[Schema] = {"type": ["string", "null"]}
_MOMENT: Final = "A position of the log, an RFC 3339 time, or the correlation id of an interaction."
_PATH: Final = (
    "An xid without its leading `/`, of an entity or a collection; empty for the registry, `model` and `capabilities` "
    "for those. A Resource's `meta` is part of the Resource."
)


def _object(members: Schema, *optional: str) -> Schema:
    return {"type": "object", "properties": members, "required": [name for name in members if name not in optional]}


def _array(items: Schema) -> Schema:
    return {"type": "array", "items": items}


#: The query parameters: description and schema of each.
_PARAMETERS: Final[dict[str, tuple[str, Schema]]] = {
    "images": (
        "With the attributes before, after, or both: as the API showed them, less absolute URLs.",
        {"enum": ["", *IMAGES, ",".join(IMAGES)]},
    ),
    "below": (
        "Whether what is below the entity counts as well; unless it says otherwise, it does in a difference and for a "
        "collection, and does not in a history.",
        {"enum": ["", "true", "false"]},
    ),
    "order": ("`asc`, the newest last, or `desc`.", {"enum": ["asc", "desc"]}),
    "after": ("Goes on behind a position, in the order asked for.", UINTEGER_SCHEMA),
    "limit": (
        "How many to list at most; a Link leads to the next ones.",
        {**UINTEGER_SCHEMA, "minimum": 1, "maximum": MAX_LIMIT},
    ),
    "from": (f"Only what came after a moment. {_MOMENT}", STRING_SCHEMA),
    "until": (f"Only what had come by a moment. {_MOMENT}", STRING_SCHEMA),
    "to": (f"The moment to compare with, now unless given. {_MOMENT}", STRING_SCHEMA),
    "caller": ("Only what one caller did.", STRING_SCHEMA),
    "format": (
        "Goes before the Accept header. CSV is that of RFC 4180: nothing is done about cells that a spreadsheet would "
        "take for a formula.",
        {"enum": ["json", "ndjson", "csv"]},
    ),
}
_FACTS: Final[Schema] = {
    "time": STRING_SCHEMA,
    "caller": STRING_SCHEMA,
    "command": STRING_SCHEMA,
    "xregcorrelationid": STRING_SCHEMA,
}
_INTERACTION: Final[Schema] = {
    **_FACTS,
    **{"first": UINTEGER_SCHEMA, "last": UINTEGER_SCHEMA},
    **{"registryurl": STRING_SCHEMA, "chain": STRING_SCHEMA, "state": STRING_SCHEMA},
}
_IMAGE: Final[Schema] = {"type": ["object", "null"]}
_REVISION: Final = _object(
    {
        **_FACTS,
        **{
            "position": UINTEGER_SCHEMA,
            "xid": STRING_SCHEMA,
            "type": STRING_SCHEMA,
            "revision": UINTEGER_SCHEMA,
            "epoch": UINTEGER_SCHEMA,
        },
        "action": {"enum": ["created", "updated", "refreshed", "deleted"]},
        "reason": {"enum": ["deleted", "pruned", "forgotten"]},
        "changed": _array(STRING_SCHEMA),
        **dict.fromkeys(IMAGES, _IMAGE),
    },
    "reason",
    *IMAGES,
)
_AT: Final = _object(
    {"position": UINTEGER_SCHEMA, "time": STRING_SCHEMA, "xregcorrelationid": STRING_SCHEMA},
    "time",
    "xregcorrelationid",
)
_DIFFERENCE: Final = _object(
    {
        **{"xid": STRING_SCHEMA, "type": STRING_SCHEMA, "change": {"enum": ["created", "deleted", "changed"]}},
        "attributes": _array(_object({"path": STRING_SCHEMA, "before": {}, "after": {}}, *IMAGES)),
        "document": _object({"changed": {"type": "boolean"}, **dict.fromkeys(IMAGES, _MAYBE)}),
    },
    "document",
)


def _get(path: str, name: str, summary: str, known: Iterable[str], schema: Schema, required: str = "") -> Schema:
    """The path item of a read-only path. known: its query parameters. required: the mandatory one, if any."""
    parameters = [
        parameter(name, says, schema, required=name == required)
        for name, (says, schema) in ((name, _PARAMETERS[name]) for name in known)
    ]
    if found := _IN_PATH.get(path.rpartition("/")[2]):
        parameters.insert(0, parameter(*found, place="path"))
    answers = {"200": _gives(schema), "304": {"description": "The client has it.", "headers": _TAGGED}}
    return {
        "parameters": parameters,
        "get": own_operation(name, summary, responses={**answers, **error_responses(_REFUSED, own=True)}),
    }


def _gives(schema: Schema) -> Schema:
    others = {"application/x-ndjson": {"schema": STRING_SCHEMA}, "text/csv": {"schema": STRING_SCHEMA}}
    content = {"application/json": {"schema": schema}, **others}
    return {"description": "What the log holds of it.", "headers": _TAGGED, "content": content}


_IN_PATH: Final = {
    "{path}": ("path", _PATH),
    "{xregcorrelationid}": ("xregcorrelationid", "The id of an interaction, in any case."),
}
_TAGGED: Final = response_headers("Link", "ETag")
_ROWS: Final[dict[str, tuple[str, str, Iterable[str], Schema, str]]] = {
    "/-/history/{path}": (
        "history",
        "Read every revision of an entity: when it changed, who did it, and what differs",
        history.PARAMETERS,
        _array(_REVISION),
        "",
    ),
    "/-/interactions": (
        "interactions",
        "List the requests that changed something",
        interactions.LIST_PARAMS,
        _array(_object(_INTERACTION)),
        "",
    ),
    "/-/interactions/{xregcorrelationid}": (
        "interaction",
        "Read everything that one request did",
        interactions.ONE_PARAMS,
        _object({**_INTERACTION, "events": _array(_REVISION)}),
        "",
    ),
    "/-/diff/{path}": (
        "diff",
        "Compare two moments of an entity and of what is below it",
        diff.PARAMETERS,
        _object({"xid": STRING_SCHEMA, "from": _AT, "to": _AT, "entities": _array(_DIFFERENCE)}),
        "from",
    ),
}
PATHS: Final[dict[str, Schema]] = {path: _get(path, *row) for path, row in _ROWS.items()}
