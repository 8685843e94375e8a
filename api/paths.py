"""What a path names under a model, and which methods it takes.

Spec: HTTP binding 1.0-rc4, "Registry HTTP APIs".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from api.capabilities import Capabilities
from domain import problems
from domain import xid as xids
from domain.model import GroupType, Model, ResourceType
from domain.rules.ids import check_id


class Kind(Enum):
    """What stands at a path."""

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


#: Paths below the root that no Group type may take.
FIXED: Final = {
    kind.value: kind
    for kind in (Kind.CAPABILITIES, Kind.CAPABILITIESOFFERED, Kind.MODEL, Kind.MODELSOURCE, Kind.EXPORT)
}
OFFERED: Final = Kind.CAPABILITIESOFFERED.value
#: Paths with something of discovery at their end, and nothing else.
NOT_SERVED: Final = frozenset((".xregistry", ".well-known"))
COLLECTIONS: Final = frozenset((Kind.GROUPS, Kind.RESOURCES, Kind.VERSIONS))

METHODS: Final[dict[Kind, tuple[str, ...]]] = {
    Kind.REGISTRY: ("GET", "PUT", "PATCH", "POST"),
    Kind.CAPABILITIES: ("GET", "PUT", "PATCH"),
    Kind.CAPABILITIESOFFERED: ("GET",),
    Kind.MODEL: ("GET",),
    Kind.MODELSOURCE: ("GET", "PUT"),
    Kind.EXPORT: ("GET",),
    Kind.GROUPS: ("GET", "PATCH", "POST", "DELETE"),
    Kind.GROUP: ("GET", "PUT", "PATCH", "POST", "DELETE"),
    Kind.RESOURCES: ("GET", "PATCH", "POST", "DELETE"),
    Kind.RESOURCE: ("GET", "PUT", "PATCH", "POST", "DELETE"),
    Kind.META: ("GET", "PUT", "PATCH"),
    Kind.VERSIONS: ("GET", "PATCH", "POST", "DELETE"),
    Kind.VERSION: ("GET", "PUT", "PATCH", "DELETE"),
}


@dataclass(frozen=True, slots=True)
class Target:
    """What a request is about. xid: of the entity, or of the collection. details: the path asked for metadata."""

    kind: Kind
    xid: str
    group: GroupType | None = None
    resource: ResourceType | None = None
    details: bool = False

    @property
    def document(self) -> bool:
        """True where the body is the entity's document and its metadata goes into headers."""
        versioned = self.kind is Kind.RESOURCE or self.kind is Kind.VERSION
        return versioned and not self.details and self.resource is not None and self.resource.hasdocument

    @property
    def owner(self) -> str:
        """xid of the entity whose row holds what is asked for: a meta is part of its Resource."""
        return _OWNERS.get(self.kind) or (
            xids.join(*xids.segments(self.xid)[:4]) if self.kind is Kind.META else self.xid
        )

    def version(self, xid: str) -> Target:
        """One Version of this Resource, in the same form."""
        return replace(self, kind=Kind.VERSION, xid=xid)


_OWNERS: Final = {
    Kind.MODEL: xids.MODEL,
    Kind.MODELSOURCE: xids.MODEL,
    Kind.EXPORT: xids.REGISTRY,
}
_BY_DEPTH: Final = {1: Kind.GROUPS, 2: Kind.GROUP, 3: Kind.RESOURCES, 4: Kind.RESOURCE, 6: Kind.VERSION}


def locate(segments: Sequence[str], model: Model, details: bool = False, writes: bool = False) -> Target:
    """What a path names; whether it exists is for others to say.

    Raises: NotFound for a path that no type of the model makes, ApiNotFound, BadDetails, and MalformedId where a write
    uses an id that no entity can have (NotFound where a read does).
    """
    kind = _kind(segments)
    if kind is None:
        raise problems.NotFound(xids.join(*segments))
    target = Target(kind, xids.join(*segments), *_types(segments, kind, model), details)
    if details and kind not in (Kind.RESOURCE, Kind.VERSION):
        raise problems.BadDetails()
    for id in segments[1::2]:
        if writes:
            check_id(id)
        elif not xids.ID.match(id):
            raise problems.NotFound(target.xid)
    return target


def methods_of(kind: Kind, document: bool) -> tuple[str, ...]:
    """The methods that a path takes while everything is mutable. document: its body is one, which no PATCH is for."""
    return tuple(method for method in METHODS[kind] if not (document and method == "PATCH"))


def allowed(kind: Kind, capabilities: Capabilities, document: bool = False) -> str:
    """The value of the Allow header: what such a path takes while the capabilities are as they are."""
    mutable = capabilities.available.get(area(kind), False)
    methods = methods_of(kind, document) if mutable else ("GET",)
    return ", ".join((methods[0], "HEAD", "OPTIONS", *methods[1:]))


def area(kind: Kind) -> str:
    """The name in the `available` capability that a path belongs to."""
    return kind.value if kind.value in FIXED else "entities"


def _kind(segments: Sequence[str]) -> Kind | None:
    if not segments:
        return Kind.REGISTRY
    if segments[0] in NOT_SERVED:
        raise problems.ApiNotFound()
    if len(segments) == 1 and segments[0] in FIXED:
        return FIXED[segments[0]]
    if len(segments) == 5:
        return {"meta": Kind.META, "versions": Kind.VERSIONS}.get(segments[4])
    if len(segments) == 6 and segments[4] != "versions":
        return None
    return _BY_DEPTH.get(len(segments))


def _types(segments: Sequence[str], kind: Kind, model: Model) -> tuple[GroupType | None, ResourceType | None]:
    if kind is Kind.REGISTRY or kind.value in FIXED:
        return None, None
    group = model.groups.get(segments[0])
    resource = group.resources.get(segments[2]) if group and len(segments) > 2 else None
    if group is None or (resource is None and len(segments) > 2):
        raise problems.NotFound(xids.join(*segments))
    return group, resource
