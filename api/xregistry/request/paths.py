"""Resolves paths under a model, and the methods that each path accepts.

Spec: HTTP binding 1.0-rc4, "Registry HTTP APIs".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from annals.api.registry.capabilities import Capabilities
from annals.domain.decisions.rules.ids import check_id
from annals.domain.errors import problems
from annals.domain.model import GroupType, Model, ResourceType
from annals.domain.values import xid as xids


class PathKind(Enum):
    """The kind of object at a path."""

    REGISTRY = "registry"
    CAPABILITIES = "capabilities"
    CAPABILITIESOFFERED = "capabilitiesoffered"
    MODEL = "model"
    MODELSOURCE = "modelsource"
    EXPORT = "export"
    GROUPS = "groups"
    GROUP = "group"
    RESOURCES = "resources"
    RESOURCE = "resource"
    META = "meta"
    VERSIONS = "versions"
    VERSION = "version"


#: Paths below the root that a Group type may not use.
FIXED_PATHS: Final = {
    kind.value: kind
    for kind in (
        PathKind.CAPABILITIES,
        PathKind.CAPABILITIESOFFERED,
        PathKind.MODEL,
        PathKind.MODELSOURCE,
        PathKind.EXPORT,
    )
}
OFFERED_PATH: Final = PathKind.CAPABILITIESOFFERED.value
#: First segments that only discovery uses; other paths below them do not exist.
UNSERVED_NAMES: Final = frozenset((".xregistry", ".well-known"))
COLLECTION_KINDS: Final = frozenset((PathKind.GROUPS, PathKind.RESOURCES, PathKind.VERSIONS))

METHODS: Final[dict[PathKind, tuple[str, ...]]] = {
    PathKind.REGISTRY: ("GET", "PUT", "PATCH", "POST"),
    PathKind.CAPABILITIES: ("GET", "PUT", "PATCH"),
    PathKind.CAPABILITIESOFFERED: ("GET",),
    PathKind.MODEL: ("GET",),
    PathKind.MODELSOURCE: ("GET", "PUT"),
    PathKind.EXPORT: ("GET",),
    PathKind.GROUPS: ("GET", "PATCH", "POST", "DELETE"),
    PathKind.GROUP: ("GET", "PUT", "PATCH", "POST", "DELETE"),
    PathKind.RESOURCES: ("GET", "PATCH", "POST", "DELETE"),
    PathKind.RESOURCE: ("GET", "PUT", "PATCH", "POST", "DELETE"),
    PathKind.META: ("GET", "PUT", "PATCH"),
    PathKind.VERSIONS: ("GET", "PATCH", "POST", "DELETE"),
    PathKind.VERSION: ("GET", "PUT", "PATCH", "DELETE"),
}


@dataclass(frozen=True, slots=True)
class RequestTarget:
    """The target of a request. xid: of the entity or collection. details: whether the path has `$details`."""

    kind: PathKind
    xid: str
    group: GroupType | None = None
    resource: ResourceType | None = None
    details: bool = False

    @property
    def has_document_body(self) -> bool:
        """True if the body is the entity's document and its metadata is in headers."""
        is_versioned = self.kind is PathKind.RESOURCE or self.kind is PathKind.VERSION
        return is_versioned and not self.details and self.resource is not None and self.resource.hasdocument

    @property
    def row_xid(self) -> str:
        """The xid of the entity whose row has the requested data. A meta is part of its Resource's row."""
        return _OWNER_XIDS.get(self.kind) or (xids.resource_of(self.xid) if self.kind is PathKind.META else self.xid)

    def version(self, xid: str) -> RequestTarget:
        """The target for one Version of this Resource, in the same form."""
        return replace(self, kind=PathKind.VERSION, xid=xid)


_OWNER_XIDS: Final = {
    PathKind.MODEL: xids.MODEL,
    PathKind.MODELSOURCE: xids.MODEL,
    PathKind.EXPORT: xids.REGISTRY,
}
_KINDS_BY_DEPTH: Final = {
    1: PathKind.GROUPS,
    2: PathKind.GROUP,
    3: PathKind.RESOURCES,
    4: PathKind.RESOURCE,
    6: PathKind.VERSION,
}


def resolve_path(
    segments: Sequence[str], model: Model, has_details: bool = False, is_write: bool = False
) -> RequestTarget:
    """The target of a path. The target may not exist.

    Raises: NotFound for a path that matches no type of the model; ApiNotFound; BadDetails; for an invalid id,
    MalformedId on a write and NotFound on a read.
    """
    kind = _path_kind(segments)
    if kind is None:
        raise problems.NotFound(xids.join(*segments))
    target = RequestTarget(kind, xids.join(*segments), *_path_types(segments, kind, model), has_details)
    if has_details and kind not in (PathKind.RESOURCE, PathKind.VERSION):
        raise problems.BadDetails()
    for id in segments[1::2]:
        if is_write:
            check_id(id)
        elif not xids.ID.match(id):
            raise problems.NotFound(target.xid)
    return target


def methods_of(kind: PathKind, is_document: bool) -> tuple[str, ...]:
    """The methods that a path accepts while everything is mutable.

    is_document: whether the body is a document, which excludes PATCH.
    """
    return tuple(method for method in METHODS[kind] if not (is_document and method == "PATCH"))


def allow_header(kind: PathKind, capabilities: Capabilities, is_document: bool = False) -> str:
    """The value of the Allow header for such a path under the current capabilities."""
    mutable = capabilities.available.get(availability_name(kind), False)
    methods = methods_of(kind, is_document) if mutable else ("GET",)
    return ", ".join((methods[0], "HEAD", "OPTIONS", *methods[1:]))


def availability_name(kind: PathKind) -> str:
    """The name in the `available` capability that controls a path."""
    return kind.value if kind.value in FIXED_PATHS else "entities"


def _path_kind(segments: Sequence[str]) -> PathKind | None:
    if not segments:
        return PathKind.REGISTRY
    if segments[0] in UNSERVED_NAMES:
        raise problems.ApiNotFound()
    if len(segments) == 1 and segments[0] in FIXED_PATHS:
        return FIXED_PATHS[segments[0]]
    if len(segments) == 5:
        return {"meta": PathKind.META, "versions": PathKind.VERSIONS}.get(segments[4])
    if len(segments) == 6 and segments[4] != "versions":
        return None
    return _KINDS_BY_DEPTH.get(len(segments))


def _path_types(segments: Sequence[str], kind: PathKind, model: Model) -> tuple[GroupType | None, ResourceType | None]:
    if kind is PathKind.REGISTRY or kind.value in FIXED_PATHS:
        return None, None
    group = model.groups.get(segments[0])
    resource = group.resources.get(segments[2]) if group and len(segments) > 2 else None
    if group is None or (resource is None and len(segments) > 2):
        raise problems.NotFound(xids.join(*segments))
    return group, resource
