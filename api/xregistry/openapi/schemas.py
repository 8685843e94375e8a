"""JSON Schemas of the model: for each level one of responses and one of requests.

Type names contain neither capitals nor `-`. The names of the registry's own schemas contain one of these, so the two
never collide.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from annals.domain.model import GroupType, Model, ResourceType
from annals.domain.model.spec_attributes import Definition, Definitions
from annals.domain.values.json_text import InvalidJson, loads

Schema = dict[str, Any]

REGISTRY: Final = "Registry"
CAPABILITIES: Final = "Capabilities"
CAPABILITIESOFFERED: Final = "CapabilitiesOffered"
MODEL: Final = "Model"
MODELSOURCE: Final = "ModelSource"
#: The suffix of the names of request schemas.
WRITE_SUFFIX: Final = "-write"
#: Members that a Resource and its meta have in every view. Other members depend on `doc` and on `xref`.
_ALWAYS_REQUIRED: Final = ("self", "xid")
_NESTED_SCHEMAS: Final = {"capabilities": CAPABILITIES, "model": MODEL, "modelsource": MODELSOURCE}

_TEXT: Final[Schema] = {"type": "string"}
_XID: Final[Schema] = {"type": "string", "pattern": "^/"}
_URI: Final[Schema] = {"type": "string", "format": "uri"}
_REFERENCE: Final[Schema] = {"type": "string", "format": "uri-reference"}
_SCALARS: Final[dict[str, Schema]] = {
    "boolean": {"type": "boolean"},
    "string": _TEXT,
    "integer": {"type": "integer"},
    "uinteger": {"type": "integer", "minimum": 0},
    "decimal": {"type": "number"},
    "timestamp": {"type": "string", "format": "date-time"},
    "uri": _REFERENCE,
    "uriabsolute": _URI,
    "urirelative": _REFERENCE,
    "url": _REFERENCE,
    "urlabsolute": _URI,
    "urlrelative": _REFERENCE,
    "uritemplate": {"type": "string", "format": "uri-template"},
    "xid": _XID,
    "xidtype": _XID,
    "any": {},
}


def schema_reference(name: str) -> Schema:
    """A reference to one of the schemas of the document."""
    return {"$ref": f"#/components/schemas/{name}"}


def map_schema(name: str) -> Schema:
    """The schema of a collection: entities by id."""
    return {"type": "object", "additionalProperties": schema_reference(name)}


def object_schema(properties: Mapping[str, Schema]) -> Schema:
    """The schema of an object with only these members, all optional."""
    return {"type": "object", "properties": dict(properties), "additionalProperties": False}


def model_schemas(model: Model) -> dict[str, Schema]:
    """The schemas of all levels by name: `dirs`, `dirs.files`, `dirs.files.meta`, `dirs.files.versions`."""
    registry = model.registry.definitions
    plurals = {plural: plural for plural in model.groups}
    schemas = _level_schemas(REGISTRY, registry, plurals, _required_names(registry))
    for plural, group in model.groups.items():
        schemas |= _group_schemas(plural, group, model.full["groups"][plural]["resources"])
    return schemas


def attribute_schema(definition: Definition) -> Schema:
    """The schema of one attribute's values."""
    kind = definition["type"]
    schema = {**_SCALARS[kind]} if kind in _SCALARS else _COMPLEX[kind](definition)
    if definition.get("enum") and definition.get("strict", True) and not definition.get("fold") and kind in _SCALARS:
        schema["enum"] = definition["enum"]
    for name, keyword in (("description", "description"), ("default", "default"), ("readonly", "readOnly")):
        if definition.get(name) not in (None, False) or (name == "default" and name in definition):
            schema[keyword] = definition[name]
    return schema


def attributes_schema(definitions: Definitions) -> Schema:
    """The schema of an object with these attributes. Attributes that `ifvalues` adds are an `anyOf`."""
    properties = {name: attribute_schema(row) for name, row in definitions.items() if name != "*"}
    conditional_schemas = [_ifvalues_schema(name, row) for name, row in definitions.items() if row.get("ifvalues")]
    schema: Schema = {"type": "object", "properties": properties}
    if "*" in definitions:
        schema["additionalProperties"] = attribute_schema(definitions["*"])
    elif not conditional_schemas:
        schema["additionalProperties"] = False
    if conditional_schemas:
        schema["allOf"] = conditional_schemas
    return schema


