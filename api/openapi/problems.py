"""OpenAPI of problems: one schema, and a response for each status that names its error types."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from http import HTTPStatus
from typing import Final

from annals.api.openapi.builders import OTHER_MEMBERS, Schema
from annals.domain.compat.errors import Conflict, InvalidDefinition, NoSuchVersion
from annals.domain.errors.http_errors import HttpProblem
from annals.domain.errors.problems import PROBLEM_TYPES, Problem


def _concrete_types(kind: type[Problem]) -> Iterator[type[Problem]]:
    """The concrete problem types below a type, without their abstract bases."""
    for subclass in kind.__subclasses__():
        yield from _concrete_types(subclass) if subclass.__subclasses__() else (subclass,)


#: Every error type: those of the specifications, and those of this program.
ALL_PROBLEM_TYPES: Final[tuple[type[Problem], ...]] = tuple(
    dict.fromkeys((*PROBLEM_TYPES.values(), *_concrete_types(HttpProblem), Conflict, InvalidDefinition, NoSuchVersion))
)
PROBLEM_NAME: Final = "Problem"
#: The schema name of problems below `/-/`.
OWN_PROBLEM_NAME: Final = "OwnProblem"

#: Headers that a status requires.
_REQUIRED_HEADERS: Final[dict[int, str]] = {
    HTTPStatus.UNAUTHORIZED: "WWW-Authenticate",
    HTTPStatus.METHOD_NOT_ALLOWED: "Allow",
}
#: Statuses with which the registry's own paths never refuse a request.
_STATUSES_OF_OWN_PATHS: Final = frozenset((HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.BAD_GATEWAY))
_STRING: Final[Schema] = {"type": "string"}
_MEMBERS: Final[dict[str, Schema]] = {
    "type": {"type": "string", "format": "uri", "description": "A URL that ends with `#` and the name of the type."},
    "title": _STRING,
    "subject": {"type": "string", "description": "The object of the error: an xid, or the path or URL of the request."},
    "args": {"type": "object", "additionalProperties": _STRING},
    "detail": _STRING,
    "instance": _STRING,
    "source": _STRING,
    "status": {"type": "integer", "description": "The status of the response; absent at paths of the specification."},
}


def problem_schemas() -> dict[str, Schema]:
    """The schemas of problems: of those of the specification, and of those below `/-/`."""
    return {PROBLEM_NAME: problem_schema(), OWN_PROBLEM_NAME: problem_schema("status")}


def problem_schema(*required: str) -> Schema:
    """The schema of a problem. required: members that it has in addition to those of every problem.

    All error types share it, because generators make a class of each schema, and few can read a choice among eighty.
    """
    names = ["type", "title", *required]
    return {"type": "object", "properties": _MEMBERS, "additionalProperties": OTHER_MEMBERS, "required": names}


def problem_responses() -> dict[str, Schema]:
    """The error responses of all statuses, by component name."""
    media_types = {PROBLEM_NAME: "application/json", OWN_PROBLEM_NAME: "application/problem+json"}
    return {
        f"{name}-{status}": problem_response(status, media_type, _schema_reference(name), "Link")
        for name, media_type in media_types.items()
        for status in problem_statuses()
    }


def problem_response(status: int, media_type: str, schema: Schema, *headers: str) -> Schema:
    """The response with a problem. headers: names of components that it has in any case."""
    given: Schema = {name: {"$ref": f"#/components/headers/{name}"} for name in headers}
    if status in _REQUIRED_HEADERS:
        given[_REQUIRED_HEADERS[status]] = {"required": True, "schema": _STRING}
    return {"description": _description(status), "headers": given, "content": {media_type: {"schema": schema}}}


def _description(status: int) -> str:
    """The phrase of a status, and the names of its error types."""
    names = sorted(kind.name for kind in ALL_PROBLEM_TYPES if kind.status == status)
    return f"{HTTPStatus(status).phrase}: {', '.join(names)}."


def problem_statuses() -> list[int]:
    """The statuses of all error types."""
    return sorted({kind.status for kind in ALL_PROBLEM_TYPES})


def error_responses() -> dict[str, Schema]:
    """The error responses of an operation at one of the registry's paths."""
    return error_references(
        PROBLEM_NAME, (status for status in problem_statuses() if status not in _STATUSES_OF_OWN_PATHS)
    )


def error_references(problems: str, statuses: Iterable[int]) -> dict[str, Schema]:
    """References to error responses. problems: the prefix of their names."""
    return {str(status): {"$ref": f"#/components/responses/{problems}-{status}"} for status in statuses}


def _schema_reference(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}
