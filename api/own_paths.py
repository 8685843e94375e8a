"""OpenAPI of the paths that do not depend on the model: those below `/-/`, discovery, and subscriptions."""

from __future__ import annotations

from typing import Final

from api.audit import hash_openapi
from api.audit import openapi as audit
from api.feeds import dry_run_openapi
from api.feeds import openapi as feeds
from api.messaging import findings_openapi
from api.messaging import openapi as messaging
from api.openapi.builders import Schema, response_headers
from api.openapi.builders import own_operation as operation
from api.openapi.problems import error_responses
from api.replication import openapi as replication
from api.subscriptions import openapi as subscriptions
from api.xregistry.checks import openapi as checks
from domain.compat.legacy_apis import LEGACY_APIS

#: Statuses with which these paths refuse a request.
_REFUSED: Final = (401, 403, 404, 405, 500)
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

_LINK: Final = response_headers("Link")
_REGISTRIES: Final[Schema] = {
    "type": "object",
    "properties": {"registries": {"type": "array", "items": {"type": "string", "format": "uri"}}},
    "required": ["registries"],
}


def _get(name: str, summary: str, responses: Schema, own: bool = True) -> Schema:
    """The path item of a read-only path. own: whether it is below `/-/`, where problems have a different schema."""
    return {"get": operation(name, summary, responses={**responses, **error_responses(_REFUSED, own)})}


def _gives(says: str, media_type: str, schema: Schema) -> Schema:
    return {"description": says, "headers": _LINK, "content": {media_type: {"schema": schema}}}


OWN_PATH_ITEMS: Final[dict[str, Schema]] = {
    **feeds.PATHS,
    **audit.PATHS,
    **hash_openapi.PATHS,
    **dry_run_openapi.PATHS,
    **replication.PATHS,
    **findings_openapi.PATHS,
    **messaging.PATHS,
    **checks.PATHS,
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
    "/-/openapi/{name}.json": {
        "parameters": [
            {
                "name": "name",
                "in": "path",
                "required": True,
                "schema": {"enum": [family.name for family in LEGACY_APIS]},
            }
        ],
        **_get(
            "openapi-of-older-apis",
            "Read the document of one of the two older APIs",
            {"200": _gives("It.", "application/json", {"type": "object"})},
        ),
    },
    "/-/docs": _get(
        "docs",
        "Read this document as a page",
        {"200": _gives("The page.", "text/html", {"type": "string"})},
    ),
    "/-/s/{token}": {
        "parameters": [{"name": "token", "in": "path", "required": True, "schema": {"type": "string"}}],
        **_get(
            "short",
            "Follow the short URL of an entity",
            {"308": {"description": "Where the entity is.", "headers": response_headers("Location", "Link")}},
        ),
    },
    **{
        path: _get(
            "discovery" if path.count("/") == 1 else "discovery-of-the-host",
            "Discover registries",
            {"200": _gives("Their URLs.", "application/json", _REGISTRIES)},
            own=False,
        )
        for path in ("/.xregistry", "/.well-known/xregistry")
    },
    **subscriptions.PATHS,
}
