"""The model of a registry that holds Groups of others: their types as they are there, and its own."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from domain.replication.scope import LinkScope


def merge_models(
    own: Mapping[str, Any], other: Mapping[str, Any], scope: LinkScope, *, attributes: bool = False
) -> dict[str, Any]:
    """A modelsource with the Group types that a scope may have Groups of as another modelsource has them.

    attributes: whether the registry's own attributes are those of the other one as well.
    """
    found = deepcopy(dict(own))
    groups = found.setdefault("groups", {})
    for plural, type in (other.get("groups") or {}).items():
        if scope.of_type(plural):
            groups[plural] = deepcopy(type)
    if attributes:
        found.pop("attributes", None)
        found |= {"attributes": deepcopy(other["attributes"])} if other.get("attributes") else {}
    return found
