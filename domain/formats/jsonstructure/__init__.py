"""JSON Structure Core.

All drafts so far share one meta-schema, `https://json-structure.org/meta/core/v0/#`, so the declared draft does not
change the validity of a document. The JSON Structure project's own library checks it. Nothing is imported. Documents
are compared like those of JSON Schema (SC-37), by the JSON that represents their types: an `int64` is a string in JSON,
so it is not a wider `int32`.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, Final

from json_structure import SchemaValidator

from annals.domain.formats.contract import DocumentLocation, InvalidDocument
from annals.domain.formats.json_document import load_json
from annals.domain.formats.json_fragment import json_fragment
from annals.domain.formats.jsonschema import SchemaGraph, incompatibilities
from annals.domain.formats.jsonstructure.graph import build_graph
from annals.domain.formats.jsonstructure.normal_form import normal_form

__all__ = ["SchemaGraph", "canonical_form", "incompatibilities", "parse"]

_NAME: Final = re.compile(r"jsonstructure/draft-0[0-4]", re.IGNORECASE)
_JSON_SCHEMA_URI: Final = re.compile(r"https?://json-schema\.org/", re.IGNORECASE)


def parse(document: bytes, name: str) -> SchemaGraph:
    """The document, checked against JSON Structure Core. Raises: InvalidDocument. Cost: linear."""
    if _NAME.fullmatch(name) is None:
        raise InvalidDocument(f"{name} is not a draft of JSON Structure that this registry knows")
    value = load_json(document)
    try:
        _check_document(value)
        root, size = build_graph(value)
    except RecursionError:
        raise InvalidDocument("the nesting is too deep", DocumentLocation(pointer="")) from None
    return SchemaGraph(value, root, size)


def canonical_form(parsed: SchemaGraph) -> bytes:
    """JSON in a normal form of this project, because no standard one exists; see `normal_form.py`."""
    return normal_form(parsed.document)


def _check_document(value: Any) -> None:
    if not isinstance(value, dict):
        raise InvalidDocument(
            "the document is not a JSON object", DocumentLocation(pointer="", fragment=json_fragment(value))
        )
    metaschema_uri = value.get("$schema")
    if not isinstance(metaschema_uri, str):
        raise InvalidDocument("the document does not name its meta-schema in `$schema`", DocumentLocation(pointer=""))
    if _JSON_SCHEMA_URI.match(metaschema_uri):
        raise InvalidDocument(
            "the document is declared as JSON Schema",
            DocumentLocation(pointer="/$schema", fragment=json_fragment(metaschema_uri)),
        )
    for error in _library_errors(value):
        pointer = error.path.removeprefix("#")
        raise InvalidDocument(
            error.message[:300].rstrip("."), DocumentLocation(pointer=pointer, fragment=_json_at(value, pointer))
        )


def _library_errors(value: Any) -> list[Any]:
    """The errors that the library finds. It gets a copy, because it may modify its input."""
    try:
        errors: list[Any] = SchemaValidator(extended=True).validate(_library_copy(value))
    except (ValueError, TypeError, LookupError, AttributeError):
        raise InvalidDocument(
            "the document has values where JSON Structure has none", DocumentLocation(pointer="")
        ) from None
    return errors


def _library_copy(value: Any) -> Any:
    """A copy for the library: alternatives of required properties as one list, numbers as json reads them."""
    if isinstance(value, list):
        return [_library_copy(item) for item in value]
    if isinstance(value, Decimal):
        return int(value) if value.as_tuple().exponent == 0 else float(value)
    if not isinstance(value, dict):
        return value
    members = {name: _library_copy(item) for name, item in value.items()}
    required_sets = members.get("required")
    if (
        isinstance(required_sets, list)
        and required_sets
        and all(isinstance(required_set, list) for required_set in required_sets)
    ):
        members["required"] = list(
            dict.fromkeys(name for required_set in required_sets for name in required_set if isinstance(name, str))
        )
    return members


def _json_at(value: Any, pointer: str) -> str:
    """The JSON text at a pointer from the library; such a pointer may be too long or too short for the document."""
    for step in pointer.split("/")[1:]:
        if isinstance(value, dict) and step in value:
            value = value[step]
        elif isinstance(value, list) and step.isdigit() and int(step) < len(value):
            value = value[int(step)]
        else:
            break
    return json_fragment(value)
