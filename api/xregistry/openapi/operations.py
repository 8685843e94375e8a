"""OpenAPI operations: what each method does at a path, its parameters, bodies and responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from annals.api.openapi.builders import (
    BINARY_SCHEMA,
    CONTENT_ENCODING_NAME,
    WRITE_HEADERS,
    json_content,
    json_with,
    or_dry_run,
    response_headers,
)
from annals.api.openapi.problems import error_responses
from annals.api.registry.capabilities import Capabilities
from annals.api.registry.header_attributes import HEADER_PREFIX, SCALAR_TYPES
from annals.api.xregistry.openapi import flags
from annals.api.xregistry.openapi.path_templates import PathTemplate
from annals.api.xregistry.openapi.schemas import (
    COLLECTIONS_SUFFIX,
    WRITE_SUFFIX,
    Schema,
    attribute_schema,
    map_schema,
    schema_reference,
)
from annals.api.xregistry.request.paths import COLLECTION_KINDS, PathKind
from annals.domain.model import ResourceType

Operation = dict[str, Any]

#: The summary of each method, by kind; `{0}` is the plural and `{1}` the singular of the type.
SUMMARIES: Final[dict[PathKind, dict[str, str]]] = {
    PathKind.REGISTRY: {
        "GET": "Read the registry",
        "PUT": "Replace the attributes of the registry",
        "PATCH": "Change attributes of the registry",
        "POST": "Create or replace entities of several types",
    },
    PathKind.CAPABILITIES: {
        "GET": "Read the capabilities",
        "PUT": "Replace the capabilities",
        "PATCH": "Change some capabilities",
    },
    PathKind.CAPABILITIESOFFERED: {"GET": "Read the offered capabilities"},
    PathKind.MODEL: {"GET": "Read the full model"},
    PathKind.MODELSOURCE: {"GET": "Read the source of the model", "PUT": "Replace the model"},
    PathKind.EXPORT: {"GET": "Export the registry as a document that another registry can import"},
    PathKind.GROUPS: {
        "GET": "List the {0}",
        "PATCH": "Change several {0}",
        "POST": "Create or replace several {0}",
        "DELETE": "Delete several {0}, or all of them",
    },
    PathKind.GROUP: {
        "GET": "Read one {1}",
        "PUT": "Create or replace one {1}",
        "PATCH": "Create or change one {1}",
        "POST": "Create or replace Resources of several types",
        "DELETE": "Delete one {1} with all its Resources",
    },
    PathKind.RESOURCES: {
        "GET": "List the {0}",
        "PATCH": "Change several {0}",
        "POST": "Create or replace several {0}",
        "DELETE": "Delete several {0}, or all of them",
    },
    PathKind.RESOURCE: {
        "GET": "Read one {1}",
        "PUT": "Create or replace one {1}",
        "PATCH": "Create or change one {1}",
        "POST": "Create or replace a Version of one {1}",
        "DELETE": "Delete one {1} with its Versions",
    },
    PathKind.META: {
        "GET": "Read the meta of one {1}",
        "PUT": "Replace the meta of one {1}",
        "PATCH": "Change the meta of one {1}",
    },
    PathKind.VERSIONS: {
        "GET": "List the Versions of one {1}",
        "PATCH": "Change several Versions of one {1}",
        "POST": "Create or replace several Versions of one {1}",
        "DELETE": "Delete several Versions of one {1}, or all of them",
    },
    PathKind.VERSION: {
        "GET": "Read one Version of one {1}",
        "PUT": "Create or replace one Version of one {1}",
        "PATCH": "Create or change one Version of one {1}",
        "DELETE": "Delete one Version of one {1}",
    },
}
#: Headers that make a request conditional on the current entity tag.
CONDITIONS: Final = ("If-Match", "If-None-Match")
#: The schemas of bodies of DELETE, by name: the epoch of a Resource is in its meta.
ENTITIES_TO_DELETE: Final = "EntitiesToDelete"
RESOURCES_TO_DELETE: Final = "ResourcesToDelete"

#: The body of a POST, where it differs from the object at the path.
_POST_BODIES: Final = {PathKind.REGISTRY: "collections", PathKind.GROUP: "collections", PathKind.RESOURCE: "version"}
#: Kinds that a PUT, a PATCH or a POST may create.
_CREATABLE: Final = frozenset((PathKind.GROUP, PathKind.RESOURCE, PathKind.META, PathKind.VERSION))
#: Kinds whose response has the same form as their request.
_UNIFORM_KINDS: Final = frozenset((PathKind.CAPABILITIES, PathKind.MODELSOURCE))
#: Kinds that accept `collections`.
_KINDS_WITH_COLLECTIONS: Final = frozenset((PathKind.REGISTRY, PathKind.EXPORT, PathKind.GROUP))
#: What a Resource shows in addition to its default Version.
_NAVIGATION: Final = {
    "metaurl": {"type": "string"},
    "versionsurl": {"type": "string"},
    "versionscount": {"type": "integer"},
}
_KINDS_WITH_LOCATION: Final = frozenset((PathKind.RESOURCE, PathKind.VERSION))


def operation(template: PathTemplate, method: str, capabilities: Capabilities) -> Operation:
    """The Operation Object of a method at a path."""
    parameters = [
        _parameter_reference(name) for name in (*flags.flag_names(template.kind, method, capabilities), *CONDITIONS)
    ]
    body = _request_body(template, method)
    if template.document and body:
        parameters += [_parameter_reference(name) for name in header_parameters(template)]
    return {
        "operationId": template.operation_id(method),
        "summary": _summary(template, method),
        "tags": [template.schema.partition(".")[0] if template.types[0] else "registry"],
        "parameters": parameters,
        **({"requestBody": body} if body else {}),
        "responses": dict(
            sorted({**_with_dry_run(_success_responses(template, method), method), **error_responses()}.items())
        ),
    }


def header_parameters(template: PathTemplate) -> dict[str, Schema]:
    """The `xRegistry-` headers that carry the attributes of a document in requests, by component name.

    Their times are texts, because generators know no times in headers.
    """
    return {
        f"{_document_schema(template)}.{HEADER_PREFIX}{name}": {
            "name": f"xRegistry-{name}",
            "in": "header",
            "schema": {key: value for key, value in schema.items() if value != "date-time"},
        }
        for name, schema in _header_schemas(template, is_response=False).items()
    }


#: Headers of document responses, in addition to those of their attributes.
_DOCUMENT_HEADERS: Final = ("Link", "Content-Location", "Content-Disposition", "Content-Security-Policy")
_LOCATION_HEADER: Final[Schema] = {
    "description": "The URL of the document; absent for a script URL such as `javascript:`.",
    "schema": {"type": "string"},
}


def document_response(template: PathTemplate) -> dict[str, Schema]:
    """The response whose body is a document, by component name."""
    attributes = _header_schemas(template, is_response=True) | (
        _NAVIGATION if template.kind is PathKind.RESOURCE else {}
    )
    attribute_headers = {f"xRegistry-{name}": {"schema": schema} for name, schema in attributes.items()}
    return {
        _document_name(template): {
            "description": "The bytes of the document, with its Content-Type if that is known.",
            "headers": {
                **response_headers(*_DOCUMENT_HEADERS, *WRITE_HEADERS, CONTENT_ENCODING_NAME),
                **attribute_headers,
            },
            "content": {"application/octet-stream": {"schema": BINARY_SCHEMA}, "*/*": {}},
        }
    }


def _header_schemas(template: PathTemplate, is_response: bool) -> dict[str, Schema]:
    """The schemas of attributes with one header each.

    A map of strings has a header per key, which OpenAPI cannot list.
    """
    type = _resource_type(template)
    return {
        name: attribute_schema({key: value for key, value in row.items() if key not in ("default", "readonly")})
        for name, row in type.version.definitions.items()
        if row["type"] in SCALAR_TYPES
        and name not in ("contenttype", f"{type.singular}base64")
        and (is_response or not row.get("readonly"))
    }


def _summary(template: PathTemplate, method: str) -> str:
    summary = SUMMARIES[template.kind][method].format(*template.types)
    if method == "DELETE":
        return summary
    if template.document:
        return f"{summary}: the document"
    return f"{summary}: the metadata" if template.details else summary


def _request_body(template: PathTemplate, method: str) -> Schema | None:
    if method == "GET" or (method == "DELETE" and template.kind not in COLLECTION_KINDS):
        return None
    if method == "DELETE":
        is_of_resources = template.kind is PathKind.RESOURCES
        return _json_body(
            schema_reference(RESOURCES_TO_DELETE if is_of_resources else ENTITIES_TO_DELETE), required=False
        )
    if template.document:
        media_types = ("application/octet-stream", "*/*")
        return {
            "description": "The document, with any media type.",
            "content": {media_type: {"schema": BINARY_SCHEMA} for media_type in media_types},
        }
    return _json_body(
        _body_schema(template, method, WRITE_SUFFIX if template.kind not in _UNIFORM_KINDS else ""), required=True
    )


def _body_schema(template: PathTemplate, method: str, suffix: str = "") -> Schema:
    """The schema of a body: of a request (with the request suffix) or of a response."""
    post_kind = _POST_BODIES.get(template.kind) if method == "POST" else None
    if post_kind == "collections":
        return schema_reference(template.schema + suffix + COLLECTIONS_SUFFIX)
    if post_kind == "version":
        return schema_reference(f"{template.schema}.versions{suffix}")
    if template.kind in COLLECTION_KINDS:
        return map_schema(template.schema + suffix)
    return schema_reference(template.schema + suffix)


def _success_responses(template: PathTemplate, method: str) -> dict[str, Schema]:
    if method == "DELETE":
        return {"204": _response("The deletion is complete.", "Link", *_write_headers(method))}
    if template.document:
        return _document_responses(template, method)
    location_headers = ("Content-Location",) if template.kind in _KINDS_WITH_LOCATION else ()
    header_names = ("Link", *location_headers, *_write_headers(method))
    body = json_content(_body_schema(template, method))
    found = {**_response("The current state.", *header_names, *_tag_headers(method)), **body}
    if method != "POST" and template.kind in _KINDS_WITH_COLLECTIONS:
        found = json_with(found, "collections", schema_reference(template.schema + COLLECTIONS_SUFFIX))
    if template.kind is PathKind.EXPORT:
        found = json_with(found, "stated", schema_reference(template.schema + WRITE_SUFFIX))
    responses = {
        "200": found,
        **_not_modified_response(method),
    }
    if _can_create(template, method):
        responses["201"] = {**_response("The created entity.", "Location", *header_names), **body}
    return responses | _pruned_response(template, method)


def _with_dry_run(responses: dict[str, Schema], method: str) -> dict[str, Schema]:
    """The responses, with that of a dry run added. A document response already allows any body."""
    success = responses.get("200")
    return (
        responses if method == "GET" or (success and "$ref" in success) else {**responses, "200": or_dry_run(success)}
    )


def _document_responses(template: PathTemplate, method: str) -> dict[str, Schema]:
    """Responses in document form. With `doc` they are metadata instead."""
    component_name = _document_name(template) if method != "POST" else _document_name(template, versions=True)
    document_reference = {"$ref": f"#/components/responses/{component_name}"}
    redirect = _response("A redirect to the URL of the document.", "Link", *_write_headers(method))
    redirect_response = {**redirect, "headers": {**redirect["headers"], "Location": _LOCATION_HEADER}}
    responses = {"200": document_reference, "303": redirect_response, **_not_modified_response(method)}
    if _can_create(template, method):
        responses["201"] = document_reference
    return responses | _pruned_response(template, method)


def _pruned_response(template: PathTemplate, method: str) -> dict[str, Schema]:
    """The response if the request's Version is the oldest of too many, and is removed at once."""
    is_version = template.kind is PathKind.VERSION or (template.kind is PathKind.RESOURCE and method == "POST")
    if method == "GET" or not is_version or not _resource_type(template).maxversions:
        return {}
    return {"204": _response("The Version was pruned because of `maxversions`.", "Link", *WRITE_HEADERS)}


