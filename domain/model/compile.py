"""Compiles a modelsource into a Model: includes, imports, the overlay, then the attribute definitions, one file each.

The result is the full model as data; `types.py` makes the compiled types of it.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from typing import Any, Final

from annals.domain.model import attribute_definitions, constraints, spec_attributes, typemap
from annals.domain.model.model_errors import ModelPath, checked_aspects, model_error, object_members
from annals.domain.model.source import imports, includes, overlay
from annals.domain.model.spec_attributes import RESOURCE_DEFAULTS, Definitions, SpecAttributes
from annals.domain.model.types import Model
from annals.domain.model.validation.targets import Types
from annals.domain.values import xid as xids

_DOCUMENTATION_ASPECTS: Final = {"description": "string", "documentation": "url", "icon": "url", "labels": "labels"}
_ORIGIN_ASPECTS: Final = {"modelversion": "string", "modelcompatiblewith": "uri"}

_MODEL_ASPECTS: Final = {
    "$schema": "any",
    "description": "string",
    "documentation": "url",
    "labels": "labels",
    "attributes": "object",
    "groups": "object",
}
_GROUP_ASPECTS: Final = {
    "plural": "nonempty",
    "singular": "nonempty",
    **_DOCUMENTATION_ASPECTS,
    **_ORIGIN_ASPECTS,
    "attributes": "object",
    "constraints": "object",
    "ximportresources": "array",
    "resources": "object",
}
_RESOURCE_ASPECTS: Final = {
    "plural": "nonempty",
    "singular": "nonempty",
    **_DOCUMENTATION_ASPECTS,
    **_ORIGIN_ASPECTS,
    "maxversions": "uinteger",
    "setversionid": "boolean",
    "hasdocument": "boolean",
    "versionmode": "nonempty",
    "singleversionroot": "boolean",
    "validateformat": "boolean",
    "validatecompatibility": "boolean",
    "strictvalidation": "boolean",
    "typemap": "object",
    "attributes": "object",
    "resourceattributes": "object",
    "metaattributes": "object",
}

#: Collections append `count` to a plural, and a Resource type `base64` to its singular: both must fit (ENT-11).
_MAX_SHORT_NAME: Final = 57
_MAX_LONG_NAME: Final = 63


def compile_model(source: Any, kept_groups: Container[str] = ()) -> Model:
    """The model that a modelsource describes, including spec-defined attributes.

    source: its `$include` directives refer to itself; those of other documents are expanded before.
    kept_groups: Group types of the model before, which keep a name that has been reserved since.
    Raises: ModelError, ModelRequiredTrue, ModelScalarDefault.
    """
    source = {} if source is None else source
    model_source = checked_aspects(includes.expand_includes(source), _MODEL_ASPECTS, ())
    groups = object_members(model_source.get("groups", {}), ("groups",))
    resources = imports.expand_imports(groups)
    types: Types = {plural: tuple(rows) for plural, rows in resources.items()}
    group_types = {
        plural: _compile_group(plural, groups[plural], resources[plural], types, plural in kept_groups)
        for plural in groups
    }
    _check_names([(("groups", plural), row) for plural, row in group_types.items()], _MAX_LONG_NAME)
    _check_collections(group_types, spec_attributes.registry(()), ("groups",))
    registry = _compile_level(
        spec_attributes.registry(group_types), model_source.get("attributes"), ("attributes",), types
    )
    full_model: dict[str, Any] = {
        name: model_source[name] for name in ("description", "documentation", "labels") if name in model_source
    }
    full_model |= {"attributes": registry, "groups": group_types}
    origins = {
        f"{plural}.{name}": origin
        for plural, rows in resources.items()
        for name, (_, origin) in rows.items()
        if origin != xids.join(plural, name)
    }
    return Model.build(dict(source), full_model, origins)


def _compile_group(
    plural: str, group_definition: Any, resources: imports.Resources, types: Types, is_kept: bool
) -> dict[str, Any]:
    model_path: ModelPath = ("groups", plural)
    row = _with_names(plural, checked_aspects(group_definition, _GROUP_ASPECTS, model_path), model_path)
    if plural in spec_attributes.RESERVED_PATHS and not is_kept:
        raise model_error(model_path, "the name is taken, so no Group type can have it")
    resource_types = {
        name: _compile_resource(name, definition, (*model_path, "resources", name), types)
        for name, (definition, _) in resources.items()
    }
    _check_names(
        [((*model_path, "resources", name), resource_type) for name, resource_type in resource_types.items()],
        _MAX_SHORT_NAME,
    )
    level = spec_attributes.group(row["singular"], resource_types)
    if f"{row['singular']}id" in spec_attributes.group("", ()).attributes:
        raise model_error(
            (*model_path, "singular"), f"its id attribute would be {row['singular']}id, which has another meaning"
        )
    _check_collections(resource_types, spec_attributes.group(row["singular"], ()), (*model_path, "resources"))
    attributes = _compile_level(level, row.get("attributes"), (*model_path, "attributes"), types)
    versions = {name: resource_type["attributes"] for name, resource_type in resource_types.items()}
    bounds = constraints.check_constraints(
        row.pop("constraints", {}), attributes, versions, types, (*model_path, "constraints")
    )
    constraints.check_defaults(bounds, (*model_path, "constraints"))
    singulars = {name: each["singular"] for name, each in resource_types.items() if each["hasdocument"]}
    constraints.check_url_defaults(bounds, singulars, (*model_path, "constraints"))
    row |= {"attributes": attributes, "resources": resource_types}
    if bounds:
        row["constraints"] = bounds
    return _order_members(row, [name for name in _GROUP_ASPECTS if name != "ximportresources"])


def _compile_resource(plural: str, definition: Any, model_path: ModelPath, types: Types) -> dict[str, Any]:
    row = RESOURCE_DEFAULTS | _with_names(
        plural, checked_aspects(definition, _RESOURCE_ASPECTS, model_path), model_path
    )
    row |= _check_validation(row, model_path) | _check_versionmode(
        row, object_members(definition, model_path), model_path
    )
    if "typemap" in row:
        row["typemap"] = typemap.check_typemap(object_members(row["typemap"], model_path), (*model_path, "typemap"))
    conflicting_names = (
        spec_attributes.singular_names(row["singular"], row["hasdocument"]) & spec_attributes.fixed_names()
    )
    if conflicting_names:
        raise model_error(
            (*model_path, "singular"),
            f"it would create an attribute {min(conflicting_names)}, which has another meaning",
        )
    levels = {
        "attributes": spec_attributes.version(row["singular"], row["hasdocument"]),
        "resourceattributes": spec_attributes.resource(row["singular"]),
        "metaattributes": spec_attributes.meta(row["singular"]),
    }
    for name, level in levels.items():
        row[name] = _compile_level(level, row.get(name), (*model_path, name), types, versions=name == "attributes")
    url = f"{row['singular']}url"
    if row["hasdocument"] and "default" in row["attributes"][url]:
        raise model_error((*model_path, "attributes", url, "default"), constraints.NO_URL_DEFAULT)
    additional_names = row["resourceattributes"].keys() - levels["resourceattributes"].attributes.keys()
    if additional_names:
        raise model_error(
            (*model_path, "resourceattributes", min(additional_names)),
            "Resources cannot have attributes other than those of their Versions",
        )
    return _order_members(row, _RESOURCE_ASPECTS)


def _with_names(plural: str, row: dict[str, Any], model_path: ModelPath) -> dict[str, Any]:
    if row.get("plural", plural) != plural:
        raise model_error((*model_path, "plural"), "it differs from its key")
    if "singular" not in row:
        raise model_error((*model_path, "singular"), "it is required")
    return {"plural": plural, **row}


def _check_validation(row: dict[str, Any], model_path: ModelPath) -> dict[str, Any]:
    if row["validatecompatibility"] and not row["validateformat"]:
        raise model_error((*model_path, "validatecompatibility"), "it needs validateformat to be true")
    max_versions = row["maxversions"]
    # Integers beyond 64 bits are written to JSON only from Decimals, and int("1e999999999") would not end.
    return {"maxversions": int(max_versions) if max_versions < 1 << 63 else max_versions}


def _check_versionmode(row: dict[str, Any], definition: Mapping[str, Any], model_path: ModelPath) -> dict[str, Any]:
    mode = row["versionmode"].lower()
    if mode not in spec_attributes.VERSIONMODES:
        raise model_error(
            (*model_path, "versionmode"), f"{mode!r} is not one of: {', '.join(spec_attributes.VERSIONMODES)}"
        )
    if mode not in spec_attributes.COMPUTED_MODES:
        return {"versionmode": mode}
    if definition.get("singleversionroot") is False:
        raise model_error((*model_path, "singleversionroot"), f"versionmode {mode} needs it to be true")
    return {"versionmode": mode, "singleversionroot": True}


def _compile_level(
    level: SpecAttributes, definitions: Any, model_path: ModelPath, types: Types, versions: bool = False
) -> Definitions:
    overlaid = overlay.overlay_level(level, definitions or {}, model_path)
    scope = attribute_definitions.DefinitionContext(
        types, level.attributes, is_version_level=versions, reserved_names=level.reserved_names
    )
    full = attribute_definitions.full_definitions(overlaid, model_path, scope)
    for name in sorted(level.served_names & full.keys()):
        if full[name].get("ifvalues"):
            raise model_error((*model_path, name, "ifvalues"), "the server sets the value, which enables no siblings")
    return full


def _check_names(rows: Iterable[tuple[ModelPath, Mapping[str, Any]]], singular: int) -> None:
    """Refuses type names of a wrong form, and duplicates. singular: the maximum length of singular names."""
    known_names: set[str] = set()
    for model_path, row in rows:
        for aspect, max_length in (("plural", _MAX_SHORT_NAME), ("singular", singular)):
            name = row[aspect]
            if not xids.NAME.match(name) or len(name) > max_length:
                raise model_error((*model_path, aspect), f"{name!r} is not a name of at most {max_length} characters")
            if name in known_names:
                raise model_error((*model_path, aspect), f"another type here is called {name} already")
            known_names.add(name)


def _check_collections(plurals: Iterable[str], level: SpecAttributes, model_path: ModelPath) -> None:
    """Refuses collections whose attributes hide each other or those of the level."""
    known_names = set(level.attributes)
    for plural in plurals:
        names = spec_attributes.collection(plural).keys()
        if names & known_names:
            raise model_error(
                (*model_path, plural), f"its attribute {min(names & known_names)} has another meaning already"
            )
        known_names |= names


def _order_members(row: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: row[name] for name in names if name in row}
