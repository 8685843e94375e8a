"""The supported drafts of JSON Schema, and the validation of documents against their meta-schemas."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import jsonschema
import jsonschema_rs
from jsonschema.exceptions import best_match
from referencing import Specification
from referencing.jsonschema import DRAFT4, DRAFT6, DRAFT7, DRAFT201909, DRAFT202012

from annals.domain.formats.contract import DocumentLocation, InvalidDocument
from annals.domain.formats.json_fragment import json_fragment
from annals.domain.values.json_pointer import join_pointer

#: The format without a release: each document declares its own.
ANY_DRAFT: Final = "jsonschema"
#: The draft of documents that declare none, under a format that names none.
DEFAULT_FORMAT: Final = "JsonSchema/draft-07"
#: A part of `$schema`, and the format that it means.
_DECLARED_FORMATS: Final = {
    "draft-04": "JsonSchema/draft-04",
    "draft-06": "JsonSchema/draft-06",
    "draft-07": "JsonSchema/draft-07",
    "2019-09": "JsonSchema/draft/2019-09",
    "2020-12": "JsonSchema/draft/2020-12",
}
_NAME: Final = re.compile(r"jsonschema/draft[-/](04|06|07|2019-09|2020-12)", re.IGNORECASE)
#: The library with the better error messages is 200 times slower, so it explains documents up to this size in bytes.
_MAX_EXPLAINED_BYTES: Final = 100_000
#: The maximum length of the message of an error.
_MAX_MESSAGE: Final = 300


@dataclass(frozen=True, slots=True)
class JsonSchemaDraft:
    """One draft. number: 4, 6, 7, 2019 or 2020, so that drafts can be compared."""

    number: int
    specification: Specification[Any]
    fast_validator: Any
    validator: Any


_DRAFTS: Final = {
    "04": JsonSchemaDraft(4, DRAFT4, jsonschema_rs.Draft4Validator, jsonschema.Draft4Validator),
    "06": JsonSchemaDraft(6, DRAFT6, jsonschema_rs.Draft6Validator, jsonschema.Draft6Validator),
    "07": JsonSchemaDraft(7, DRAFT7, jsonschema_rs.Draft7Validator, jsonschema.Draft7Validator),
    "2019-09": JsonSchemaDraft(2019, DRAFT201909, jsonschema_rs.Draft201909Validator, jsonschema.Draft201909Validator),
    "2020-12": JsonSchemaDraft(2020, DRAFT202012, jsonschema_rs.Draft202012Validator, jsonschema.Draft202012Validator),
}


def declared_format(document: Any) -> str | None:
    """The format of the draft that a document names in `$schema`; None where it names none that is known here."""
    declared = document.get("$schema") if isinstance(document, dict) else None
    if not isinstance(declared, str):
        return None
    return next((format for part, format in _DECLARED_FORMATS.items() if part in declared), None)


def draft_of_document(name: str, document: Any) -> JsonSchemaDraft:
    """The draft by which a document is checked. name: its `format`, in any letter case. Raises: InvalidDocument."""
    if name.lower() == ANY_DRAFT:
        return draft_of_format(declared_format(document) or DEFAULT_FORMAT)
    return draft_of_format(name)


def draft_of_format(name: str) -> JsonSchemaDraft:
    """The draft of a `format` value with a release. Raises: InvalidDocument for an unknown one."""
    match = _NAME.fullmatch(name)
    if match is None:
        raise InvalidDocument(f"{name} is not a release of JSON Schema that this registry knows")
    return _DRAFTS[match[1].lower()]


def check_schema(draft: JsonSchemaDraft, schema: Any, size: int, base_pointer: str = "") -> None:
    """Validates a schema against the meta-schema of a draft. base_pointer: pointer to the schema.

    Raises: InvalidDocument.
    """
    validator = _metaschema_validator(draft.number)
    if validator.is_valid(schema):
        return
    text, path = _explain_error(draft, schema) if size <= _MAX_EXPLAINED_BYTES else (None, None)
    if text is None or path is None:
        error = next(iter(validator.iter_errors(schema)))
        text, path = error.message, error.instance_path
    value = schema
    for step in path:
        value = value[step]
    raise InvalidDocument(
        _truncate(text), DocumentLocation(pointer=join_pointer(base_pointer, *path), fragment=json_fragment(value))
    )


@lru_cache(maxsize=len(_DRAFTS))
def _metaschema_validator(number: int) -> Any:
    draft = next(draft for draft in _DRAFTS.values() if draft.number == number)
    return draft.fast_validator(draft.validator.META_SCHEMA)


def _explain_error(draft: JsonSchemaDraft, schema: Any) -> tuple[str | None, list[Any] | None]:
    try:
        error = best_match(draft.validator(draft.validator.META_SCHEMA).iter_errors(schema))
    except RecursionError:
        return None, None
    return (error.message, list(error.absolute_path)) if error else (None, None)


def _truncate(text: str) -> str:
    return text if len(text) <= _MAX_MESSAGE else text[: _MAX_MESSAGE - 1] + "…"