def _group_schemas(plural: str, group: GroupType, resource_models: Mapping[str, Any]) -> dict[str, Schema]:
    nested = {name: f"{plural}.{name}" for name in group.resources}
    schemas = _level_schemas(plural, group.level.definitions, nested, _required_names(group.level.definitions))
    for name, resource in group.resources.items():
        schemas |= _resource_schemas(f"{plural}.{name}", resource, resource_models[name]["resourceattributes"])
    return schemas


def _resource_schemas(name: str, resource: ResourceType, navigation_attributes: Definitions) -> dict[str, Schema]:
    required_names = (f"{resource.singular}id", *_ALWAYS_REQUIRED)
    meta, versions = f"{name}.meta", f"{name}.versions"
    version = {
        key: row for key, row in resource.version.definitions.items() if key == "*" or key not in navigation_attributes
    }
    nested = {"versions": versions}
    schemas = _level_schemas(name, {**version, **navigation_attributes}, nested, required_names, {"meta": meta})
    schemas |= _level_schemas(meta, resource.meta.definitions, {}, required_names)
    return schemas | _level_schemas(
        versions, resource.version.definitions, {}, _required_names(resource.version.definitions)
    )


def _level_schemas(
    name: str,
    definitions: Definitions,
    collections: Mapping[str, str],
    required: Iterable[str],
    members: Mapping[str, str] = {},
) -> dict[str, Schema]:
    """Both schemas of a level. collections, members: names of the schemas of nested objects, by attribute."""
    references = {**{name: target for name, target in _NESTED_SCHEMAS.items() if name in definitions}, **members}
    nested = {key: map_schema(target) for key, target in collections.items()}
    response_schema = attributes_schema(definitions)
    response_schema["properties"] |= nested | {key: schema_reference(target) for key, target in references.items()}
    response_schema["required"] = list(required)
    request_schema = _request_schema(definitions)
    request_schema["properties"] |= {
        **{key: map_schema(target + WRITE_SUFFIX) for key, target in collections.items()},
        **{
            key: schema_reference(target + WRITE_SUFFIX if target in members.values() else target)
            for key, target in references.items()
        },
    }
    return {name: response_schema, name + WRITE_SUFFIX: request_schema}


def _request_schema(definitions: Definitions) -> Schema:
    """A level in requests: no member is required, null deletes, and read-only members are ignored."""
    schema = attributes_schema(definitions)
    schema["properties"] = {
        name: {"readOnly": True} if definitions[name].get("readonly") else _nullable(property_schema)
        for name, property_schema in schema["properties"].items()
    }
    schema["properties"]["$schema"] = _TEXT
    return schema


def _nullable(schema: Schema) -> Schema:
    if not schema.keys() & {"type", "enum"}:
        return schema
    nullable = {**schema, "type": [schema["type"], "null"]}
    if "enum" in schema:
        nullable["enum"] = [*schema["enum"], None]
    return nullable


def _required_names(definitions: Definitions) -> list[str]:
    return [name for name, row in definitions.items() if row.get("required") and name != "*"]


def _ifvalues_schema(name: str, definition: Definition) -> Schema:
    """A choice for each key of `ifvalues`, and one for all other values, so that every valid entity matches.

    Keys are compared case-insensitively, which JSON Schema cannot express: other spellings match the last choice.
    """
    keys = {key: _parse_key(key, definition["type"]) for key in definition["ifvalues"]}
    choices = [
        _ifvalues_branch(name, keys[key], branch["siblingattributes"]) for key, branch in definition["ifvalues"].items()
    ]
    return {"anyOf": [*choices, {"properties": {name: {"not": {"enum": list(keys.values())}}}}]}


def _ifvalues_branch(name: str, value: Any, siblings: Definitions) -> Schema:
    schema = attributes_schema(siblings)
    schema.pop("additionalProperties", None)
    schema["properties"] = {name: {"const": value}, **schema["properties"]}
    return schema


def _parse_key(key: str, kind: str) -> Any:
    """A key of `ifvalues`, which is always text, converted to the type of its attribute."""
    if kind not in ("boolean", "integer", "uinteger", "decimal"):
        return key
    try:
        return loads(key)
    except InvalidJson:
        return key


def _array_schema(definition: Definition) -> Schema:
    item = attribute_schema(definition["item"])
    if definition.get("enum") and definition.get("strict", True):
        item["enum"] = definition["enum"]
    return {"type": "array", "items": item}


def _map_schema(definition: Definition) -> Schema:
    return {"type": "object", "additionalProperties": attribute_schema(definition["item"])}


def _object_schema(definition: Definition) -> Schema:
    return attributes_schema(definition.get("attributes", {}))


_COMPLEX: Final = {"array": _array_schema, "map": _map_schema, "object": _object_schema}
