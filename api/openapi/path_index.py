"""The list of what a server has, for `/-/`: made from its OpenAPI document, so that no path is missing from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from annals import __version__

_METHODS = ("get", "put", "patch", "post", "delete", "options")


class IndexEntry(NamedTuple):
    """A path, the methods that it describes, and what it is for."""

    path: str
    methods: tuple[str, ...]
    description: str


def path_index(document: Mapping[str, Any], other_apis: Iterable[IndexEntry]) -> dict[str, Any]:
    """Name, version, `paths` below `/-/`, and `surfaces`: other paths at which a client can begin.

    document: the OpenAPI document of a registry. other_apis: where clients of APIs with other documents begin. A path
    with braces is a template. HEAD and OPTIONS are left out, because every path has them.
    """
    base = document["servers"][0]["url"]
    entries = [_entry(path, item) for path, item in document["paths"].items()]
    surfaces = [entry for entry in entries if not entry.path.startswith("/-/") and "{" not in entry.path]
    return {
        "name": "annals",
        "version": __version__,
        "paths": [_shown(entry, base) for entry in entries if entry.path.startswith("/-/")],
        "surfaces": [_shown(entry, base) for entry in (*surfaces, *other_apis)],
    }


def methods_of(item: Mapping[str, Any]) -> tuple[str, ...]:
    """The methods that a path item describes."""
    return tuple(method.upper() for method in _METHODS if method in item)


def _entry(path: str, item: Mapping[str, Any]) -> IndexEntry:
    methods = methods_of(item)
    return IndexEntry(path, methods, item[methods[0].lower()]["summary"])


def _shown(entry: IndexEntry, base: str) -> dict[str, Any]:
    return {
        "path": entry.path,
        "url": base + entry.path,
        "methods": list(entry.methods),
        "description": entry.description,
    }
