"""Answers of the older APIs: lists, Groups, and documents with their attributes in headers.

Rules LEG-203, LEG-301, LEG-302, LEG-503, LEG-511, LEG-521 to LEG-525, LEG-1106, LEG-1206.
"""

from __future__ import annotations

import re
from typing import Any, Final

from api.answer import JSON, Answer, Headers
from api.compat.urls import lookup_url, version_url
from api.conditional import REVALIDATED
from api.problem import root_link
from api.request import Request
from api.stored_content import POLICY, attached, location
from domain.compat.ids import segment
from domain.headervalues import encode, encode_text
from domain.jsontext import dumps
from projections.compat_definitions import Definition

#: What a header can hold, a character for each byte.
_HEADER: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*\Z")
_UNTYPED: Final = b"application/octet-stream"


def json_answer(request: Request, status: int, body: Any, headers: Headers | None = None) -> Answer:
    """An answer with a JSON body."""
    return Answer(status, [JSON, root_link(request.base), *(headers or [])], dumps(body))


def done(request: Request, headers: Headers) -> Answer:
    """The answer to a DELETE."""
    return Answer(204, [root_link(request.base), *headers])


def document_answer(definition: Definition, request: Request, moment: str) -> Answer:
    """The document as it was sent, its attributes in headers; where it is elsewhere, the way there (LEG-1206)."""
    attributes = attribute_headers(definition, request.base, moment)
    place = version_place(definition, request.base, moment)
    if definition.elsewhere is not None:
        return Answer(
            303, [root_link(request.base), *location(definition.elsewhere), (b"content-location", place), *attributes]
        )
    headers = [
        (b"content-type", media_type(definition.contenttype)),
        root_link(request.base),
        (b"location", place),
        *attributes,
        (b"etag", definition.tag),
        REVALIDATED,
        POLICY,
        *attached(definition.contenttype),
    ]
    return Answer(200, headers, definition.content, as_stored=True)


def created_answer(definition: Definition, request: Request, headers: Headers) -> Answer:
    """The answer to a POST, whether or not there is something new (LEG-521)."""
    place = (b"location", version_place(definition, request.base, ""))
    attributes = attribute_headers(definition, request.base, "")
    return json_answer(request, 200, {"id": definition.shown.id}, [place, *attributes, *headers])


def attribute_headers(definition: Definition, root: str, moment: str) -> Headers:
    """The headers that carry attributes, those that are set; values percent-encoded (LEG-503)."""
    family, shown = definition.family, definition.shown
    lookup = lookup_url(root, family, shown.uri, moment)
    values = {
        "Id": shown.id,
        "Version": str(shown.number),
        "Group-Id": segment(definition.group),
        "Name": segment(definition.child),
        "Format": definition.format,
        "Authority": definition.authority,
        "Description": definition.about,
        "Version-Description": definition.description,
        "Createdtimeutc": definition.createdat,
        "Updatedtimeutc": definition.modifiedat,
        "Version-Createdtimeutc": shown.row.createdat,
    }
    prefix = family.headers.lower()
    found = [(f"{prefix}-{name.lower()}".encode(), encode(value).encode()) for name, value in values.items() if value]
    return [*found, (f"{prefix}-id-location".encode(), lookup.encode())]


def version_place(definition: Definition, root: str, moment: str) -> bytes:
    """The URL of the Version."""
    number = definition.shown.number
    return version_url(root, definition.family, definition.group, definition.child, number, moment).encode()


def media_type(contenttype: str | None) -> bytes:
    """The Content-Type that was stored, byte for byte as far as a header can hold it (LEG-511, LEG-512)."""
    if not contenttype:
        return _UNTYPED
    return contenttype.encode("latin-1") if _HEADER.match(contenttype) else encode_text(contenttype).encode()
