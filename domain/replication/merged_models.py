"""The model of a registry that has copies of Groups: their types from the other registry, and its own types."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from annals.domain.replication.scope import LinkScope


def merge_models(
    own_source: Mapping[str, Any], other_source: Mapping[str, Any], scope: LinkScope, *, attributes: bool = False
) -> dict[str, Any]:
    """A modelsource in which the Group types of a scope come from another modelsource.

    attributes: whether the registry's own attributes come from the other one too.
    """
    merged = deepcopy(dict(own_source))
    groups = merged.setdefault("groups", {})
    for plural, type in (other_source.get("groups") or {}).items():
        if scope.may_have_groups_of(plural):
            groups[plural] = deepcopy(type)
    if attributes:
        merged.pop("attributes", None)
        merged |= {"attributes": deepcopy(other_source["attributes"])} if other_source.get("attributes") else {}
    return merged
