"""Parses documents of message definitions, and refuses those that do not have their Group's format.

Rules LEG-801 to 803, LEG-806, LEG-1107.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from annals.domain.compat.catalog import METASCHEMAS
from annals.domain.compat.catalog.metaschema import MalformedDefinition, Sections, check_sections, without_nulls
from annals.domain.values import json_text
from annals.domain.values.json_text import InvalidJson, Json

__all__ = ["MAX_DEPTH", "DefinitionDocument", "MalformedDefinition", "parse_definition"]

#: The maximum nesting depth of objects and arrays (LEG-1107).
MAX_DEPTH: Final = 200

_BOM: Final = b"\xef\xbb\xbf"
_CLOUDEVENTS: Final = "CloudEvents"
#: Members of a document that describe the document itself and are no sections.
_INFO_MEMBERS: Final = frozenset({"id", "description", "format", "version", "createdtimeutc"})


@dataclass(frozen=True, slots=True)
class DefinitionDocument:
    """A valid document.

    document: its sections, without null members where a metaschema names them; None for formats without rules here,
    whose documents are arbitrary bytes. description: from the document; it applies where the request gives none.
    """

    format: str
    document: Sections | None = None
    description: str | None = None


def parse_definition(format: str, body: bytes) -> DefinitionDocument:
    """The definition in a document, parsed and checked. O(length). Raises: MalformedDefinition."""
    metaschema = METASCHEMAS.get(format)
    if metaschema is None:
        return DefinitionDocument(format)
    members = _parse_object(body)
    if members.get("format") not in (None, format):
        raise MalformedDefinition(f"its Group is of the format {format}", "format")
    sections = {name: value for name, value in members.items() if name not in _INFO_MEMBERS}
    description = members.get("description")
    if metaschema.SECTIONS is not None:
        if not isinstance(description, str | None):
            raise MalformedDefinition("it is not a string", "description")
        sections = {name: without_nulls(value) for name, value in sections.items() if value is not None}
        check_sections(metaschema.SECTIONS, sections)
    metaschema.check(sections)
    if format == _CLOUDEVENTS and members.get("id") not in (None, "", sections["attributes"]["type"]):
        raise MalformedDefinition("it is not the type of the defined CloudEvents", "id")
    return DefinitionDocument(format, sections, description if isinstance(description, str) else None)


def _parse_object(body: bytes) -> Mapping[str, Json]:
    try:
        value = json_text.loads(body.removeprefix(_BOM))
    except InvalidJson as error:
        raise MalformedDefinition(f"the document is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise MalformedDefinition("the document is not a JSON object")
    if _is_too_deep(value):
        raise MalformedDefinition(f"objects and arrays nest more than {MAX_DEPTH} deep")
    return value


def _is_too_deep(value: Json) -> bool:
    containers = [value]
    for _ in range(MAX_DEPTH):
        containers = [nested for container in containers for nested in _children(container)]
        if not containers:
            return False
    return True


def _children(value: Json) -> list[Json]:
    """The objects and arrays directly inside one."""
    return [item for item in (value.values() if isinstance(value, dict) else value) if isinstance(item, dict | list)]
