"""OpenAPI of problems: a schema for each error type, a response for each status."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from http import HTTPStatus
from typing import Any, Final

from annals.domain.compat.errors import Conflict, InvalidDefinition, NoSuchVersion
from annals.domain.errors.http_errors import HttpProblem
from annals.domain.errors.problems import NO_SUBJECT, PROBLEM_TYPES, Problem

Schema = dict[str, Any]


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
    "type": {"type": "string", "format": "uri"},
    "title": _STRING,
    "subject": {"type": "string", "description": "The object of the error: an xid, or the path or URL of the request."},
    "args": {"type": "object", "additionalProperties": _STRING},
    "detail": _STRING,
    "instance": _STRING,
    "source": _STRING,
}


def problem_schemas() -> dict[str, Schema]:
    """The schemas of all error types, and of their common members."""
    problem_schema: Schema = {"type": "object", "properties": _MEMBERS, "required": ["type", "title"]}
    status: Schema = {"properties": {"status": {"type": "integer"}}, "required": ["status"]}
    own_problem_schema: Schema = {"allOf": [_schema_reference(PROBLEM_NAME), status]}
    return {
        PROBLEM_NAME: problem_schema,
        OWN_PROBLEM_NAME: own_problem_schema,
        **{_schema_name(kind): _problem_schema(kind) for kind in ALL_PROBLEM_TYPES},
    }


def problem_responses() -> dict[str, Schema]:
    """The error responses of all statuses, by component name."""
    statuses, problem_json = problem_statuses(), "application/problem+json"
    own = {
        status: problem_response(status, problem_json, _schema_reference(OWN_PROBLEM_NAME), "Link")
        for status in statuses
    }
    return {
        **{f"{PROBLEM_NAME}-{status}": _error_response(status) for status in statuses},
        **{f"{OWN_PROBLEM_NAME}-{status}": response for status, response in own.items()},
    }


def problem_response(status: int, media_type: str, schema: Schema, *headers: str) -> Schema:
    """The response with a problem. headers: names of components that it has in any case."""
    given: Schema = {name: {"$ref": f"#/components/headers/{name}"} for name in headers}
    if status in _REQUIRED_HEADERS:
        given[_REQUIRED_HEADERS[status]] = {"required": True, "schema": _STRING}
    return {"description": HTTPStatus(status).phrase, "headers": given, "content": {media_type: {"schema": schema}}}


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


def _problem_schema(kind: type[Problem]) -> Schema:
    required = ["args"] if kind.placeholders() else []
    if kind.fixed_subject != NO_SUBJECT:
        required.append("subject")
    properties: dict[str, Schema] = {"type": _type_schema(kind)}
    if kind.placeholders():
        properties["args"] = {"required": sorted(kind.placeholders())}
    return {
        "title": kind.name,
        "description": kind.title,
        "allOf": [_schema_reference(PROBLEM_NAME), {"properties": properties, "required": required}],
    }


def _type_schema(kind: type[Problem]) -> Schema:
    """The schema of a problem's `type`. A type of this program is a URL below the registry's root, which varies."""
    return {"pattern": f"{kind.uri()}$"} if issubclass(kind, HttpProblem) else {"const": kind.uri()}


def _error_response(status: int) -> Schema:
    kinds = sorted((kind for kind in ALL_PROBLEM_TYPES if kind.status == status), key=lambda kind: kind.name)
    if len(kinds) == 1:
        return problem_response(status, "application/json", _schema_reference(_schema_name(kinds[0])), "Link")
    mapping = {kind.uri(): _schema_reference(_schema_name(kind))["$ref"] for kind in kinds}
    schema: Schema = {
        "oneOf": [_schema_reference(_schema_name(kind)) for kind in kinds],
        "discriminator": {"propertyName": "type", "mapping": mapping},
    }
    return problem_response(status, "application/json", schema, "Link")


def _schema_name(kind: type[Problem]) -> str:
    return f"{PROBLEM_NAME}.{kind.name}"


def _schema_reference(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}
