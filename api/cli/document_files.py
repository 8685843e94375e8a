"""Reads xRegistry documents from files, and builds the commands that import them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from annals.api.cli.outcome import InvalidInput
from annals.api.xregistry.registry_documents import registry_document_command
from annals.domain.decisions.commands import Command, ReplaceModel
from annals.domain.model.source.includes import expand_includes
from annals.domain.values.json_text import InvalidJson, loads

#: Members of a modelsource document, including `groups`.
_MODEL_MEMBERS: Final = {"$schema", "attributes", "description", "documentation", "groups", "labels"}


class DocumentKind(StrEnum):
    """The content of a document: the types of a registry, or its entities."""

    MODELSOURCE = "modelsource"
    REGISTRY = "registry"


@dataclass(frozen=True, slots=True)
class DocumentFile:
    """One document as read from its file."""

    path: Path
    kind: DocumentKind
    content: dict[str, Any]


def read_document_file(path: Path, kind: DocumentKind | None = None) -> DocumentFile:
    """The document in a file. kind: None to detect it from the content.

    Raises: InvalidInput if the file is not a JSON object; ModelError for includes that cannot be resolved.
    """
    try:
        content = loads(path.read_bytes())
    except InvalidJson as error:
        raise InvalidInput(f"{path}: {error}") from None
    if not isinstance(content, dict):
        raise InvalidInput(f"{path}: an xRegistry document is a JSON object")
    content.pop("$schema", None)
    kind = kind or (
        DocumentKind.MODELSOURCE if "groups" in content and content.keys() <= _MODEL_MEMBERS else DocumentKind.REGISTRY
    )
    if kind is DocumentKind.MODELSOURCE:
        content = expand_includes(content, _neighbour_reader(path), is_lenient=True)
    return DocumentFile(path, kind, content)


def import_command(document_file: DocumentFile, registry_model: dict[str, Any]) -> Command | None:
    """The command that imports a document; None if it would change nothing.

    registry_model: attributes of the registry's model, `modelsource` and `model`.
    """
    if document_file.kind is DocumentKind.REGISTRY:
        return registry_document_command(document_file.content, registry_model["model"].get("groups", {}))
    source = merge_modelsource(registry_model["modelsource"], document_file.content)
    return ReplaceModel(source) if source != registry_model["modelsource"] else None


def merge_modelsource(current_source: dict[str, Any], given_source: dict[str, Any]) -> dict[str, Any]:
    """A modelsource merged with another one. For types and attributes that both define, the given one wins.

    An import never removes anything, also where the given one has null: removing a type from a model would delete all
    entities of that type. What has a wrong type is left to the check of the model.
    """
    given = {name: value for name, value in given_source.items() if value is not None}
    merged: dict[str, Any] = {}
    for name in ("attributes", "groups"):
        if isinstance(given.get(name), dict):
            members = {member: value for member, value in given[name].items() if value is not None}
            merged[name] = {**current_source.get(name, {}), **members}
    return {**current_source, **given, **merged}


def _neighbour_reader(path: Path) -> Callable[[str], Any]:
    def read_neighbour(name: str) -> Any:
        return loads((path.parent / name).read_bytes())

    return read_neighbour
