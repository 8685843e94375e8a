"""The OpenAPI document of a model under some capabilities.

Spec: OpenAPI 3.1; paths and statuses as the HTTP binding 1.0-rc4 has them, "Registry HTTP APIs".
"""

from __future__ import annotations

from typing import Any, Final

from annals import __version__
from annals.api.openapi.builders import STRING_SCHEMA
from annals.api.openapi.content_encoding import add_coding_headers, add_coding_to_paths
from annals.api.openapi.named_schemas import NamedSchemas
from annals.api.openapi.path_files import COMPONENTS
from annals.api.openapi.positions import WAIT_PARAMETERS, add_position_headers, add_positions_to_paths
from annals.api.openapi.problems import problem_responses, problem_schemas
from annals.api.registry.capabilities import Capabilities
from annals.api.xregistry.openapi import flags
from annals.api.xregistry.openapi.names import with_client_names
from annals.api.xregistry.openapi.operations import (
    CONDITIONS,
    ENTITIES_TO_DELETE,
    RESOURCES_TO_DELETE,
    document_response,
    header_parameters,
    operation,
)
from annals.api.xregistry.openapi.path_templates import PathTemplate, path_templates
from annals.api.xregistry.openapi.schemas import (
    AVAILABILITY,
    CAPABILITIES,
    CAPABILITIESOFFERED,
    MODEL,
    MODELSOURCE,
    Schema,
    model_schemas,
    object_schema,
    open_object_schema,
    schema_reference,
)
from annals.api.xregistry.request.paths import allow_header, availability_name
from annals.domain.decisions.capabilities import AVAILABLE, OFFERED
from annals.domain.model import Model
from annals.domain.model.spec_attributes import SPECVERSION

DESCRIPTION: Final = (
    "The server generates this document from the model and the enabled capabilities, and it changes with them. "
    "Every path also answers HEAD and OPTIONS. Paths may end with a slash. "
    "Values of `xRegistry-` headers are percent-encoded UTF-8; a map of strings has one header "
    "`xRegistry-<map>.<key>` for each of its keys. The APIs below `/compat` have separate documents: "
    "`/-/openapi/schemaregistry.json`, `/-/openapi/messagecatalog.json` and `/-/openapi/confluent.json`."
)
#: The member of `info` with the version of the specification. `version` is that of the program, whose paths these are.
SPECVERSION_NAME: Final = "x-specversion"
_SECURITY_DESCRIPTION: Final = "Required if the server has tokens; otherwise every client may read and write."
_ID_SCHEMA: Final[Schema] = {"type": "string", "pattern": "^[A-Za-z0-9_][A-Za-z0-9._~:@-]{0,127}$"}
_RESPONSE_HEADERS: Final[dict[str, tuple[str, bool]]] = {
    "Link": (
        "The root URL of the registry, with the relation `xregistry-root`; of a problem also its explanation: `help`.",
        True,
    ),
    "Location": ("The URL of the new entity.", True),
    "ETag": ("The entity tag of the response; absent if the response also depends on other entities.", False),
    "Content-Location": ("The URL of the Version that the response represents; absent for a dry run.", False),
    "Content-Disposition": ("The id of the Resource.", True),
    "Content-Security-Policy": ("A policy that prevents stored documents from running scripts.", True),
}


def openapi_document(
    model: Model, capabilities: Capabilities, base_url: str, own_paths: NamedSchemas
) -> dict[str, Any]:
    """The complete OpenAPI document. base_url: absolute URL of the registry. Cost: O(attributes of the model)."""
    return with_client_names(_document(model, capabilities, base_url, own_paths), model)