def _not_modified_response(method: str) -> dict[str, Schema]:
    return {"304": _response("The client's copy is current.", "Link", "ETag")} if method == "GET" else {}


def _tag_headers(method: str) -> tuple[str, ...]:
    return ("ETag",) if method == "GET" else ()


def _can_create(template: PathTemplate, method: str) -> bool:
    creates_version = method == "POST" and _POST_BODIES.get(template.kind) == "version"
    return template.kind in _CREATABLE and (method in ("PUT", "PATCH") or creates_version)


def _write_headers(method: str) -> tuple[str, ...]:
    return () if method == "GET" else WRITE_HEADERS


def _response(description: str, *names: str) -> Schema:
    return {"description": description, "headers": response_headers(*names)}


def _json_body(schema: Schema, required: bool) -> Schema:
    return {"required": required, **json_content(schema)}


def _parameter_reference(name: str) -> Mapping[str, str]:
    return {"$ref": f"#/components/parameters/{name}"}


def _document_schema(template: PathTemplate) -> str:
    """The schema of the Versions to which documents and headers belong."""
    return template.schema.removesuffix(".versions")


def _document_name(template: PathTemplate, versions: bool = False) -> str:
    return f"Document-{template.schema}{'.versions' if versions else ''}"


def _resource_type(template: PathTemplate) -> ResourceType:
    assert template.resource is not None, "only Resources and Versions come here"
    return template.resource
