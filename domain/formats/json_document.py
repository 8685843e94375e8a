"""Parsing of JSON documents, with the line of a syntax error."""

from __future__ import annotations

from typing import Any

from annals.domain.formats.contract import MAX_FRAGMENT, DocumentLocation, InvalidDocument
from annals.domain.values import json_text


def load_json(document: bytes) -> Any:
    """The value of a JSON document. Raises: InvalidDocument, with the line of the syntax error."""
    if not document:
        raise InvalidDocument("the document is empty")
    try:
        return json_text.loads(document)
    except json_text.InvalidJson as error:
        raise InvalidDocument(f"the document is not JSON: {error}", _error_location(error)) from None


def _error_location(error: Exception) -> DocumentLocation | None:
    line = getattr(error.__context__, "lineno", None)
    text = getattr(error.__context__, "doc", "")
    return DocumentLocation(line=line, fragment=text.split("\n", line)[line - 1][:MAX_FRAGMENT]) if line else None
