"""The paths of ours in `api/routes` that belong to restoring, and what a dry run answers."""

from __future__ import annotations

from typing import Final

from api.feeds.forms import NDJSON
from api.openapi import feeds
from api.openapi.parts import FOUND, RECORDED, TEXT, WHOLE, Schema, gives, headers, own, parameter
from api.openapi.problems import refusals

#: The name of the schema of a dry run's answer.
TRIED: Final = "DryRun"
#: The same lines as those of the log.
TRIED_SCHEMA: Final[Schema] = feeds.PATHS["/-/log"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]

_REFUSED: Final = (400, 401, 403, 404, 405, 406, 412, 413, 500, 503)
_SUMMARY: Final[Schema] = {
    "type": "object",
    "properties": {
        "xid": TEXT,
        "asof": {
            "type": "object",
            "properties": {"position": WHOLE, "time": {**TEXT, "format": "date-time"}, "xregcorrelationid": TEXT},
            "required": ["position", "time", "xregcorrelationid"],
        },
        **dict.fromkeys(("created", "updated", "deleted"), WHOLE),
        "position": {**WHOLE, "description": "Where the log ends now."},
    },
    "required": ["xid", "asof", "created", "updated", "deleted", "position"],
}
_PATH: Final = (
    "An xid without its leading `/`, of an entity, a meta or a collection; empty for the registry, `model` and "
    "`capabilities` for those."
)


def or_tried(answer: Schema | None) -> Schema:
    """The answer with status 200 of a write that may also be a dry run. answer: what it is otherwise, if anything."""
    found = answer or {"description": "What it would append.", "headers": headers("Link", FOUND)}
    shown = found.get("content", {}).get("application/json")
    lines = {"$ref": f"#/components/schemas/{TRIED}"}
    schema = {"anyOf": [shown["schema"], lines]} if shown else lines
    return {**found, "content": {"application/json": {"schema": schema}, NDJSON: {"schema": TEXT}}}


_INCLUDE: Final = {"type": "array", "items": {"enum": ["model", "capabilities"]}}

PATHS: Final[dict[str, Schema]] = {
    "/-/restore/{path}": {
        "parameters": [
            parameter("path", _PATH, TEXT, "path"),
            parameter(
                "asof",
                "The moment whose end state comes back: a position of the log, an RFC 3339 time, or the correlation id "
                "of an interaction.",
                TEXT,
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
        "post": own(
            "restore",
            "Bring an entity and all below it back to what they were, as a change of now",
            responses={
                "200": or_tried(gives("How many entities that changed.", _SUMMARY, *RECORDED)),
                **refusals(_REFUSED, own=True),
            },
        ),
    }
}
