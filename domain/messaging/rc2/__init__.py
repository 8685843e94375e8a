"""Documents in older forms, and what they say in the form of now.

A dialect is a pure function from a document to a tree that an ordinary write of the registry takes, with a report of
everything that it changed on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from domain.messaging.rc2 import endpoints
from domain.messaging.rc2.document_editor import DialectMismatch, TranslatedDocument
from domain.values.json_text import Json

__all__ = ["DIALECTS", "DialectMismatch", "TranslatedDocument"]

#: The dialects by the name that requests ask for them with. Each raises Foreign for a document that is in no such form.
DIALECTS: Final[Mapping[str, Callable[[Json], TranslatedDocument]]] = {endpoints.NAME: endpoints.translate}
