"""Parses paths of the legacy APIs. The parser reads the raw path: an encoded slash is part of an id (LEG-401).

Spec: Schema Registry 0.2 and Message Catalog 0.1, "Path hierarchy".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple
from urllib.parse import unquote

from annals.api.compat.descriptions import DESCRIPTIONS
from annals.api.openapi.builders import Schema
from annals.domain.compat import ids
from annals.domain.compat.legacy_apis import LEGACY_APIS, MESSAGECATALOG, LegacyApi, is_number
from annals.domain.errors import problems
from annals.domain.values import xid as xids


class CompatPathKind(Enum):
    """The kind of object at a path: the operationId of its GET. A child is a schema or a message definition."""

    GROUPS = "groups"
    GROUP = "group"
    CHILDREN = "children"
    CHILD = "latest"
    VERSIONS = "versions"
    VERSION = "version"
    LOOKUP = "lookup"
    DESCRIPTION = "openapi"


class CompatPath(NamedTuple):
    """A described path. parameters: the query parameters of each method. HEAD and OPTIONS are left out."""

    kind: CompatPathKind
    parameters: Mapping[str, frozenset[str]]


def _compat_path(item: Schema) -> CompatPath:
    operations = {method.upper(): row for method, row in item.items() if method != "parameters"}
    parameters = {
        method: frozenset(each["name"] for each in row.get("parameters", ()) if each["in"] == "query")
        for method, row in operations.items()
    }
    return CompatPath(CompatPathKind(item["get"]["operationId"]), parameters)


def _route_key(segments: Sequence[str]) -> tuple[int, tuple[str, ...]]:
    """The key of a path: the number of its segments, and every second one, from the first. The others are ids."""
    return len(segments), tuple(map(unquote, segments[0::2]))


#: The paths of each API.
_PATHS: Final = {
    name: {_route_key(path.split("/")[1:]): _compat_path(item) for path, item in row["paths"].items()}
    for name, row in DESCRIPTIONS.items()
}
#: The name of the lookup path in the text of the Message Catalog spec. It matches in any letter case (LEG-201).
_NAME_WITH_SPACE: Final = "message definition"
_FAMILIES: Final = {tuple(family.base.split("/")[2:]): family for family in LEGACY_APIS}


@dataclass(frozen=True, slots=True)
class CompatTarget:
    """The target of a request.

    group, child: decoded ids, as the client sends them; empty if the path has none. number: of a Version; 0 if the path
    has none.
    """

    family: LegacyApi
    path: CompatPath
    group: str = ""
    child: str = ""
    number: int = 0

    @property
    def kind(self) -> CompatPathKind:
        """The kind of object at the path."""
        return self.path.kind

    @property
    def groupxid(self) -> str:
        """The xid of the Group."""
        return xids.join(self.family.groups, ids.to_registry_id(self.group))

    @property
    def collection(self) -> str:
        """The xid of the Group's Resources."""
        return f"{self.groupxid}/{self.family.resources}"

    @property
    def xid(self) -> str:
        """The xid of the Resource."""
        return f"{self.collection}/{ids.to_registry_id(self.child)}"

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that the path accepts, in addition to HEAD and OPTIONS."""
        return tuple(self.path.parameters)


def resolve_path(raw_path: str) -> CompatTarget:
    """The target of a canonical path. The target may not exist. raw_path: the undecoded path, including `/compat`.

    Raises: ApiNotFound for an unknown path; BadRequest for an invalid id; NotFound for an invalid Version number.
    """
    path_segments = raw_path.split("/")[1:]
    if len(path_segments) > 1 and not path_segments[-1]:
        path_segments = path_segments[:-1]  # LEG-107: a slash at the end has no meaning
    family = _FAMILIES.get(tuple(map(unquote, path_segments[1:3])))
    if family is None:
        raise problems.ApiNotFound()
    segments = [family.lookup] if _is_name_with_space(family, path_segments[3:]) else path_segments[3:]
    path = _PATHS[family.name].get(_route_key(segments))
    if path is None:
        raise problems.ApiNotFound()
    id_segments = segments[1::2]
    group, child = (*map(_decode_id, id_segments[:2]), "", "")[:2]
    return CompatTarget(
        family, path, group, child, _parse_number(id_segments[2], raw_path) if len(id_segments) > 2 else 0
    )


def group_of_path(raw_path: str) -> str:
    """The xid of the Group that a path of a legacy API names, or that contains what it names; empty for none."""
    try:
        target = resolve_path(raw_path)
    except problems.Problem:
        return ""
    return target.groupxid if target.group else ""


def _is_name_with_space(family: LegacyApi, segments: Sequence[str]) -> bool:
    return family is MESSAGECATALOG and len(segments) == 1 and unquote(segments[0]).lower() == _NAME_WITH_SPACE


def _decode_id(segment: str) -> str:
    try:
        id = ids.decode_segment(segment)
        ids.to_registry_id(id)  # raises ValueError now, so that later conversions of the id succeed
    except ValueError as error:
        raise problems.BadRequest(error_detail=f'the id "{segment}" is not valid: {error} (LEG-401)') from None
    return id


def _parse_number(segment: str, raw_path: str) -> int:
    """The number of a Version. Raises: NotFound if the segment is not a Version number (LEG-209)."""
    if not is_number(segment):
        raise problems.NotFound(raw_path)
    return int(segment)
