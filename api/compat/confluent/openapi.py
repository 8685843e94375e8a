"""The OpenAPI document of Confluent's API, made from the table of its paths."""

from __future__ import annotations

import re
from typing import Any, Final

from annals import __version__
from annals.api.compat.confluent.paths import BASE
from annals.api.compat.confluent.responses import MEDIA_TYPES
from annals.api.compat.confluent.routes import ROUTES, Route
from annals.api.openapi.builders import Schema

_STRING: Final[Schema] = {"type": "string"}
_INTEGER: Final[Schema] = {"type": "integer"}
_BOOLEAN: Final[Schema] = {"type": "boolean"}
_OBJECT: Final[Schema] = {"type": "object"}
_LIST: Final[Schema] = {"type": "array"}
_REFERENCE: Final[Schema] = {
    "type": "object",
    "required": ["name", "subject", "version"],
    "properties": {"name": _STRING, "subject": _STRING, "version": _INTEGER},
}
_SCHEMA_MEMBERS: Final[Schema] = {
    "schema": _STRING,
    "schemaType": {"type": "string", "enum": ["AVRO", "JSON", "PROTOBUF"]},
    "references": {"type": "array", "items": _REFERENCE},
    "metadata": _OBJECT,
    "ruleSet": _OBJECT,
    "id": _INTEGER,
    "version": _INTEGER,
}
_SCHEMAS: Final[dict[str, Schema]] = {
    "SchemaRequest": {"type": "object", "properties": _SCHEMA_MEMBERS},
    "Schema": {"type": "object", "properties": {**_SCHEMA_MEMBERS, "subject": _STRING, "guid": _STRING}},
    "Config": {
        "type": "object",
        "properties": {
            "compatibility": _STRING,
            "compatibilityLevel": _STRING,
            "normalize": _BOOLEAN,
            "alias": _STRING,
        },
    },
    "Mode": {"type": "object", "properties": {"mode": _STRING}},
    "ImportRequest": {
        "type": "object",
        "required": ["source"],
        "properties": {
            "source": {"type": "string", "minLength": 1},
            "versions": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["schema", "id", "version"],
                    "properties": {**_SCHEMA_MEMBERS, "guid": _STRING, "deleted": _BOOLEAN},
                },
            },
            "live": {"type": "array", "items": _INTEGER},
            "config": _OBJECT,
            "mode": _STRING,
            "deletes": _BOOLEAN,
        },
    },
    "ImportAnswer": {
        "type": "object",
        "properties": {
            "versions": {"type": "object", "additionalProperties": {"$ref": "#/components/schemas/ImportOutcome"}},
            "config": {"$ref": "#/components/schemas/ImportOutcome"},
            "mode": {"$ref": "#/components/schemas/ImportOutcome"},
        },
    },
    "ImportOutcome": {"type": "string", "enum": ["created", "equal", "conflict", "deleted", "kept"]},
    "Error": {
        "type": "object",
        "required": ["error_code", "message"],
        "properties": {"error_code": _INTEGER, "message": _STRING},
    },
}
#: The query parameters of reads and of writes, each where it has a meaning; others are ignored.
_READ_FLAGS: Final = ("aliases", "deleted", "deletedOnly", "defaultToGlobal", "latestOnly", "normalize", "verbose")
_READ_TEXTS: Final = ("subject", "subjectPrefix", "contextPrefix", "format", "referenceFormat", "asof")
_PAGE: Final = ("offset", "limit")
_WRITE_FLAGS: Final = ("normalize", "force", "permanent", "recursive", "dryrun")
_VARIABLE: Final = re.compile(r"{(\w+)}")


def confluent_openapi_document(base_url: str) -> dict[str, Any]:
    """The document. base_url: absolute URL of the registry."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Confluent Schema Registry's API",
            "version": __version__,
            "description": "Each path but the metadata of the server also exists below `/contexts/{context}`.",
        },
        "servers": [{"url": base_url + BASE}],
        "security": [{}, {"bearer": []}, {"basic": []}],
        "paths": {f"/{route.pattern}": _path_item(route) for route in ROUTES},
        "components": {
            "schemas": _SCHEMAS,
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "basic": {"type": "http", "scheme": "basic"},
            },
        },
    }


def _path_item(route: Route) -> Schema:
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": _STRING} for name in _VARIABLE.findall(route.pattern)
    ]
    operations = {method.lower(): _operation(route, method) for method in route.handlers}
    return {**({"parameters": parameters} if parameters else {}), **operations}


def _operation(route: Route, method: str) -> Schema:
    handler = route.handlers[method]
    is_write = method in route.writes
    suffix = "" if method == "GET" or len(route.handlers) == 1 else f"_{method.lower()}"
    body = _body_of(route.pattern) if method in ("POST", "PUT") and route.pattern else None
    answers: dict[str, Schema] = {}
    schema: Schema | None = None if route.pattern == "contexts/{context}" else _answer_of(route.pattern)
    if schema is None:
        answers["204"] = {"description": "The answer."}
    if is_write:
        schema = {"anyOf": [schema, _EVENTS]} if schema is not None else _EVENTS
    if schema is not None:
        answers["200"] = {
            "description": f"The answer{'; with dryrun, the events that it would append' if is_write else ''}.",
            "content": {media_type: {"schema": schema} for media_type in MEDIA_TYPES},
        }
    return {
        "operationId": f"{handler.__name__}_{route.pattern.replace('/', '_').translate(_NO_BRACES)}{suffix}".strip("_"),
        "parameters": list(_query_parameters(is_write=is_write)),
        **({"requestBody": {"required": True, "content": {MEDIA_TYPES[0]: {"schema": body}}}} if body else {}),
        "responses": {
            **answers,
            "default": {
                "description": "The request is refused; the first three digits of the code are the status.",
                "content": {
                    media_type: {"schema": {"$ref": "#/components/schemas/Error"}} for media_type in MEDIA_TYPES
                },
            },
        },
    }


#: What a dry run answers.
_EVENTS: Final[Schema] = {"type": "array", "items": {"type": "object"}}
_NO_BRACES: Final = str.maketrans("", "", "{}")


def _query_parameters(*, is_write: bool) -> list[Schema]:
    flags = _WRITE_FLAGS if is_write else _READ_FLAGS
    texts = () if is_write else _READ_TEXTS
    numbers = () if is_write else _PAGE
    return [
        *({"name": name, "in": "query", "schema": _BOOLEAN} for name in flags),
        *({"name": name, "in": "query", "schema": _STRING} for name in texts),
        *({"name": name, "in": "query", "schema": _INTEGER} for name in numbers),
    ]


def _body_of(pattern: str) -> Schema:
    first = pattern.partition("/")[0]
    name = {"config": "Config", "mode": "Mode", "-": "ImportRequest"}.get(first, "SchemaRequest")
    return {"$ref": f"#/components/schemas/{name}"}


def _answer_of(pattern: str) -> Schema:
    """The shape of the answer to the reads of a path, where there is one shape; else anything."""
    last, first = pattern.rpartition("/")[2], pattern.partition("/")[0]
    if first == "-":
        return {"$ref": "#/components/schemas/ImportAnswer"}
    if last in ("{subject}", "{version}", "{id}", "{guid}") and first in ("subjects", "schemas"):
        return {}
    if pattern in ("subjects", "schemas", "contexts") or last in ("ids", "types", "referencedby"):
        return _LIST
    return _OBJECT if first in ("config", "mode", "compatibility", "v1") or not pattern else {}
