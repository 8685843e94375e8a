"""Callers as files list them: a name, a role, and roles for Groups."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from annals.domain.access.caller_names import check_name
from annals.domain.access.places import check_places
from annals.domain.access.roles import Caller, Role, highest_role


def parse_object(text: str, content: str) -> Mapping[str, Any]:
    """The members of a JSON object. content: what it has, for the error. Raises: ValueError."""
    members = json.loads(text, object_pairs_hook=_unique_members)
    if not isinstance(members, dict):
        raise ValueError(f"an object of {content} is needed")
    return members


def parse_caller(name: object, entry: Mapping[str, Any]) -> Caller:
    """The caller of one entry. Raises: ValueError for a name, a role or Groups that cannot be."""
    role = entry.get("role")
    return Caller(
        check_name(name), Role(role) if role is not None else None, parse_group_roles(entry.get("groups", {}))
    )


def parse_group_roles(value: Any) -> dict[str, Role]:
    """Roles by place, in lower case (ACC-60). Raises: ValueError if the value does not map places to roles."""
    if not isinstance(value, dict):
        raise ValueError('"groups" has to be an object with places as its keys, such as {"/dirs/team-*": "writer"}')
    roles: dict[str, Role] = {}
    for place, role in zip(check_places(value), value.values(), strict=True):
        roles[place] = highest_role(roles.get(place), Role(role)) or Role(role)
    return roles


def check_members(entry: Any, kind: str, required: str, allowed: frozenset[str]) -> Mapping[str, Any]:
    """The entry, if it is an object with the right members. kind: what it describes. Raises: ValueError."""
    if not isinstance(entry, dict) or required not in entry or set(entry) - allowed:
        others = ", ".join(f'"{name}"' for name in sorted(allowed - {required}))
        raise ValueError(f'{kind} needs an object with a "{required}" and, if wanted, {others}')
    return entry


def _unique_members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise ValueError("an object has a member twice")
    return members
