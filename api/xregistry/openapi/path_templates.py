"""The paths of a model: one for each kind of object, with what its operations need to know."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from annals.api.xregistry.openapi.names import pascal_case
from annals.api.xregistry.openapi.schemas import CAPABILITIES, CAPABILITIESOFFERED, MODEL, MODELSOURCE, REGISTRY
from annals.api.xregistry.request.paths import COLLECTION_KINDS, PathKind, methods_of
from annals.domain.model import GroupType, Model, ResourceType

#: Names of paths whose schema is that of another path, and endings of the names of paths below a Resource.
_FIXED_NAMES: Final = {PathKind.EXPORT: "Export"}
_NAME_ENDINGS: Final = {PathKind.META: "Meta", PathKind.VERSIONS: "Versions", PathKind.VERSION: "Version"}

_FIXED_TEMPLATES: Final = {
    PathKind.REGISTRY: ("/", REGISTRY),
    PathKind.CAPABILITIES: ("/capabilities", CAPABILITIES),
    PathKind.CAPABILITIESOFFERED: ("/capabilitiesoffered", CAPABILITIESOFFERED),
    PathKind.MODEL: ("/model", MODEL),
    PathKind.MODELSOURCE: ("/modelsource", MODELSOURCE),
    PathKind.EXPORT: ("/export", REGISTRY),
}


@dataclass(frozen=True, slots=True)
class PathTemplate:
    """One path of the document.

    path: the template. schema: of the entity there, or of a collection's members. ids: names of the path parameters.
    nested: schemas of the nested collections, by attribute. types: plural and singular of the type. document: True if
    the body is a document.
    """

    kind: PathKind
    path: str
    schema: str
    ids: tuple[str, ...] = ()
    nested: tuple[tuple[str, str], ...] = ()
    types: tuple[str, str] = ("", "")
    document: bool = False
    details: bool = False
    resource: ResourceType | None = None

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that the path accepts while everything is mutable."""
        return methods_of(self.kind, self.document)

    def operation_id(self, method: str) -> str:
        """The id of an operation at this path: the method and what is there, such as `listSchemagroupSchemas`."""
        is_list = method == "GET" and self.kind in COLLECTION_KINDS
        return ("list" if is_list else method.lower()) + self._name

    @property
    def _name(self) -> str:
        """What is at the path, in the form of the names of schemas: by type or, for the registry, by kind."""
        plural, singular = map(pascal_case, self.types)
        if not plural:
            return _FIXED_NAMES.get(self.kind, self.schema)
        group = pascal_case(self.ids[0].removesuffix("id")) if self.resource else ""
        resource = group + (plural if self.kind in (PathKind.GROUPS, PathKind.RESOURCES) else singular)
        return resource + _NAME_ENDINGS.get(self.kind, "") + ("Document" if self.document else "")


def path_templates(model: Model) -> Iterator[PathTemplate]:
    """Every path of a model."""
    groups = tuple((plural, plural) for plural in model.groups)
    for kind, (path, schema) in _FIXED_TEMPLATES.items():
        yield PathTemplate(kind, path, schema, nested=groups if schema == REGISTRY else ())
    for group in model.groups.values():
        yield from _group_templates(group)


def _group_templates(group: GroupType) -> Iterator[PathTemplate]:
    plural, id = group.plural, f"{group.singular}id"
    nested = tuple((name, f"{plural}.{name}") for name in group.resources)
    collection = PathTemplate(PathKind.GROUPS, f"/{plural}", plural, types=(plural, group.singular))
    entity_template = replace(collection, kind=PathKind.GROUP, path=f"/{plural}/{{{id}}}", ids=(id,), nested=nested)
    yield from (collection, entity_template)
    for resource in group.resources.values():
        yield from _resource_templates(entity_template, resource)


def _resource_templates(group: PathTemplate, resource: ResourceType) -> Iterator[PathTemplate]:
    schema = f"{group.schema}.{resource.plural}"
    types = (resource.plural, resource.singular)
    resource_id, version_id = _id_names(group.ids[0], resource.singular)
    collection = PathTemplate(
        PathKind.RESOURCES, f"{group.path}/{resource.plural}", schema, group.ids, types=types, resource=resource
    )
    entity_template = replace(
        collection, kind=PathKind.RESOURCE, path=f"{collection.path}/{{{resource_id}}}", ids=(*group.ids, resource_id)
    )
    versions = replace(
        entity_template, kind=PathKind.VERSIONS, path=f"{entity_template.path}/versions", schema=f"{schema}.versions"
    )
    yield collection
    yield from _both_forms(entity_template)
    yield replace(entity_template, kind=PathKind.META, path=f"{entity_template.path}/meta", schema=f"{schema}.meta")
    yield versions
    yield from _both_forms(
        replace(
            versions, kind=PathKind.VERSION, path=f"{versions.path}/{{{version_id}}}", ids=(*versions.ids, version_id)
        )
    )


def _both_forms(template: PathTemplate) -> Iterator[PathTemplate]:
    """The path as a document and, with `$details`, as metadata; only as metadata if the type has no documents."""
    if template.resource is None or not template.resource.hasdocument:
        yield template
        return
    yield replace(template, document=True)
    yield replace(template, path=template.path + "$details", details=True)


def _id_names(group: str, singular: str) -> tuple[str, str]:
    """Parameter names of a Resource and of a Version. They differ from each other and from the Group's."""
    resource_id = f"{singular}id" if f"{singular}id" != group else f"resource_{singular}id"
    return resource_id, "versionid" if "versionid" not in (group, resource_id) else "version_versionid"
