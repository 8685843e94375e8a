"""Documents of a registry, such as exports, as commands that import them."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from annals.domain.decisions.commands import WriteMethod, WriteTree


def registry_document_command(content: dict[str, Any], group_types: Collection[str]) -> WriteTree:
    """The command that imports a registry document. group_types: plural names of the model.

    A map of Group collections adds to the collections (`POST /`). With attributes of the registry, these are updated
    too.
    """
    collections = {plural + suffix for plural in group_types for suffix in ("", "url", "count")}
    if content.keys() <= collections:
        return WriteTree("/", content, WriteMethod.POST, ignore=frozenset({"epoch"}), keepids=True)
    return WriteTree("/", content, WriteMethod.PATCH, ignore=frozenset({"epoch", "id"}), keepids=True)
