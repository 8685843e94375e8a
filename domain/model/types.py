"""The compiled model: Group types, Resource types and the levels that define their attributes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from annals.domain.model import constraints, spec_attributes, typemap
from annals.domain.model.level import Level
from annals.domain.model.model_errors import ModelPath, model_error
from annals.domain.model.spec_attributes import RESOURCE_DEFAULTS, Definitions, SpecAttributes
from annals.domain.model.validation.targets import Types
from annals.domain.model.validation.value_errors import InvalidValue
from annals.domain.registry.entities import Entity
from annals.domain.values import xid as xids

__all__ = ["GroupType", "Level", "Model", "ResourceType"]


@dataclass(frozen=True, slots=True)
class ResourceType:
    """One Resource type of one Group type. `origin` names the definition (`/messagegroups/messages`, MOD-71).

    matchversions: paths of the attributes that are equal in all Versions of a Resource (MOD-36).
    """

    plural: str
    singular: str
    origin: str
    maxversions: int
    setversionid: bool
    hasdocument: bool
    versionmode: str  # lower case
    singleversionroot: bool
    validateformat: bool
    validatecompatibility: bool
    strictvalidation: bool
    typemap: Mapping[str, str]
    matchversions: tuple[tuple[str, ...], ...]
    version: Level
    meta: Level

    def document_form(self, contenttype: str | None) -> str:
        """`json`, `string` or `binary`: how a document of this media type is inlined (ENT-126, MOD-80 to 82)."""
        return typemap.document_form(self.typemap, contenttype)


@dataclass(frozen=True, slots=True)
class GroupType:
    """One Group type; `resources` by plural, in model order, including imported ones."""

    plural: str
    singular: str
    level: Level
    resources: dict[str, ResourceType]
    constraints: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Model:
    """The model in force.

    source: the modelsource as sent, includes and imports unresolved. full: the response of `GET /model`.
    origins: origin of each imported Resource type by its type (`endpoints.messages`). The full form shows no imports
        (MOD-71), so a store must keep the origins together with the model.
    """

    source: dict[str, Any]
    full: dict[str, Any]
    origins: dict[str, str]
    registry: Level
    groups: dict[str, GroupType]

    @classmethod
    def build(cls, source: dict[str, Any], full_model: dict[str, Any], origins: Mapping[str, str]) -> Model:
        """The model of a full form that is already validated."""
        groups = full_model.get("groups", {})
        types: Types = {plural: frozenset(row.get("resources", {})) for plural, row in groups.items()}
        return cls(
            source=source,
            full=full_model,
            origins=dict(origins),
            registry=_level(full_model["attributes"], spec_attributes.registry(groups), types, ("attributes",)),
            groups={plural: _group_type(row, origins, types) for plural, row in groups.items()},
        )

    @classmethod
    def load(
        cls, source: dict[str, Any], full_model: dict[str, Any], origins: Mapping[str, str] | None = None
    ) -> Model:
        """The model from its stored full form, as in the log; nothing is resolved again.

        origins: those of `Model.origins`; None: only the imports that the modelsource shows itself.
        """
        return cls.build(source, full_model, _plain_origins(source, full_model) if origins is None else origins)

    @classmethod
    def from_entity(cls, entity: Entity) -> Model:
        """The model of its entity, as in the log."""
        return cls.load(entity.attributes["modelsource"], entity.attributes["model"], entity.private.get("origins"))


def _group_type(row: Mapping[str, Any], origins: Mapping[str, str], types: Types) -> GroupType:
    plural, resources = row["plural"], row.get("resources", {})
    path, bounds = ("groups", plural), row.get("constraints", {})
    return GroupType(
        plural=plural,
        singular=row["singular"],
        level=_level(
            row["attributes"], spec_attributes.group(row["singular"], resources), types, (*path, "attributes")
        ),
        resources={
            name: _resource_type(
                resource_row,
                origins.get(f"{plural}.{name}", xids.join(plural, name)),
                bounds,
                types,
                (*path, "resources", name),
            )
            for name, resource_row in resources.items()
        },
        constraints=bounds,
    )


def _resource_type(
    row: Mapping[str, Any], origin: str, bounds: Mapping[str, Any], types: Types, path: ModelPath
) -> ResourceType:
    plural, singular = row["plural"], row["singular"]
    attributes = constraints.with_defaults(row["attributes"], plural, bounds)
    return ResourceType(
        plural=plural,
        singular=singular,
        origin=origin,
        **{name: row[name] for name in RESOURCE_DEFAULTS},
        typemap=row.get("typemap", {}),
        matchversions=tuple(_matchversions_paths(row["attributes"])),
        version=_level(attributes, spec_attributes.version(singular, row["hasdocument"]), types, (*path, "attributes")),
        meta=_level(row["metaattributes"], spec_attributes.meta(singular), types, (*path, "metaattributes")),
    )


def _level(definitions: Definitions, specified: SpecAttributes, types: Types, path: ModelPath) -> Level:
    """A level at a place in the model. Raises: ModelError for a default that no entity can have."""
    try:
        return Level(definitions, specified, types)
    except InvalidValue as invalid_value:
        raise model_error((*path, *invalid_value.path), invalid_value.detail) from None


def _matchversions_paths(definitions: Definitions) -> list[tuple[str, ...]]:
    """Paths of the attributes with `matchversions`, which may be inside objects."""
    paths: list[tuple[str, ...]] = []
    for name, row in definitions.items():
        if row.get("matchversions"):
            paths.append((name,))
        if row["type"] == "object":
            paths += [(name, *path) for path in _matchversions_paths(row.get("attributes", {}))]
    return paths


def _plain_origins(source: Any, full_model: Mapping[str, Any]) -> dict[str, str]:
    """Origins of the imports that a modelsource states itself, not through an include."""
    groups = (source or {}).get("groups") or {}
    origins: dict[str, str] = {}
    for plural in full_model.get("groups", {}):
        for reference in (groups.get(plural) or {}).get("ximportresources") or ():
            origins[f"{plural}.{reference.rpartition('/')[2]}"] = reference
    return {name: _final_origin(origin, origins) for name, origin in origins.items()}


def _final_origin(origin: str, origins: Mapping[str, str]) -> str:
    """The origin at the end of a chain of imports."""
    next_origin = origins.get(".".join(xids.segments(origin)))
    return _final_origin(next_origin, origins) if next_origin else origin