def _document(model: Model, capabilities: Capabilities, base_url: str, own_paths: NamedSchemas) -> dict[str, Any]:
    templates = [
        template for template in path_templates(model) if availability_name(template.kind) in capabilities.available
    ]
    return {
        "openapi": "3.1.0",
        "info": {"title": "Annals", "version": __version__, "description": DESCRIPTION, SPECVERSION_NAME: SPECVERSION},
        "servers": [{"url": base_url}],
        "security": [{}, {"bearer": []}],
        "tags": _tags(model),
        "paths": add_positions_to_paths(
            add_coding_to_paths(
                {**{template.path: _path_item(template, capabilities) for template in templates}, **own_paths.part}
            )
        ),
        "components": {
            "schemas": {**_own_schemas(), **own_paths.schemas, **model_schemas(model), **problem_schemas()},
            "parameters": {
                **flags.flag_parameters(capabilities),
                **WAIT_PARAMETERS,
                **_condition_parameters(),
                **_document_headers(templates),
            },
            "headers": {
                **{name: _header_object(*row) for name, row in _RESPONSE_HEADERS.items()},
                **COMPONENTS["headers"],
            },
            "responses": add_position_headers(
                add_coding_headers({**_document_responses(templates), **problem_responses()})
            ),
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer", "description": _SECURITY_DESCRIPTION}},
        },
    }


def _tags(model: Model) -> list[Schema]:
    descriptions = {plural: row.get("description") for plural, row in model.full["groups"].items()}
    groups = [
        {"name": name, **({"description": description} if description else {})}
        for name, description in descriptions.items()
    ]
    own_tags = {"server": "Paths that only this server has.", "subscriptions": "Subscriptions to events."}
    return [
        {"name": "registry"},
        *groups,
        *({"name": name, "description": description} for name, description in own_tags.items()),
    ]


def _path_item(template: PathTemplate, capabilities: Capabilities) -> Schema:
    """The methods that a path accepts now. A read-only registry has no operations that write."""
    methods = set(allow_header(template.kind, capabilities).split(", "))
    ids = [{"name": name, "in": "path", "required": True, "schema": _ID_SCHEMA} for name in template.ids]
    return {
        **({"parameters": ids} if ids else {}),
        **{
            method.lower(): operation(template, method, capabilities)
            for method in template.methods
            if method in methods
        },
    }


def _document_headers(templates: list[PathTemplate]) -> dict[str, Schema]:
    return {
        name: row for template in templates if template.document for name, row in header_parameters(template).items()
    }


def _condition_parameters() -> dict[str, Schema]:
    description = "Entity tags, or `*` for any state; if the condition is false, the request has no effect."
    return {
        name: {"name": name, "in": "header", "description": description, "schema": STRING_SCHEMA} for name in CONDITIONS
    }


def _document_responses(templates: list[PathTemplate]) -> dict[str, Schema]:
    return {
        name: row for template in templates if template.document for name, row in document_response(template).items()
    }


def _header_object(description: str, required: bool) -> Schema:
    return {"description": description, "required": required, "schema": STRING_SCHEMA}


def _own_schemas() -> dict[str, Schema]:
    object_map: Schema = {"type": "object", "additionalProperties": {"type": "object"}}
    members: Schema = {"attributes": object_map, "groups": object_map}
    return {
        CAPABILITIES: _capabilities_schema(),
        AVAILABILITY: object_schema({"mutable": {"type": "boolean"}}),
        CAPABILITIESOFFERED: object_map,
        MODEL: {**open_object_schema(members), "required": list(members)},
        MODELSOURCE: open_object_schema(members),
        **_deletion_schemas(),
        **COMPONENTS["schemas"],
    }


def _deletion_schemas() -> dict[str, Schema]:
    """Maps of entities to delete, each with its required epoch."""
    return {
        "EntityToDelete": open_object_schema({"epoch": {"type": ["integer", "null"]}}),
        "ResourceToDelete": open_object_schema({"meta": schema_reference("EntityToDelete")}),
        ENTITIES_TO_DELETE: {"type": "object", "additionalProperties": schema_reference("EntityToDelete")},
        RESOURCES_TO_DELETE: {"type": "object", "additionalProperties": schema_reference("ResourceToDelete")},
    }


def _capabilities_schema() -> Schema:
    """The schema of the capabilities that this server offers; each member is optional."""
    mutable = schema_reference(AVAILABILITY)
    offered = {name: _choice_schema(values) for name, values in OFFERED.items()}
    available = object_schema(dict.fromkeys(AVAILABLE, mutable))
    return object_schema({"available": available, "compatibilities": {"type": "object"}, **offered})


def _choice_schema(values: tuple[Any, ...]) -> Schema:
    if all(isinstance(value, bool) for value in values) and values:
        return {"type": "boolean"}
    return {"type": "array", "items": {"type": "string", "enum": ["*", *values]}}
