"""The paths below `/-/`, which no model changes."""

from __future__ import annotations

from typing import Any, Final

from api.openapi.problems import refusals

Schema = dict[str, Any]

_STATUS: Final[Schema] = {
    "type": "object",
    "properties": {
        "status": {"enum": ["ok", "unavailable"]},
        "reason": {"type": "string"},
        "position": {"type": "integer", "description": "Of the last event that answers show."},
        "head": {"type": "integer", "description": "Of the last event of the log."},
    },
    "required": ["status"],
}


def _get(name: str, summary: str, responses: Schema) -> Schema:
    return {
        "get": {
            "operationId": f"own.{name}",
            "summary": summary,
            "tags": ["server"],
            "responses": {**responses, **refusals((405,), own=True)},
        }
    }


def _gives(says: str, media_type: str, schema: Schema) -> Schema:
    link = {"Link": {"$ref": "#/components/headers/Link"}}
    return {"description": says, "headers": link, "content": {media_type: {"schema": schema}}}


OWN_PATHS: Final[dict[str, Schema]] = {
    "/-/livez": _get("livez", "Does the process run?", {"200": _gives("It does.", "application/json", _STATUS)}),
    "/-/readyz": _get(
        "readyz",
        "Does the store answer, and is the read model current?",
        {
            "200": _gives("Both.", "application/json", _STATUS),
            "503": _gives("Not both.", "application/json", _STATUS),
        },
    ),
    "/-/metrics": _get(
        "metrics",
        "Read figures for Prometheus",
        {"200": _gives("They.", "text/plain", {"type": "string"})},
    ),
    "/-/openapi.json": _get(
        "openapi",
        "Read this document",
        {"200": _gives("It.", "application/json", {"type": "object"})},
    ),
    "/-/docs": _get(
        "docs",
        "Read this document as a page",
        {"200": _gives("The page.", "text/html", {"type": "string"})},
    ),
}
