"""JSON Schemas of the model: for each level one of responses and one of requests.

Schemas are named by their place in the model: `dirs.files.meta`. Type names contain neither capitals nor `-`. The names
of the registry's own schemas contain one of these, so the two never collide. `names.py` gives them names for clients.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from annals.api.openapi.builders import OTHER_MEMBERS
from annals.domain.model import GroupType, Model, ResourceType
from annals.domain.model.spec_attributes import Definition, Definitions
from annals.domain.values.json_text import InvalidJson, loads

Schema = dict[str, Any]

REGISTRY: Final = "Registry"
CAPABILITIES: Final = "Capabilities"
AVAILABILITY: Final = "Availability"
CAPABILITIESOFFERED: Final = "CapabilitiesOffered"
MODEL: Final = "Model"
MODELSOURCE: Final = "ModelSource"
#: The suffix of the names of request schemas.
WRITE_SUFFIX: Final = "-write"
#: The suffix of the names of maps of entities by id, and of objects with all nested collections of an entity.
MAP_SUFFIX: Final = "-map"
COLLECTIONS_SUFFIX: Final = "-collections"
#: Members that a Resource and its meta have in every view. Other members depend on `doc` and on `xref`.
_ALWAYS_REQUIRED: Final = ("self", "xid")
_NESTED_SCHEMAS: Final = {"capabilities": CAPABILITIES, "model": MODEL, "modelsource": MODELSOURCE}

_EXPECTED_EPOCH: Final[Schema] = {
    "type": ["integer", "null"],
    "minimum": 0,
    "description": "If present, the request is refused unless the entity has this epoch.",
}
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
    """A reference to the schema of a collection: entities by id."""
    return schema_reference(name + MAP_SUFFIX)


def object_schema(properties: Mapping[str, Schema]) -> Schema:
    """The schema of an object with only these members, all optional."""
    return {"type": "object", "properties": dict(properties), "additionalProperties": False}


def open_object_schema(properties: Mapping[str, Schema]) -> Schema:
    """The schema of an object with these members and others, all optional."""
    return {**object_schema(properties), "additionalProperties": OTHER_MEMBERS}


def model_schemas(model: Model) -> dict[str, Schema]:
    """The schemas of all levels by name: `dirs`, `dirs.files`, `dirs.files.meta`, `dirs.files.versions`."""
    registry = model.registry.definitions
    plurals = {plural: plural for plural in model.groups}
    schemas = _level_schemas(REGISTRY, registry, plurals, _required_names(registry))
    schemas |= _collections_schemas(REGISTRY, plurals)
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
    """The schema of an object with these attributes.

    Attributes that `ifvalues` adds are properties of a loose type, and `dependentSchemas` has their exact types: client
    generators ignore that keyword, and cannot read an `anyOf` in its place.
    """
    properties = {name: attribute_schema(row) for name, row in definitions.items() if name != "*"}
    schema: Schema = {"type": "object", "properties": {**properties, **_sibling_properties(definitions)}}
    if "*" in definitions:
        schema["additionalProperties"] = attribute_schema(definitions["*"]) or OTHER_MEMBERS
    elif "*" not in dict(_siblings(definitions)):
        schema["additionalProperties"] = False
    conditions = {name: _ifvalues_schema(name, row) for name, row in definitions.items() if row.get("ifvalues")}
    return {**schema, "dependentSchemas": conditions} if conditions else schema


def _siblings(definitions: Definitions) -> Iterator[tuple[str, Definition]]:
    """The attributes that `ifvalues` adds, with those that these add in turn."""
    for row in definitions.values():
        for branch in (row.get("ifvalues") or {}).values():
            yield from branch["siblingattributes"].items()
            yield from _siblings(branch["siblingattributes"])


def _sibling_properties(definitions: Definitions) -> dict[str, Schema]:
    """Loose schemas of these attributes; none if any attribute is allowed, because then other values are too."""
    kinds: dict[str, set[str]] = {}
    for name, row in _siblings(definitions) if "*" not in definitions else ():
        kinds.setdefault(name, set()).add(row["type"])
    return {name: _loose_schema(found) for name, found in kinds.items() if name != "*" and name not in definitions}


def _loose_schema(kinds: set[str]) -> Schema:
    """The schema of values of one of these types."""
    if len(kinds) > 1:
        return {}
    [kind] = kinds
    return {**_SCALARS[kind]} if kind in _SCALARS else {**_LOOSE[kind]}


def _group_schemas(plural: str, group: GroupType, resource_models: Mapping[str, Any]) -> dict[str, Schema]:
    nested = {name: f"{plural}.{name}" for name in group.resources}
    schemas = _level_schemas(plural, group.level.definitions, nested, _required_names(group.level.definitions))
    schemas |= _map_schemas(plural) | _collections_schemas(plural, nested)
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
    schemas |= _map_schemas(name) | _map_schemas(versions)
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


def _map_schemas(name: str) -> dict[str, Schema]:
    """The schemas of a collection in responses and in requests."""
    return {
        each + MAP_SUFFIX: {"type": "object", "additionalProperties": schema_reference(each)}
        for each in (name, name + WRITE_SUFFIX)
    }


def _collections_schemas(name: str, nested: Mapping[str, str]) -> dict[str, Schema]:
    """The schemas of an object with only the nested collections. nested: the names of their schemas, by attribute."""
    urls: dict[str, Schema] = {f"{key}url": _TEXT for key in nested}
    counts: dict[str, Schema] = {f"{key}count": {"type": "integer"} for key in nested}
    maps = {key: map_schema(target) for key, target in nested.items()}
    return {
        name + COLLECTIONS_SUFFIX: object_schema({**maps, **urls, **counts}),
        name + WRITE_SUFFIX + COLLECTIONS_SUFFIX: object_schema(
            {key: map_schema(target + WRITE_SUFFIX) for key, target in nested.items()}
        ),
    }


def _request_schema(definitions: Definitions) -> Schema:
    """A level in requests: no member is required, null deletes, and read-only members but `epoch` are ignored."""
    schema = attributes_schema(definitions)
    schema["properties"] = {
        name: {"readOnly": True} if definitions.get(name, {}).get("readonly") else _nullable(property_schema)
        for name, property_schema in schema["properties"].items()
    }
    if "epoch" in definitions:
        schema["properties"]["epoch"] = _EXPECTED_EPOCH
    # Not a property, because generators give it the name of an attribute `schema`.
    return {**schema, "patternProperties": {r"^\$schema$": _TEXT}}


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
    """A condition for each key of `ifvalues`.

    Keys are compared case-insensitively, which JSON Schema cannot express: other spellings meet no condition.
    """
    branches = definition["ifvalues"].items()
    return {
        "allOf": [
            _ifvalues_branch(name, _parse_key(key, definition["type"]), branch["siblingattributes"])
            for key, branch in branches
        ]
    }


def _ifvalues_branch(name: str, value: Any, siblings: Definitions) -> Schema:
    schema = attributes_schema(siblings)
    exact = {key: row for key, row in schema.items() if key in ("properties", "dependentSchemas")}
    return {"if": {"properties": {name: {"const": value}}}, "then": exact}


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


_LOOSE: Final[dict[str, Schema]] = {
    "array": {"type": "array", "items": {}},
    "map": {"type": "object"},
    "object": {"type": "object"},
}
_COMPLEX: Final = {"array": _array_schema, "map": _map_schema, "object": _object_schema}
