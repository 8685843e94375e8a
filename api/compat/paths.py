"""Parses paths of the legacy APIs. The parser reads the raw path: an encoded slash is part of an id (LEG-401).

Spec: Schema Registry 0.2 and Message Catalog 0.1, "Path hierarchy".
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final
from urllib.parse import unquote

from domain.compat import ids
from domain.compat.legacy_apis import LEGACY_APIS, MESSAGECATALOG, LegacyApi, is_number
from domain.errors import problems
from domain.values import xid as xids

OPENAPI: Final = "openapi.json"


class CompatPathKind(Enum):
    """The kind of object at a path. A child is a schema or a message definition."""

    GROUPS = "groups"
    GROUP = "group"
    CHILDREN = "children"
    CHILD = "child"
    VERSIONS = "versions"
    VERSION = "version"
    LOOKUP = "lookup"
    DESCRIPTION = "description"


#: The methods that each path accepts, in addition to HEAD and OPTIONS.
METHODS: Final[dict[CompatPathKind, tuple[str, ...]]] = {
    CompatPathKind.GROUPS: ("GET",),
    CompatPathKind.GROUP: ("GET", "PUT", "DELETE"),
    CompatPathKind.CHILDREN: ("GET", "DELETE"),
    CompatPathKind.CHILD: ("GET", "POST", "DELETE"),
    CompatPathKind.VERSIONS: ("GET",),
    CompatPathKind.VERSION: ("GET", "DELETE"),
    CompatPathKind.LOOKUP: ("GET",),
    CompatPathKind.DESCRIPTION: ("GET",),
}

#: The name of the lookup path in the text of the Message Catalog spec. It matches in any letter case (LEG-201).
_SPACED: Final = "message definition"
_FAMILIES: Final = {tuple(family.base.split("/")[2:]): family for family in LEGACY_APIS}


@dataclass(frozen=True, slots=True)
class CompatTarget:
    """The target of a request.

    group, child: decoded ids, as the client sends them; empty if the path has none. number: of a Version; 0 if the path
    has none.
    """

    family: LegacyApi
    kind: CompatPathKind
    group: str = ""
    child: str = ""
    number: int = 0

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
        return METHODS[self.kind]


def resolve_path(raw: str) -> CompatTarget:
    """The target of a canonical path. The target may not exist. raw: the undecoded path, including `/compat`.

    Raises: ApiNotFound for an unknown path; BadRequest for an invalid id; NotFound for an invalid Version number.
    """
    parts = raw.split("/")[1:]
    if len(parts) > 1 and not parts[-1]:
        parts = parts[:-1]  # LEG-107: a slash at the end has no meaning
    family = _FAMILIES.get(tuple(map(unquote, parts[1:3])))
    if family is None or len(parts) < 4:
        raise problems.ApiNotFound()
    kind = _kind(family, parts[3:])
    if kind is None:
        raise problems.ApiNotFound()
    named = parts[4:] if kind not in (CompatPathKind.LOOKUP, CompatPathKind.DESCRIPTION) else []
    group, child = (*map(_id, named[0:3:2]), "", "")[:2]
    return CompatTarget(family, kind, group, child, _number(named[4], raw) if kind is CompatPathKind.VERSION else 0)


def _kind(family: LegacyApi, parts: list[str]) -> CompatPathKind | None:
    fixed = [unquote(part) for part in parts[0::2]]
    if len(parts) == 1 and fixed[0] == OPENAPI:
        return CompatPathKind.DESCRIPTION
    if len(parts) == 1 and (fixed[0] == family.lookup or _is_spaced(family, fixed[0])):
        return CompatPathKind.LOOKUP
    if fixed != [family.path, family.children, "versions"][: len(fixed)]:
        return None
    by_length = (
        CompatPathKind.GROUPS,
        CompatPathKind.GROUP,
        CompatPathKind.CHILDREN,
        CompatPathKind.CHILD,
        CompatPathKind.VERSIONS,
        CompatPathKind.VERSION,
    )
    return by_length[len(parts) - 1] if len(parts) <= len(by_length) else None


def _is_spaced(family: LegacyApi, name: str) -> bool:
    return family is MESSAGECATALOG and name.lower() == _SPACED


def _id(segment: str) -> str:
    try:
        id = ids.decode_segment(segment)
        ids.to_registry_id(id)  # raises ValueError now, so that later conversions of the id succeed
    except ValueError as error:
        raise problems.BadRequest(error_detail=f'the id "{segment}" is not valid: {error} (LEG-401)') from None
    return id


def _number(segment: str, raw: str) -> int:
    """The number of a Version. Raises: NotFound if the segment is not a Version number (LEG-209)."""
    if not is_number(segment):
        raise problems.NotFound(raw)
    return int(segment)
