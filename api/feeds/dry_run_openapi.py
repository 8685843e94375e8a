"""OpenAPI of `/-/restore`, and of the response to a dry run."""

from __future__ import annotations

from typing import Final

from api.feeds import openapi
from api.feeds.formats import NDJSON
from api.openapi.builders import (
    FINDINGS_NAME,
    STRING_SCHEMA,
    UINTEGER_SCHEMA,
    WRITE_HEADERS,
    Schema,
    json_result,
    own_operation,
    parameter,
    response_headers,
)
from api.openapi.problems import error_responses

#: The schema name of a dry run's response.
DRY_RUN: Final = "DryRun"
#: The lines are the same as those of `/-/log`.
DRY_RUN_SCHEMA: Final[Schema] = openapi.PATHS["/-/log"]["get"]["responses"]["200"]["content"]["application/json"][
    "schema"
]

_REFUSED: Final = (400, 401, 403, 404, 405, 406, 412, 413, 500, 503)
_SUMMARY: Final[Schema] = {
    "type": "object",
    "properties": {
        "xid": STRING_SCHEMA,
        "asof": {
            "type": "object",
            "properties": {
                "position": UINTEGER_SCHEMA,
                "time": {**STRING_SCHEMA, "format": "date-time"},
                "xregcorrelationid": STRING_SCHEMA,
            },
            "required": ["position", "time", "xregcorrelationid"],
        },
        **dict.fromkeys(("created", "updated", "deleted"), UINTEGER_SCHEMA),
        "position": {**UINTEGER_SCHEMA, "description": "Where the log ends now."},
    },
    "required": ["xid", "asof", "created", "updated", "deleted", "position"],
}
_PATH: Final = (
    "An xid without its leading `/`, of an entity, a meta or a collection; empty for the registry, `model` and "
    "`capabilities` for those."
)


def or_dry_run(answer: Schema | None) -> Schema:
    """The 200 response of a write that may also be a dry run.

    answer: the response of the write itself; None if it has no 200 response.
    """
    found = answer or {"description": "What it would append.", "headers": response_headers("Link", FINDINGS_NAME)}
    shown = found.get("content", {}).get("application/json")
    lines = {"$ref": f"#/components/schemas/{DRY_RUN}"}
    schema = {"anyOf": [shown["schema"], lines]} if shown else lines
    return {**found, "content": {"application/json": {"schema": schema}, NDJSON: {"schema": STRING_SCHEMA}}}


_INCLUDE: Final = {"type": "array", "items": {"enum": ["model", "capabilities"]}}

PATHS: Final[dict[str, Schema]] = {
    "/-/restore/{path}": {
        "parameters": [
            parameter("path", _PATH, STRING_SCHEMA, "path"),
            parameter(
                "asof",
                "The moment whose end state comes back: a position of the log, an RFC 3339 time, or the correlation id "
                "of an interaction.",
                STRING_SCHEMA,
                required=True,
            ),
            parameter("dryrun", "Answers with the events that it would append, and does nothing.", {"const": ""}),
            parameter(
                "include",
                "What comes back with the registry, where the path is empty.",
                _INCLUDE,
                style="form",
                explode=False,
            ),
        ],
        "post": own_operation(
            "restore",
            "Bring an entity and all below it back to what they were, as a change of now",
            responses={
                "200": or_dry_run(json_result("How many entities that changed.", _SUMMARY, *WRITE_HEADERS)),
                **error_responses(_REFUSED, own=True),
            },
        ),
    }
}
