"""The paths of ours in `api/routes` that belong to restoring, and what a dry run answers."""

from __future__ import annotations

from typing import Any, Final

from api.feeds.forms import NDJSON
from api.openapi import feeds
from api.openapi.problems import refusals

Schema = dict[str, Any]

#: The header that counts findings.
FOUND: Final = "Annals-Findings"
#: Headers of the answers to writes; both are absent where there is nothing to say.
RECORDED: Final = ("xRegistry-xregcorrelationid", FOUND)
#: The name of the schema of a dry run's answer.
TRIED: Final = "DryRun"
#: The same lines as those of the log.
TRIED_SCHEMA: Final[Schema] = feeds.PATHS["/-/log"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]

_REFUSED: Final = (400, 401, 403, 404, 405, 406, 412, 413, 500, 503)
_TEXT: Final[Schema] = {"type": "string"}
_WHOLE: Final[Schema] = {"type": "integer", "minimum": 0}
_SUMMARY: Final[Schema] = {
    "type": "object",
    "properties": {
        "xid": _TEXT,
        "asof": {
            "type": "object",
            "properties": {"position": _WHOLE, "time": {**_TEXT, "format": "date-time"}, "xregcorrelationid": _TEXT},
            "required": ["position", "time", "xregcorrelationid"],
        },
        **dict.fromkeys(("created", "updated", "deleted"), _WHOLE),
        "position": {**_WHOLE, "description": "Where the log ends now."},
    },
    "required": ["xid", "asof", "created", "updated", "deleted", "position"],
}
_PATH: Final = (
    "An xid without its leading `/`, of an entity, a meta or a collection; empty for the registry, `model` and "
    "`capabilities` for those."
)


def or_tried(answer: Schema | None) -> Schema:
    """The answer with status 200 of a write that may also be a dry run. answer: what it is otherwise, if anything."""
    found = answer or {"description": "What it would append.", "headers": _headers("Link", FOUND)}
    shown = found.get("content", {}).get("application/json")
    lines = {"$ref": f"#/components/schemas/{TRIED}"}
    schema = {"anyOf": [shown["schema"], lines]} if shown else lines
    return {**found, "content": {"application/json": {"schema": schema}, NDJSON: {"schema": _TEXT}}}


def _headers(*names: str) -> Schema:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _parameter(name: str, says: str, schema: Schema, place: str = "query", **more: Any) -> Schema:
    return {"name": name, "in": place, "description": says, "schema": schema, **more}


_INCLUDE: Final = {"type": "array", "items": {"enum": ["model", "capabilities"]}}

PATHS: Final[dict[str, Schema]] = {
    "/-/restore/{path}": {
        "parameters": [
            _parameter("path", _PATH, _TEXT, "path", required=True),
            _parameter(
                "asof",
                "The moment whose end state comes back: a position of the log, an RFC 3339 time, or the correlation id "
                "of an interaction.",
                _TEXT,
                required=True,
            ),
            _parameter("dryrun", "Answers with the events that it would append, and does nothing.", {"const": ""}),
            _parameter(
                "include",
                "What comes back with the registry, where the path is empty.",
                _INCLUDE,
                style="form",
                explode=False,
            ),
        ],
        "post": {
            "operationId": "own.restore",
            "summary": "Bring an entity and all below it back to what they were, as a change of now",
            "tags": ["server"],
            "responses": {
                "200": or_tried(
                    {
                        "description": "How many entities that changed.",
                        "headers": _headers("Link", *RECORDED),
                        "content": {"application/json": {"schema": _SUMMARY}},
                    }
                ),
                **refusals(_REFUSED, own=True),
            },
        },
    }
}
