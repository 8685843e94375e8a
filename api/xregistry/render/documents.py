"""Documents inside JSON: the name and the value of the member that holds a document.

Spec: core 1.0-rc4, "<RESOURCE> Attribute", "<RESOURCE>base64 Attribute".
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from typing import Final

from annals.api.xregistry.render.json_members import json_string
from annals.domain.model import ResourceType
from annals.domain.values.json_text import is_json
from annals.projections.entities.rows import EntityRow

#: Returns the bytes of a document by its SHA-256.
ReadDocument = Callable[[str], bytes]


def row_document_member(
    row: EntityRow, type: ResourceType, contenttype: str | None, documents: ReadDocument, binary: bool = False
) -> tuple[str, str]:
    """Name and JSON text of the member that holds the document of a row. contenttype: the row's."""
    content = documents(row.document) if row.document else b""
    return document_member(type, contenttype, content, binary)


def document_member(
    type: ResourceType, contenttype: str | None, content: bytes, binary: bool = False
) -> tuple[str, str]:
    """Name and JSON text of the member that holds a document. binary: always use base64.

    An empty document, and bytes that do not match their media type, are encoded as base64.
    """
    encoding = type.document_form(contenttype) if content and not binary else "binary"
    text = _FORMS[encoding](content)
    if text is None:
        return f"{type.singular}base64", f'"{b64encode(content).decode()}"'
    return type.singular, text


def _as_json(content: bytes) -> str | None:
    """The document unchanged, with its spacing and digits; None if it is not JSON."""
    return content.decode() if is_json(content) else None


def _as_string(content: bytes) -> str | None:
    try:
        return json_string(content.decode())
    except UnicodeDecodeError:
        return None


def _as_binary(content: bytes) -> str | None:
    return None


_FORMS: Final[dict[str, Callable[[bytes], str | None]]] = {"json": _as_json, "string": _as_string, "binary": _as_binary}
