"""Compiles a modelsource into a Model: includes, imports, the overlay, then the attribute definitions, one file each.

The result is the full model as data; `types.py` makes the compiled types of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from domain.model import attribute_definitions, constraints, imports, includes, overlay, spec_attributes, typemap
from domain.model.includes import Include
from domain.model.model_errors import ModelPath, checked_aspects, model_error, object_members
from domain.model.spec_attributes import RESOURCE_DEFAULTS, Definitions, SpecAttributes
from domain.model.targets import Types
from domain.model.types import Model
from domain.values import xid as xids

_ABOUT: Final = {"description": "string", "documentation": "url", "icon": "url", "labels": "labels"}
_ORIGINAL: Final = {"modelversion": "string", "modelcompatiblewith": "uri"}

_MODEL: Final = {
    "$schema": "any",
    "description": "string",
    "documentation": "url",
    "labels": "labels",
    "attributes": "object",
    "groups": "object",
}
_GROUP: Final = {
    "plural": "nonempty",
    "singular": "nonempty",
    **_ABOUT,
    **_ORIGINAL,
    "attributes": "object",
    "constraints": "object",
    "ximportresources": "array",
    "resources": "object",
}
_RESOURCE: Final = {
    "plural": "nonempty",
    "singular": "nonempty",
    **_ABOUT,
    **_ORIGINAL,
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
_SHORT: Final = 57
_LONG: Final = 63


def compile_model(source: Any, include: Include | None = None, loose: bool = False) -> Model:
    """The model that a modelsource describes, including spec-defined attributes.

    include: reads a document that `$include` names. Its argument is a reference resolved against that of the including
        document; the modelsource's own references are passed unchanged. It raises OSError, ValueError or LookupError on
        failure. None: there is no base, and an include of another document is an error.
    loose: accepts `file#groups` for `file#/groups`, as a published model file has it (CM-05).
    Raises: ModelError, ModelRequiredTrue, ModelScalarDefault.
    """
    source = {} if source is None else source
    given = checked_aspects(includes.expand_includes(source, include, loose), _MODEL, ())
    groups = object_members(given.get("groups", {}), ("groups",))
    resources = imports.expand_imports(groups)
    types: Types = {plural: tuple(rows) for plural, rows in resources.items()}
    checked = {plural: _group(plural, groups[plural], resources[plural], types) for plural in groups}
    _check_names([(("groups", plural), row) for plural, row in checked.items()], _LONG)
    _check_collections(checked, spec_attributes.registry(()), ("groups",))
    registry = _level(spec_attributes.registry(checked), given.get("attributes"), ("attributes",), types)
    full: dict[str, Any] = {name: given[name] for name in ("description", "documentation", "labels") if name in given}
    full |= {"attributes": registry, "groups": checked}
    origins = {
        f"{plural}.{name}": origin
        for plural, rows in resources.items()
        for name, (_, origin) in rows.items()
        if origin != xids.join(plural, name)
    }
    return Model.build(dict(source), full, origins)


def _group(plural: str, given: Any, resources: imports.Resources, types: Types) -> dict[str, Any]:
    place: ModelPath = ("groups", plural)
    row = _named(plural, checked_aspects(given, _GROUP, place), place)
    if plural in spec_attributes.RESERVED_PATHS:
        raise model_error(place, "the name is taken, so no Group type can have it")
    checked = {
        name: _resource(name, definition, (*place, "resources", name), types)
        for name, (definition, _) in resources.items()
    }
    _check_names([((*place, "resources", name), each) for name, each in checked.items()], _SHORT)
    level = spec_attributes.group(row["singular"], checked)
    if f"{row['singular']}id" in spec_attributes.group("", ()).attributes:
        raise model_error(
            (*place, "singular"), f"its id attribute would be {row['singular']}id, which has another meaning"
        )
    _check_collections(checked, spec_attributes.group(row["singular"], ()), (*place, "resources"))
    attributes = _level(level, row.get("attributes"), (*place, "attributes"), types)
    versions = {name: each["attributes"] for name, each in checked.items()}
    bounds = constraints.check_constraints(
        row.pop("constraints", {}), attributes, versions, types, (*place, "constraints")
    )
    row |= {"attributes": attributes, "resources": checked}
    if bounds:
        row["constraints"] = bounds
    return _in_order(row, [name for name in _GROUP if name != "ximportresources"])


def _resource(plural: str, given: Any, place: ModelPath, types: Types) -> dict[str, Any]:
    row = RESOURCE_DEFAULTS | _named(plural, checked_aspects(given, _RESOURCE, place), place)
    row |= _validation(row, place) | _versionmode(row, object_members(given, place), place)
    if "typemap" in row:
        row["typemap"] = typemap.check_typemap(object_members(row["typemap"], place), (*place, "typemap"))
    clash = spec_attributes.singular_names(row["singular"], row["hasdocument"]) & spec_attributes.fixed_names()
    if clash:
        raise model_error((*place, "singular"), f"it would create an attribute {min(clash)}, which has another meaning")
    levels = {
        "attributes": spec_attributes.version(row["singular"], row["hasdocument"]),
        "resourceattributes": spec_attributes.resource(row["singular"]),
        "metaattributes": spec_attributes.meta(row["singular"]),
    }
    for name, level in levels.items():
        row[name] = _level(level, row.get(name), (*place, name), types, versions=name == "attributes")
    added = row["resourceattributes"].keys() - levels["resourceattributes"].attributes.keys()
    if added:
        raise model_error(
            (*place, "resourceattributes", min(added)),
            "Resources cannot have attributes other than those of their Versions",
        )
    return _in_order(row, _RESOURCE)


def _named(plural: str, row: dict[str, Any], place: ModelPath) -> dict[str, Any]:
    if row.get("plural", plural) != plural:
        raise model_error((*place, "plural"), "it differs from its key")
    if "singular" not in row:
        raise model_error((*place, "singular"), "it is required")
    return {"plural": plural, **row}


def _validation(row: dict[str, Any], place: ModelPath) -> dict[str, Any]:
    if row["validatecompatibility"] and not row["validateformat"]:
        raise model_error((*place, "validatecompatibility"), "it needs validateformat to be true")
    bound = row["maxversions"]
    # Integers beyond 64 bits are written to JSON only from Decimals, and int("1e999999999") would not end.
    return {"maxversions": int(bound) if bound < 1 << 63 else bound}


def _versionmode(row: dict[str, Any], given: Mapping[str, Any], place: ModelPath) -> dict[str, Any]:
    mode = row["versionmode"].lower()
    if mode not in spec_attributes.VERSIONMODES:
        raise model_error((*place, "versionmode"), f"{mode!r} is not one of: {', '.join(spec_attributes.VERSIONMODES)}")
    if mode not in spec_attributes.COMPUTED_MODES:
        return {"versionmode": mode}
    if given.get("singleversionroot") is False:
        raise model_error((*place, "singleversionroot"), f"versionmode {mode} needs it to be true")
    return {"versionmode": mode, "singleversionroot": True}


def _level(level: SpecAttributes, given: Any, place: ModelPath, types: Types, versions: bool = False) -> Definitions:
    joined = overlay.overlay_level(level, given or {}, place)
    scope = attribute_definitions.DefinitionContext(types, level.attributes, versions=versions, taken=level.reserved)
    return attribute_definitions.full_definitions(joined, place, scope)


def _check_names(rows: Iterable[tuple[ModelPath, Mapping[str, Any]]], singular: int) -> None:
    """Refuses type names of a wrong form, and duplicates. singular: the maximum length of singular names."""
    seen: set[str] = set()
    for place, row in rows:
        for aspect, most in (("plural", _SHORT), ("singular", singular)):
            name = row[aspect]
            if not xids.NAME.match(name) or len(name) > most:
                raise model_error((*place, aspect), f"{name!r} is not a name of at most {most} characters")
            if name in seen:
                raise model_error((*place, aspect), f"another type here is called {name} already")
            seen.add(name)


def _check_collections(plurals: Iterable[str], level: SpecAttributes, place: ModelPath) -> None:
    """Refuses collections whose attributes hide each other or those of the level."""
    seen = set(level.attributes)
    for plural in plurals:
        names = spec_attributes.collection(plural).keys()
        if names & seen:
            raise model_error((*place, plural), f"its attribute {min(names & seen)} has another meaning already")
        seen |= names


def _in_order(row: Mapping[str, Any], order: Iterable[str]) -> dict[str, Any]:
    return {name: row[name] for name in order if name in row}
