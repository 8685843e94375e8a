"""The document of a Version: which member of a request gives it, and which bytes are stored.

Spec: core 1.0-rc4, "<RESOURCE>* Attribute Processing". Rules ENT-120 to 124.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import MutableMapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from annals.domain.errors.problems import InvalidAttribute, OneResource
from annals.domain.model import ResourceType
from annals.domain.values.json_text import Json, dumps, loads


@dataclass(frozen=True, slots=True)
class DocumentWrite:
    """The document that a request gives.

    attribute: the member that gives it; None if the request has none. value: a JSON value, bytes, or None for an empty
    document.
    """

    attribute: str | None = None
    value: Json = None


def take_document(body: MutableMapping[str, Json], type: ResourceType, xid: str) -> DocumentWrite:
    """Removes the document members from a body and returns them; a `<RESOURCE>url` with a value stays, as an attribute.

    Raises: OneResource, InvalidAttribute.
    """
    _restore_attributes(body, type.singular if type.hasdocument else "")
    if not type.hasdocument:
        return DocumentWrite()
    inline, url, encoded = type.singular, type.singular + "url", type.singular + "base64"
    members = {name: body[name] for name in (inline, url, encoded) if name in body}
    values = {name: value for name, value in members.items() if value is not None}
    if len(values) > 1:
        raise OneResource(xid, list=",".join(values))
    for name in (inline, encoded):
        body.pop(name, None)
    if url in values:
        return DocumentWrite(url)
    if members:
        body[url] = None  # any of the three members clears an external reference
    if encoded in values:
        return DocumentWrite(encoded, _decode_base64(values[encoded], encoded, xid))
    if inline in values:
        return DocumentWrite(inline, values[inline])
    return DocumentWrite(next(iter(members), None))


def _restore_attributes(body: MutableMapping[str, Json], document: str) -> None:
    """Makes values again of those that `expected_checks` took for documents. document: the name of the one."""
    for name, value in body.items():
        if isinstance(value, bytes) and name != document:
            body[name] = loads(value)


def implied_contenttype(
    document_write: DocumentWrite, type: ResourceType, mediatype: str, stored: Any, *, patch: bool, keepids: bool
) -> str | None:
    """The `contenttype` that a document implies if the request gives none; None: leave it unchanged (ENT-123).

    keepids: the document is a copy, so bytes without a type have none in the other registry either.
    """
    inline = document_write.attribute == type.singular and document_write.value is not None
    encoded = document_write.attribute == type.singular + "base64" and document_write.value is not None
    if patch:
        return mediatype if (inline or (encoded and not keepids)) and stored is None else None
    return mediatype if inline else None


def encode_document(value: Json, representation: str) -> bytes:
    """The bytes to store for a document that is given as a JSON value.

    representation: how documents of its media type are inlined (ResourceType.document_form). Text is stored unchanged
    unless the document is JSON.
    """
    if isinstance(value, bytes):
        return value
    if isinstance(value, str) and representation != "json":
        return value.encode()
    # A copy, because the JSON writer's own bytes object keeps its reserved buffer, several times the size of a small
    # document.
    return memoryview(dumps(value)).tobytes()


def digest(content: bytes) -> str | None:
    """SHA-256 in hex; None for the empty document."""
    return sha256(content).hexdigest() if content else None


def _decode_base64(value: Json, name: str, xid: str) -> bytes:
    try:
        if not isinstance(value, str):
            raise ValueError
        return base64.b64decode(value.encode("ascii"), validate=True)
    except (ValueError, binascii.Error):
        raise InvalidAttribute(xid, name=name, error_detail="it has to be a base64 string") from None
