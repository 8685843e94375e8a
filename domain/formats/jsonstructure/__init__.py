"""JSON Structure Core.

All drafts so far share one meta-schema, `https://json-structure.org/meta/core/v0/#`, so a document holds or does not
whatever draft it is declared with; the checks are those of the project's own library. Nothing is imported. Documents
are compared as those of JSON Schema are (SC-37), by the JSON that their types stand for: an `int64` is a string in
JSON, so that it is not a wider `int32`.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, Final

from json_structure import SchemaValidator

from domain.formats.contract import DocumentLocation, InvalidDocument
from domain.formats.json_document import load_json
from domain.formats.jsonschema import SchemaGraph, incompatibilities
from domain.formats.jsonschema.locations import json_fragment
from domain.formats.jsonstructure.graph import build_graph
from domain.formats.jsonstructure.normal_form import normal_form

__all__ = ["SchemaGraph", "canonical_form", "incompatibilities", "parse"]

_NAME: Final = re.compile(r"jsonstructure/draft-0[0-4]", re.IGNORECASE)
_OTHER_LANGUAGE: Final = re.compile(r"https?://json-schema\.org/", re.IGNORECASE)


def parse(document: bytes, name: str) -> SchemaGraph:
    """The document, held against JSON Structure Core. Raises: InvalidDocument. Cost: linear."""
    if _NAME.fullmatch(name) is None:
        raise InvalidDocument(f"{name} is no draft of JSON Structure that this registry knows")
    value = load_json(document)
    try:
        _check(value)
        root, size = build_graph(value)
    except RecursionError:
        raise InvalidDocument("the nesting is too deep", DocumentLocation(pointer="")) from None
    return SchemaGraph(value, root, size)


def canonical_form(parsed: SchemaGraph) -> bytes:
    """JSON in a normal form of our own, as none is published: see `normal`."""
    return normal_form(parsed.document)


def _check(value: Any) -> None:
    if not isinstance(value, dict):
        raise InvalidDocument(
            "the document is not a JSON object", DocumentLocation(pointer="", fragment=json_fragment(value))
        )
    named = value.get("$schema")
    if not isinstance(named, str):
        raise InvalidDocument("the document does not name its meta-schema in `$schema`", DocumentLocation(pointer=""))
    if _OTHER_LANGUAGE.match(named):
        raise InvalidDocument(
            "the document is declared as JSON Schema",
            DocumentLocation(pointer="/$schema", fragment=json_fragment(named)),
        )
    for error in _errors(value):
        pointer = error.path.removeprefix("#")
        raise InvalidDocument(
            error.message[:300].rstrip("."), DocumentLocation(pointer=pointer, fragment=_at(value, pointer))
        )


def _errors(value: Any) -> list[Any]:
    """What the library finds. It has a copy, as it may change what it is given."""
    try:
        found: list[Any] = SchemaValidator(extended=True).validate(_library_copy(value))
    except (ValueError, TypeError, LookupError, AttributeError):
        raise InvalidDocument(
            "the document has values where JSON Structure has none", DocumentLocation(pointer="")
        ) from None
    return found


def _library_copy(value: Any) -> Any:
    """A copy in the library's terms: alternatives of required properties as one list, numbers as json reads them."""
    if isinstance(value, list):
        return [_library_copy(item) for item in value]
    if isinstance(value, Decimal):
        return int(value) if value.as_tuple().exponent == 0 else float(value)
    if not isinstance(value, dict):
        return value
    found = {name: _library_copy(item) for name, item in value.items()}
    sets = found.get("required")
    if isinstance(sets, list) and sets and all(isinstance(each, list) for each in sets):
        found["required"] = list(dict.fromkeys(name for each in sets for name in each if isinstance(name, str)))
    return found


def _at(value: Any, pointer: str) -> str:
    """What stands at a place of the library, whose pointers may end before or after what there is."""
    for step in pointer.split("/")[1:]:
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            break
    return json_fragment(value)
