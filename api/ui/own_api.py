"""The registry's own API, as pages use it: in process, through the same surfaces as requests of clients.

So rights, past moments, cursors, dry runs and errors are the API's. A page never reads the store.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.types import Message, Receive

from annals.api.http.methods import Handler, MethodNotAllowed
from annals.api.http.request import Request
from annals.api.http.response import CORRELATION_HEADER, Headers, Response
from annals.domain.errors.problems import TooLarge
from annals.domain.values.json_text import Json, dumps, loads
from annals.projections.log.answer_position import begin_answer

#: Values by name; None for a parameter that is left out.
Query = Mapping[str, str | Sequence[str] | None]

#: Headers that name the caller. All others of a page's request are about the page.
_CREDENTIAL_HEADERS: Final = (b"authorization", b"cookie", b"client-cert")
_ACCEPT: Final = (b"accept", b"application/json")
_LINK: Final = re.compile(r"<([^>]*)>([^,<]*)")
_LINK_RELATION: Final = re.compile(r'rel="?([^";]+)"?')
_LINK_COUNT: Final = re.compile(r"count=(\d+)")
_SEE_OTHER: Final = 303
#: Maximum size of an answer that a page shows.
MAX_ANSWER_BYTES: Final = 8 << 20


@dataclass(frozen=True)
class ApiLink:
    """A link of an answer. query: its parameters. count: of the whole list, if the link says so."""

    url: str
    query: Mapping[str, str]
    count: int | None = None


@dataclass(frozen=True)
class ApiAnswer:
    """An answer of the API. position: of the state that it shows; None if it shows none."""

    status: int
    headers: Headers
    body: bytes
    position: int | None = None

    @cached_property
    def json(self) -> Any:
        """The body as JSON; None for an empty body."""
        return loads(self.body) if self.body else None

    def header(self, name: str) -> str | None:
        """The value of a header, whose name is in lower case; None without it."""
        return next((value.decode("latin-1") for key, value in self.headers if key == name.encode()), None)

    @property
    def is_elsewhere(self) -> bool:
        """Whether the document that was asked for has another URL, which a `location` names unless it is a script."""
        return self.status == _SEE_OTHER

    @property
    def correlation_id(self) -> str | None:
        """The id of the interaction that a write has made; None if it has recorded nothing."""
        return self.header(CORRELATION_HEADER.decode())

    def link(self, relation: str) -> ApiLink | None:
        """The link with a relation, such as `next`; None without one."""
        for name, value in self.headers:
            for url, parameters in _LINK.findall(value.decode("latin-1")) if name == b"link" else ():
                named = _LINK_RELATION.search(parameters)
                if named and named[1] == relation:
                    count = _LINK_COUNT.search(parameters)
                    return ApiLink(url, dict(parse_qsl(urlsplit(url).query)), int(count[1]) if count else None)
        return None


class OwnApi:
    """Sends requests of pages to the surfaces of this server. answer: finds the surface and returns its answer."""

    def __init__(self, answer: Handler) -> None:
        self._answer = answer

    async def get(self, page_request: Request, path: str, query: Query | None = None) -> ApiAnswer:
        """The answer to a read. page_request: of the page, which has the caller. path: as in a URL, below the root.

        Raises: Problem, as the API answers it; TooLarge for an answer that no page can show.
        """
        return await self.send(page_request, "GET", path, query)

    async def send(
        self,
        page_request: Request,
        method: str,
        path: str,
        query: Query | None = None,
        body: bytes | Json = b"",
        content_type: str = "application/json",
        headers: Headers | None = None,
    ) -> ApiAnswer:
        """The answer to a request. body: bytes, or a value that is sent as JSON. Raises: see `get`."""
        answer_position = begin_answer()
        response = await self.open(page_request, method, path, query, body, content_type, headers)
        chunks = [*response.first_chunks]
        if isinstance(response.body, bytes):
            chunks.append(response.body)
        else:
            chunks += await _read_stream(response.body, sum(map(len, chunks)))
        return ApiAnswer(response.status, response.headers, b"".join(chunks), answer_position.position)

    async def lines(self, page_request: Request, path: str, query: Query, count: int) -> AsyncGenerator[Any, None]:
        """The values of the first lines of an answer in NDJSON, of which no more is read. Raises: Problem."""
        response = await self.open(page_request, "GET", path, query)
        async with aclosing(_chunks(response)) as chunks:
            rest = b""
            async for chunk in chunks:
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    if count == 0:
                        return
                    count -= 1
                    yield loads(line)

    async def open(
        self,
        page_request: Request,
        method: str,
        path: str,
        query: Query | None = None,
        body: bytes | Json = b"",
        content_type: str = "application/json",
        headers: Headers | None = None,
    ) -> Response:
        """The answer to a request before its body is read, which may be a stream of any length. Raises: Problem."""
        content = body if isinstance(body, bytes) else dumps(body)
        own_headers = [header for header in page_request.headers if header[0] in _CREDENTIAL_HEADERS]
        if method != "GET":
            own_headers.append((b"content-type", content_type.encode()))
        request = replace(
            page_request.with_path(path),
            method=method,
            query=query_text(query).encode(),
            headers=[*own_headers, _ACCEPT, *(headers or [])],
        )
        try:
            return await self._answer(request, _receive_once(content))
        except MethodNotAllowed as error:
            raise error.problem from None


def query_text(query: Query | None) -> str:
    """The query as in a URL; a parameter without a value has no `=`."""
    pairs = [
        (name, value)
        for name, given in (query or {}).items()
        if given is not None
        for value in ([given] if isinstance(given, str) else given)
    ]
    return "&".join(urlencode([pair], safe="/:@$,*") if pair[1] else urlencode([pair])[:-1] for pair in pairs)


async def _chunks(response: Response) -> AsyncGenerator[bytes, None]:
    """The pieces of a body, whole or streamed."""
    for chunk in response.first_chunks:
        yield chunk
    if isinstance(response.body, bytes):
        yield response.body
        return
    async with aclosing(response.body) as body:
        async for chunk in body:
            yield chunk


async def _read_stream(body: AsyncGenerator[bytes, None], size: int) -> list[bytes]:
    """The pieces of a streamed body. Raises: TooLarge."""
    chunks = []
    try:
        async for chunk in body:
            chunks.append(chunk)
            size += len(chunk)
            if size > MAX_ANSWER_BYTES:
                raise TooLarge()
    finally:
        await body.aclose()
    return chunks


def _receive_once(content: bytes) -> Receive:
    """A `receive` of ASGI that has a whole body."""

    async def receive() -> Message:
        return {"type": "http.request", "body": content, "more_body": False}

    return receive
