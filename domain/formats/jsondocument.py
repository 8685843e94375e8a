"""Documents that are JSON: their value, or the line where they are none."""

from __future__ import annotations

from typing import Any

from domain import jsontext
from domain.formats.contract import FRAGMENT, Spot, Violation


def value_of(document: bytes) -> Any:
    """The value of a JSON document. Raises: Violation, with the line where the text breaks off being JSON."""
    if not document:
        raise Violation("the document is empty")
    try:
        return jsontext.loads(document)
    except jsontext.InvalidJson as error:
        raise Violation(f"the document is not JSON: {error}", _line(error)) from None


def _line(error: Exception) -> Spot | None:
    line = getattr(error.__context__, "lineno", None)
    text = getattr(error.__context__, "doc", "")
    return Spot(line=line, fragment=text.split("\n", line)[line - 1][:FRAGMENT]) if line else None
