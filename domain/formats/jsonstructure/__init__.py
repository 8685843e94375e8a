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

from domain.formats.contract import Spot, Violation
from domain.formats.jsondocument import value_of
from domain.formats.jsonschema import Parsed, unreadable
from domain.formats.jsonschema.places import fragment
from domain.formats.jsonstructure.graph import built
from domain.formats.jsonstructure.normal import normal

__all__ = ["Parsed", "canonical", "parse", "unreadable"]

_NAME: Final = re.compile(r"jsonstructure/draft-0[0-4]", re.IGNORECASE)
_OTHER_LANGUAGE: Final = re.compile(r"https?://json-schema\.org/", re.IGNORECASE)


def parse(document: bytes, name: str) -> Parsed:
    """The document, held against JSON Structure Core. Raises: Violation. Cost: linear."""
    if _NAME.fullmatch(name) is None:
        raise Violation(f"{name} is no draft of JSON Structure that this registry knows")
    value = value_of(document)
    try:
        _check(value)
        root, size = built(value)
    except RecursionError:
        raise Violation("the nesting is too deep", Spot(pointer="")) from None
    return Parsed(value, root, size)


def canonical(parsed: Parsed) -> bytes:
    """JSON in a normal form of our own, as none is published: see `normal`."""
    return normal(parsed.document)


def _check(value: Any) -> None:
    if not isinstance(value, dict):
        raise Violation("the document is not a JSON object", Spot(pointer="", fragment=fragment(value)))
    named = value.get("$schema")
    if not isinstance(named, str):
        raise Violation("the document does not name its meta-schema in `$schema`", Spot(pointer=""))
    if _OTHER_LANGUAGE.match(named):
        raise Violation("the document is declared as JSON Schema", Spot(pointer="/$schema", fragment=fragment(named)))
    for error in _errors(value):
        pointer = error.path.removeprefix("#")
        raise Violation(error.message[:300].rstrip("."), Spot(pointer=pointer, fragment=_at(value, pointer)))


def _errors(value: Any) -> list[Any]:
    """What the library finds. It has a copy, as it may change what it is given."""
    try:
        found: list[Any] = SchemaValidator(extended=True).validate(_flattened(value))
    except (ValueError, TypeError, LookupError, AttributeError):
        raise Violation("the document has values where JSON Structure has none", Spot(pointer="")) from None
    return found


def _flattened(value: Any) -> Any:
    """A copy in the library's terms: alternatives of required properties as one list, numbers as json reads them."""
    if isinstance(value, list):
        return [_flattened(item) for item in value]
    if isinstance(value, Decimal):
        return int(value) if value.as_tuple().exponent == 0 else float(value)
    if not isinstance(value, dict):
        return value
    found = {name: _flattened(item) for name, item in value.items()}
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
    return fragment(value)
