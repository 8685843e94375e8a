"""Reads forms that browsers send: fields as text, and files."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection, Mapping
from typing import Final, NamedTuple
from urllib.parse import parse_qsl

from python_multipart.multipart import parse_options_header
from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.types import Receive

from annals.api.http.limits import read_body
from annals.api.http.request import Request
from annals.domain.errors.http_errors import UnsupportedMediaType
from annals.domain.errors.problems import BadRequest

#: Limits of forms without files, and of those that have a document.
MAX_FORM_BYTES: Final = 32 * 1024
MAX_UPLOAD_BYTES: Final = 32 << 20
#: The limit of a form that a sign-in keeps, from callers that are not known yet.
MAX_KEPT_BYTES: Final = 4 << 20
_MAX_FIELDS: Final = 1000
_URLENCODED: Final = "application/x-www-form-urlencoded"
_CHARSETS: Final = (b"utf-8", b"us-ascii")
_MULTIPART: Final = "multipart/form-data"


class FormFile(NamedTuple):
    """A file that a form has. type: as the browser names it; empty if it does not."""

    name: str
    content: bytes
    type: str


#: The prefix of the fields of a form that a sign-in in between has kept (UI-87).
KEPT: Final = "kept "
#: What the name of a field with the name of a file ends with.
_NAME: Final = " name"
#: What the name of a field ends with that says that a secret was typed, which no page repeats.
TYPED_BEFORE: Final = " typed before"


class Form(NamedTuple):
    """A form: the text of each field, and the files that were chosen. Line ends are line feeds."""

    fields: Mapping[str, str]
    files: Mapping[str, FormFile]

    def get(self, name: str) -> str:
        """The text of a field; empty without it."""
        return self.fields.get(name, "")

    def file_name(self, name: str) -> str:
        """The name of a file that was chosen, also before a sign-in in between; empty without one."""
        file = self.files.get(name)
        return file.name if file is not None else self.get(name + _NAME)

    def to_keep(self, secret_fields: Collection[str]) -> dict[str, str]:
        """The fields that a sign-in in between keeps: of a secret that it was typed, and of a file only its name,
        because no page can choose a file.
        """
        shown = {name: text for name, text in self.fields.items() if name not in secret_fields}
        typed = {name + TYPED_BEFORE: "on" for name in secret_fields if self.get(name).strip()}
        return {**shown, **typed, **{name + _NAME: file.name for name, file in self.files.items()}}

    @property
    def kept(self) -> dict[str, str]:
        """The fields of the form that a sign-in has kept, without their prefix."""
        return {name.removeprefix(KEPT): text for name, text in self.fields.items() if name.startswith(KEPT)}


async def read_form(request: Request, receive: Receive) -> Mapping[str, str]:
    """The fields of a short form. Raises: UnsupportedMediaType, BodyTooLarge, BadRequest, ClientDisconnect."""
    if request.media_type != _URLENCODED:
        raise UnsupportedMediaType(list=_URLENCODED)
    return _parse_fields(await read_body(request, receive, MAX_FORM_BYTES))


async def read_upload(request: Request, receive: Receive, max_size: int = MAX_UPLOAD_BYTES) -> Form:
    """A form that may have long texts and files. max_size: in bytes. Raises: see `read_form`."""
    media_type = request.media_type
    if media_type == _URLENCODED:
        body = await read_body(request, receive, max_size)
        return Form(_with_line_feeds(await asyncio.to_thread(_parse_fields, body)), {})
    if media_type != _MULTIPART:
        raise UnsupportedMediaType(list=f"{_MULTIPART}, {_URLENCODED}")
    return await _parse_parts(request, await read_body(request, receive, max_size))


def _parse_fields(body: bytes) -> dict[str, str]:
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=_MAX_FIELDS, errors="strict"))
    except ValueError:
        raise BadRequest(error_detail="the body is not a form in UTF-8 with few fields") from None


async def _parse_parts(request: Request, body: bytes) -> Form:
    _check_charset(request)

    async def stream() -> AsyncGenerator[bytes, None]:
        yield body
        yield b""

    parser = MultiPartParser(
        Headers(raw=request.headers), stream(), max_fields=_MAX_FIELDS, max_part_size=MAX_UPLOAD_BYTES
    )
    try:
        parsed = await parser.parse()
    except (MultiPartException, KeyError, ValueError, LookupError):
        raise BadRequest(error_detail="the body is not a form with few fields") from None
    fields = {name: value for name, value in parsed.multi_items() if isinstance(value, str)}
    files = {
        name: FormFile(value.filename, await value.read(), value.content_type or "")
        for name, value in parsed.multi_items()
        if isinstance(value, UploadFile) and value.filename
    }
    await parsed.close()
    return Form(_with_line_feeds(fields), files)


def _check_charset(request: Request) -> None:
    """Refuses forms in other charsets: the parser would use any codec that a client names, some of them quadratic."""
    _, parameters = parse_options_header(request.header(b"content-type"))
    if parameters.get(b"charset", b"utf-8").lower() not in _CHARSETS:
        raise BadRequest(error_detail="the body is not a form in UTF-8 with few fields")


def with_line_feeds(text: str) -> str:
    """A text with line feeds. Browsers send the line ends of a text area as CR and LF, whatever they were before."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _with_line_feeds(fields: Mapping[str, str]) -> dict[str, str]:
    return {name: with_line_feeds(value) for name, value in fields.items()}
