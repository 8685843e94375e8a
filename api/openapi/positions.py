"""Adds the header with the position to responses, and the parameters that wait for a position to reads."""

from __future__ import annotations

from typing import Any, Final

from annals.api.openapi.builders import Schema
from annals.api.registry.waitfor import TIMEOUT, WAITFOR
from annals.projections.log.reader import MAX_POSITION

_POSITION_NAME: Final = "Annals-Position"
#: The Parameter Objects, by component name.
WAIT_PARAMETERS: Final[dict[str, Schema]] = {
    WAITFOR: {
        "name": WAITFOR,
        "in": "query",
        "description": (
            f"Waits until this server has this position of the log, such as the `{_POSITION_NAME}` of an earlier answer"
            " of any server on the same database."
        ),
        "schema": {"type": "integer", "format": "int64", "minimum": 0, "maximum": MAX_POSITION},
    },
    TIMEOUT: {
        "name": TIMEOUT,
        "in": "query",
        "description": f"The maximum time that `{WAITFOR}` waits, in seconds, up to a limit of the server.",
        "schema": {"type": "number", "minimum": 0},
    },
}
#: The statuses of a read whose position is invalid, and of one whose wait ends before the position is reached.
_REFUSED: Final = ("400", "503")


def add_positions_to_paths(paths: dict[str, Schema]) -> dict[str, Schema]:
    """The same paths, with the header in all responses, and with the parameters in all reads but probes."""
    return {
        path: {key: _add_to_operation(key, row) if "responses" in row else row for key, row in item.items()}
        for path, item in paths.items()
    }


def add_position_headers(responses: dict[str, Schema]) -> dict[str, Schema]:
    """The same responses, by status or name, with the header."""
    return {name: row if "$ref" in row else _add_to_response(row) for name, row in responses.items()}


def _add_to_operation(method: str, row: Any) -> Any:
    responses = add_position_headers(row["responses"])
    is_probe = "content" in responses.get("503", {})
    if method != "get" or is_probe:
        return {**row, "responses": responses}
    references = [{"$ref": f"#/components/parameters/{name}"} for name in WAIT_PARAMETERS]
    refusals = [
        each["$ref"].rpartition("-")[0] for status, each in responses.items() if status >= "400" and "$ref" in each
    ]
    refused = {status: {"$ref": f"{refusals[0]}-{status}"} for status in _REFUSED if refusals}
    return {
        **row,
        "parameters": [*row.get("parameters", ()), *references],
        "responses": {**refused, **responses},
    }


def _add_to_response(row: Schema) -> Schema:
    reference = {"$ref": f"#/components/headers/{_POSITION_NAME}"}
    return {**row, "headers": {**row.get("headers", {}), _POSITION_NAME: reference}}
