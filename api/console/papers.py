"""xRegistry documents in files, and the commands that take them into a registry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from api.console.outcome import Refused
from domain.commands import Command, Method, ReplaceModel, WriteTree
from domain.jsontext import InvalidJson, loads
from domain.model.includes import resolve

#: Members of a modelsource document besides `groups`.
_MODEL_MEMBERS: Final = {"$schema", "attributes", "description", "documentation", "groups", "labels"}


class Kind(StrEnum):
    """What a document describes: the types of a registry, or what it holds."""

    MODELSOURCE = "modelsource"
    REGISTRY = "registry"


@dataclass(frozen=True, slots=True)
class Paper:
    """One document as it was read."""

    path: Path
    kind: Kind
    content: dict[str, Any]


def read(path: Path, kind: Kind | None = None) -> Paper:
    """The document in a file. kind: None tells it by what it holds.

    Raises: Refused when it is no JSON object; ModelError for includes that lead nowhere.
    """
    try:
        content = loads(path.read_bytes())
    except InvalidJson as error:
        raise Refused(f"{path}: {error}") from None
    if not isinstance(content, dict):
        raise Refused(f"{path}: an xRegistry document is a JSON object")
    content.pop("$schema", None)
    kind = kind or (Kind.MODELSOURCE if "groups" in content and content.keys() <= _MODEL_MEMBERS else Kind.REGISTRY)
    if kind is Kind.MODELSOURCE:
        content = resolve(content, _neighbour(path), loose=True)
    return Paper(path, kind, content)


def command(paper: Paper, current: dict[str, Any]) -> Command | None:
    """What takes the document in; None where nothing of it is new.

    current: attributes of the registry's model, `modelsource` and `model`.
    """
    if paper.kind is Kind.REGISTRY:
        return _write(paper.content, current["model"].get("groups", {}))
    source = merged(current["modelsource"], paper.content)
    return ReplaceModel(source) if source != current["modelsource"] else None


def merged(current: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """A modelsource with another one added: types and attributes that both name become the given ones.

    An import never takes anything away, and a type left out of a model would go with all that it holds.
    """
    both: dict[str, Any] = {
        name: {**current.get(name, {}), **given[name]} for name in ("attributes", "groups") if name in given
    }
    return {**current, **given, **both}


def _write(content: dict[str, Any], groups: dict[str, Any]) -> WriteTree:
    """A map of Group collections adds to them (`POST /`); with attributes of the registry it updates these as well."""
    collections = {plural + suffix for plural in groups for suffix in ("", "url", "count")}
    if content.keys() <= collections:
        return WriteTree("/", content, Method.POST, ignore=frozenset({"epoch"}), keepids=True)
    return WriteTree("/", content, Method.PATCH, ignore=frozenset({"epoch", "id"}), keepids=True)


def _neighbour(path: Path) -> Callable[[str], Any]:
    def read_neighbour(name: str) -> Any:
        return loads((path.parent / name).read_bytes())

    return read_neighbour
