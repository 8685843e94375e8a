"""Responses of the legacy APIs: lists, Groups, and documents with their attributes in headers.

Rules LEG-203, LEG-301, LEG-302, LEG-503, LEG-511, LEG-521 to LEG-525, LEG-1106, LEG-1206.
"""

from __future__ import annotations

import re
from typing import Any, Final

from annals.api.compat.urls import lookup_url, version_url
from annals.api.http.browsers.stored_content import SANDBOX_POLICY, attachment_headers, location_headers
from annals.api.http.conditional import NO_CACHE
from annals.api.http.problem_response import root_link
from annals.api.http.request import Request
from annals.api.http.response import JSON, Headers, Response
from annals.domain.compat.ids import encode_segment
from annals.domain.values.header_values import encode, encode_text
from annals.domain.values.json_text import dumps
from annals.projections.compat.definitions import CompatDefinition

#: Text that a header can hold, with one character for each byte.
_HEADER_VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*\Z")
_DEFAULT_TYPE: Final = b"application/octet-stream"


def json_response(request: Request, status: int, body: Any, headers: Headers | None = None) -> Response:
    """A response with a JSON body."""
    return Response(status, [JSON, root_link(request.base), *(headers or [])], dumps(body))


def no_content_response(request: Request, headers: Headers) -> Response:
    """The response to a DELETE."""
    return Response(204, [root_link(request.base), *headers])


def document_response(definition: CompatDefinition, request: Request, asof_suffix: str) -> Response:
    """The document as the client sent it, with its attributes in headers.

    A document that is stored elsewhere gives a redirect (LEG-1206).
    """
    attributes = attribute_headers(definition, request.base, asof_suffix)
    location = version_location(definition, request.base, asof_suffix)
    if definition.remote_url is not None:
        return Response(
            303,
            [
                root_link(request.base),
                *location_headers(definition.remote_url),
                (b"content-location", location),
                *attributes,
            ],
        )
    headers = [
        (b"content-type", content_type_value(definition.contenttype)),
        root_link(request.base),
        (b"location", location),
        *attributes,
        (b"etag", definition.etag),
        NO_CACHE,
        SANDBOX_POLICY,
        *attachment_headers(definition.contenttype),
    ]
    return Response(200, headers, definition.content, is_document=True)


def post_response(definition: CompatDefinition, request: Request, headers: Headers) -> Response:
    """The response to a POST, whether or not it created a new Version (LEG-521)."""
    location_header = (b"location", version_location(definition, request.base, ""))
    attributes = attribute_headers(definition, request.base, "")
    return json_response(request, 200, {"id": definition.version.id}, [location_header, *attributes, *headers])


def attribute_headers(definition: CompatDefinition, root: str, asof_suffix: str) -> Headers:
    """The headers that carry attributes.

    Attributes without a value are left out; values are percent-encoded (LEG-503).
    """
    family, compat_version = definition.family, definition.version
    id_location = lookup_url(root, family, compat_version.uri, asof_suffix)
    values = {
        "Id": compat_version.id,
        "Version": str(compat_version.number),
        "Group-Id": encode_segment(definition.group),
        "Name": encode_segment(definition.child),
        "Format": definition.format,
        "Authority": definition.authority,
        "Description": definition.definition_description,
        "Version-Description": definition.description,
        "Createdtimeutc": definition.times.createdat,
        "Updatedtimeutc": definition.times.modifiedat,
        "Version-Createdtimeutc": definition.createdat,
    }
    prefix = family.headers.lower()
    headers = [(f"{prefix}-{name.lower()}".encode(), encode(value).encode()) for name, value in values.items() if value]
    return [*headers, (f"{prefix}-id-location".encode(), id_location.encode())]


def version_location(definition: CompatDefinition, root: str, asof_suffix: str) -> bytes:
    """The URL of the Version."""
    number = definition.version.number
    return version_url(root, definition.family, definition.group, definition.child, number, asof_suffix).encode()


def content_type_value(contenttype: str | None) -> bytes:
    """The stored Content-Type, byte for byte if a header can hold it (LEG-511, LEG-512); percent-encoded otherwise."""
    if not contenttype:
        return _DEFAULT_TYPE
    return contenttype.encode("latin-1") if _HEADER_VALUE.match(contenttype) else encode_text(contenttype).encode()
