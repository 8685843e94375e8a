"""The OpenAPI documents of the two legacy APIs.

They are separate documents because client generators need the base URL of each API as a server, and because the model
does not change them. The OpenAPI document of the registry links to them.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

from api.feeds.dry_run_openapi import DRY_RUN, DRY_RUN_SCHEMA, or_dry_run
from api.openapi.builders import (
    CONTENT_ENCODING_DESCRIPTION,
    CONTENT_ENCODING_NAME,
    FINDINGS_NAME,
    STRING_SCHEMA,
    Schema,
    json_content,
    parameter,
    response_headers,
)
from api.openapi.content_encoding import add_coding_headers, add_coding_to_paths
from api.openapi.problems import OWN_PROBLEM_NAME, problem_schemas
from domain.compat.legacy_apis import SCHEMAREGISTRY, LegacyApi

_READ: Final = (400, 401, 403, 404, 405, 412, 500, 503)
_WRITTEN: Final = (*_READ, 406, 409, 413, 415)
_RECORDED: Final = "xRegistry-xregcorrelationid"
_REFUSAL: Final = "Refusal"
_VERSIONS: Final = {"schemaregistry": "0.2", "messagecatalog": "0.1"}
_TITLES: Final = {"schemaregistry": "Schema Registry", "messagecatalog": "Message Catalog"}
_ABOUT: Final = (
    "One of the two older APIs of this registry: what it writes is what the xRegistry API shows, and the other way "
    "round. Every path answers HEAD, where it answers GET, and OPTIONS. Ids are percent-encoded, an encoded slash is "
    "part of an id; values of headers that carry attributes are percent-encoded UTF-8."
)
_MOMENT: Final = "A moment of the past: a position of the log, an RFC 3339 time, or the correlation id of a request."
_TRIES: Final = "Answers with the events that it would record, and does nothing."
_TIME: Final[Schema] = {**STRING_SCHEMA, "format": "date-time"}
_ID: Final[Schema] = {**STRING_SCHEMA, "minLength": 1}
_NUMBER: Final[Schema] = {"type": "integer", "minimum": 1}
_HEADERS: Final = {
    "X-Content-Type-Options": ("`nosniff`.", True),
    CONTENT_ENCODING_NAME: (CONTENT_ENCODING_DESCRIPTION, False),
    "Link": (
        "The root of the registry, with the relation `xregistry-root`; where a list goes on, the next page.",
        True,
    ),
    "Location": (
        "Where the group or the version is, or a document elsewhere; absent for a URL that is a script.",
        False,
    ),
    "ETag": ("The state that the answer shows.", True),
    _RECORDED: ("The id of what the request recorded; absent where that was nothing.", False),
    FINDINGS_NAME: (
        "How many things rules beyond the model find in what was written; absent where that is nothing.",
        False,
    ),
}


def compat_openapi_document(family: LegacyApi, base: str) -> dict[str, Any]:
    """The complete OpenAPI document of one legacy API. base: absolute URL of the registry."""
    title, version = _TITLES[family.name], _VERSIONS[family.name]
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": version, "description": _ABOUT},
        "servers": [{"url": base + family.base}],
        "security": [{}, {"bearer": []}],
        "paths": add_coding_to_paths(_paths(family)),
        "components": {
            "schemas": {
                **{name: row for name, row in problem_schemas().items() if name in ("Problem", OWN_PROBLEM_NAME)},
                _REFUSAL: _refusal_schema(),
                DRY_RUN: DRY_RUN_SCHEMA,
                "Group": _group(family),
                "GroupWrite": _group_write(family),
            },
            "headers": {**{name: _header(*row) for name, row in _HEADERS.items()}, **_attribute_headers(family)},
            "responses": add_coding_headers(
                {f"{_REFUSAL}-{status}": _refusal(status) for status in {*_READ, *_WRITTEN}}
            ),
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def _paths(family: LegacyApi) -> dict[str, Schema]:
    group, children = f"/{family.path}/{{group}}", f"/{family.path}/{{group}}/{family.children}"
    child = f"{children}/{{id}}"
    in_group, in_child = [_path("group")], [_path("group"), _path("id")]
    noun = "schema" if family is SCHEMAREGISTRY else "message definition"
    return {
        f"/{family.path}": {"get": _list("groups", "List the ids of all groups", _ID)},
        group: {
            "parameters": in_group,
            "get": _read("group", "Read a group", {"200": _gives("It.", _reference("Group"), "ETag")}),
            "put": _put(),
            "delete": _delete("deleteGroup", f"Delete a group with every {noun} in it"),
        },
        children: {
            "parameters": in_group,
            "get": _list("children", f"List the ids of every {noun} of a group", _ID),
            "delete": _delete("deleteChildren", f"Delete every {noun} of a group"),
        },
        child: {
            "parameters": in_child,
            "get": _read("latest", f"Read the document of the latest version of a {noun}", _document(family)),
            "post": _post(family, noun),
            "delete": _delete("deleteChild", f"Delete a {noun} with all of its versions"),
        },
        f"{child}/versions": {
            "parameters": in_child,
            "get": _list("versions", f"List the numbers of the versions of a {noun}", _NUMBER),
        },
        f"{child}/versions/{{number}}": {
            "parameters": [*in_child, parameter("number", "The number of a version.", _NUMBER, "path")],
            "get": _read("version", "Read the document of a version", _document(family)),
            "delete": _delete("deleteVersion", "Delete a version"),
        },
        f"/{family.lookup}": {
            "get": _read(
                "lookup",
                "Find the document of a version by its URI",
                _document(family),
                parameter("uri", "The URI of the version.", _ID, required=True),
            )
        },
        "/openapi.json": {
            "get": {
                "operationId": "openapi",
                "summary": "Read this document",
                "responses": {"200": _gives("It.", {"type": "object"}), **_refusals((401, 405, 500))},
            }
        },
    }


def _read(name: str, summary: str, answers: Schema, *parameters: Schema) -> Schema:
    unchanged: Schema = {"304": {"description": "The client has it.", "headers": response_headers("Link", "ETag")}}
    return {
        "operationId": name,
        "summary": summary,
        "parameters": [*parameters, parameter("asof", _MOMENT, STRING_SCHEMA)],
        "responses": {**answers, **unchanged, **_refusals(_READ)},
    }


def _list(name: str, summary: str, items: Schema) -> Schema:
    size = parameter("limit", "How many at most.", {**_NUMBER, "maximum": 10_000})
    after = parameter("after", "Goes on behind a member, as the Link to the next page does.", STRING_SCHEMA)
    return _read(name, summary, {"200": _gives("They.", {"type": "array", "items": items})}, size, after)


def _write(name: str, summary: str, answers: Schema, *parameters: Schema, **more: Any) -> Schema:
    return {
        "operationId": name,
        "summary": summary,
        "parameters": [*parameters, parameter("dryrun", _TRIES, {"const": ""})],
        **more,
        "responses": {**answers, **_refusals(_WRITTEN)},
    }


def _put() -> Schema:
    whole = _reference("Group")
    return _write(
        "putGroup",
        "Create or replace a group",
        {
            "200": or_dry_run(_gives("It was there already.", whole, _RECORDED, FINDINGS_NAME)),
            "201": _gives("It is new.", whole, "Location", "ETag", _RECORDED, FINDINGS_NAME),
        },
        requestBody=json_content(_reference("GroupWrite")),
    )


def _post(family: LegacyApi, noun: str) -> Schema:
    prefix, attributes = family.headers, ("Version-Description", "Description", "Format", "Authority", "Id")
    about = f"{noun.split()[0]}description"
    queries = {
        "description": STRING_SCHEMA,
        about: STRING_SCHEMA,
        "format": STRING_SCHEMA,
        "authority": STRING_SCHEMA,
        "id": STRING_SCHEMA,
    }
    said = "The same may be said by query or by header."
    return _write(
        "post",
        f"Add a version to a {noun}, which may be new",
        {
            "200": or_dry_run(
                _gives(
                    "The version, a new one or one that has just this content.",
                    {"type": "object", "properties": {"id": STRING_SCHEMA}, "required": ["id"]},
                    *(_RECORDED, FINDINGS_NAME, *(f"{prefix}-{name}" for name in ("Id", "Version", "Id-Location"))),
                )
            )
        },
        *(parameter(name, said, schema) for name, schema in queries.items()),
        *(parameter(f"{prefix}-{name}", said, STRING_SCHEMA, "header") for name in attributes),
        requestBody={"required": True, "content": {"application/json": {}, "application/octet-stream": {}}},
    )


def _delete(name: str, summary: str) -> Schema:
    gone: Schema = {"description": "It is gone.", "headers": response_headers("Link", _RECORDED)}
    return _write(name, summary, {"200": or_dry_run(None), "204": gone})


def _document(family: LegacyApi) -> Schema:
    names = [f"{family.headers}-{name}" for name in _ATTRIBUTES]
    shown: Schema = {
        "description": "The document, byte for byte and with its media type as it was sent.",
        "headers": response_headers("Link", "Location", "ETag", *names),
        "content": {"*/*": {}},
    }
    return {
        "200": shown,
        "303": {"description": "It is elsewhere.", "headers": response_headers("Link", "Location", *names)},
    }


#: The headers of document responses. The headers that every document has are first.
_ATTRIBUTES: Final = {
    "Id": "The id of the version, a URI reference.",
    "Version": "Its number.",
    "Id-Location": "Where the version is found by its URI.",
    "Group-Id": "The id of the group.",
    "Name": "The id of the schema or message definition.",
    "Createdtimeutc": "When the schema or message definition was created.",
    "Updatedtimeutc": "When it was updated.",
    "Version-Createdtimeutc": "When the version was created.",
    "Format": "The format in force.",
    "Authority": "Who controls the schema or message definition, where that is somebody else.",
    "Description": "Of the schema or message definition.",
    "Version-Description": "Of the version.",
}
_ALWAYS: Final = 8


def _attribute_headers(family: LegacyApi) -> dict[str, Schema]:
    rows = enumerate(_ATTRIBUTES.items())
    return {f"{family.headers}-{name}": _header(says, number < _ALWAYS) for number, (name, says) in rows}


def _group_write(family: LegacyApi) -> Schema:
    schemas = family is SCHEMAREGISTRY
    members: Schema = {
        "id": _ID,
        "format": _ID,
        "description": STRING_SCHEMA,
        "createdtimeutc": {},
        "updatedtimeutc": {},
    }
    if schemas:
        members["groupProperties"] = {"type": "object", "additionalProperties": STRING_SCHEMA}
    required: Schema = {} if schemas else {"required": ["format"]}
    return {"type": "object", "properties": members, "additionalProperties": False, **required}


def _group(family: LegacyApi) -> Schema:
    members = {**_group_write(family)["properties"], "createdtimeutc": _TIME, "updatedtimeutc": _TIME}
    required = ["id", "createdtimeutc", "updatedtimeutc", *([] if family is SCHEMAREGISTRY else ["format"])]
    return {"type": "object", "properties": members, "additionalProperties": False, "required": required}


def _refusal_schema() -> Schema:
    return {"allOf": [_reference(OWN_PROBLEM_NAME), {"required": ["type", "title", "status", "detail", "instance"]}]}


def _refusal(status: int) -> Schema:
    demanded = {401: "WWW-Authenticate", 405: "Allow"}.get(status)
    needed = {demanded: {"required": True, "schema": STRING_SCHEMA}} if demanded else {}
    return {
        "description": HTTPStatus(status).phrase,
        "headers": {**response_headers("Link"), **needed},
        "content": {"application/problem+json": {"schema": _reference(_REFUSAL)}},
    }


def _refusals(statuses: tuple[int, ...]) -> Schema:
    return {str(status): {"$ref": f"#/components/responses/{_REFUSAL}-{status}"} for status in sorted(statuses)}


def _gives(says: str, schema: Schema, *names: str) -> Schema:
    return {"description": says, "headers": response_headers("Link", *names), **json_content(schema)}


def _header(says: str, required: bool) -> Schema:
    return {"description": says, "required": required, "schema": STRING_SCHEMA}


def _path(name: str) -> Schema:
    return parameter(name, "An id, percent-encoded.", _ID, "path")


def _reference(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}
