"""Reads forms that browsers send."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl

from starlette.types import Receive

from annals.api.http.limits import read_body
from annals.api.http.request import Request
from annals.domain.errors.http_errors import UnsupportedMediaType
from annals.domain.errors.problems import BadRequest

MAX_FORM_BYTES: Final = 32 * 1024
_MAX_FIELDS: Final = 20
_FORM: Final = "application/x-www-form-urlencoded"


async def read_form(request: Request, receive: Receive) -> Mapping[str, str]:
    """The fields of a form. Raises: UnsupportedMediaType, BodyTooLarge, BadRequest, ClientDisconnect."""
    if (request.header(b"content-type") or "").partition(";")[0].strip().lower() != _FORM:
        raise UnsupportedMediaType(list=_FORM)
    body = await read_body(request, receive, MAX_FORM_BYTES)
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_MAX_FIELDS, errors="strict"))
    except ValueError:
        raise BadRequest(error_detail="the body is not a form in UTF-8 with few fields") from None
