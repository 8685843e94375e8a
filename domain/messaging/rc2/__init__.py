"""Translates documents of older specification versions into the current form.

A dialect is a pure function from a document to a tree for an ordinary write, with a report of all its changes.
Documents of the legacy APIs are in `domain/compat`. Begin with `endpoints.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from annals.domain.messaging.rc2 import endpoints
from annals.domain.messaging.rc2.document_editor import DialectMismatch, TranslatedDocument
from annals.domain.values.json_text import Json

__all__ = ["DIALECTS", "DialectMismatch", "TranslatedDocument"]

#: The dialects by the name that requests use. Each raises DialectMismatch for a document in another form.
DIALECTS: Final[Mapping[str, Callable[[Json], TranslatedDocument]]] = {endpoints.NAME: endpoints.translate}
