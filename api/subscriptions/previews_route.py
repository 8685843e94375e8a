"""`/-/subscriptions`: previews of a subscription's events, and the URLs at which sinks consent to receive events.

Rules SUB-511, SUB-714.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from dataclasses import replace
from typing import Any, Final

from starlette.types import Receive

from api.auth.callers import Authenticator
from api.feeds.formats import NDJSON
from api.http.json_bodies import json_response
from api.http.limits import read_body
from api.http.methods import MethodNotAllowed
from api.http.problem_response import SUBSCRIPTIONS, root_link
from api.http.query_params import query_params
from api.http.request import Request
from api.http.response import JSON, Response
from api.subscriptions.context import SubscriptionApiContext, check_caller
from api.subscriptions.previews import PreviewParams, parse_preview_params, preview_result
from api.subscriptions.request_params import read_json
from api.subscriptions.routes import with_problem_codes
from domain.errors import problems
from domain.values.json_text import dumps
from projections.events.event_families import EventFamily
from projections.subscriptions.preview import Preview

PREVIEWS: Final = SUBSCRIPTIONS

_PREVIEW: Final = "preview"
_ALLOW: Final = "POST, OPTIONS"
_CONSENTS: Final = "GET, POST, OPTIONS"
_RATE: Final = b"webhook-allowed-rate"
_METHODS: Final = b"access-control-allow-methods"
_LINES: Final = (b"content-type", NDJSON.encode())


class PreviewRoutes:
    """The surface of previews and consents. gate: authenticates callers of previews.

    A sink proves itself by its secret.
    """

    def __init__(self, parts: SubscriptionApiContext, gate: Authenticator, families: tuple[EventFamily, ...]) -> None:
        self._parts = parts
        self._gate = gate
        self._families = families

    async def answer(self, request: Request, receive: Receive) -> Response:
        """See `dispatch.Surface`. Raises: any Problem, with a `code`."""
        return await with_problem_codes(self._answer(request, receive))

    async def _answer(self, request: Request, receive: Receive) -> Response:
        match request.segments[2:]:
            case (name,) if name == _PREVIEW:
                request = replace(request, caller=await self._gate.caller(request))
                _check_method(request, _ALLOW)
                if request.method == "OPTIONS":
                    return _options(request, _ALLOW)
                return await self._preview(request, await read_json(request, receive, self._parts.body))
            case (id, "consent", secret):
                _check_method(request, _CONSENTS)
                if request.method == "OPTIONS":
                    return _options(request, _CONSENTS)
                await read_body(request, receive, self._parts.body)
                return await self._consent(request, id, secret)
        raise problems.ApiNotFound()

    async def _consent(self, request: Request, id: str, secret: str) -> Response:
        """200 if the secret was valid. Raises: ApiNotFound."""
        given = request.header(_RATE) or ""
        rate = int(given) if given.isascii() and given.isdecimal() and 0 < len(given) < 10 else None
        # A HEAD is no consent, because chat and mail clients send it to preview links.
        good = request.method != "HEAD" and await asyncio.to_thread(self._parts.deliveries.consent, id, secret, rate)
        if not good:
            raise problems.ApiNotFound()
        return json_response(request, 200, {"consent": True})

    async def _preview(self, request: Request, body: Any) -> Response:
        check_caller(request.caller)
        query_params(request, ())
        quick = self._parts.registry.readers.quick_view
        wanted = await asyncio.to_thread(lambda: parse_preview_params(body, self._parts.supported(), quick().log))
        lines = NDJSON in (request.header(b"accept") or "")

        def job() -> Generator[Any, None, None]:
            yield [_LINES if lines else JSON, root_link(request.base), (b"cache-control", b"no-store")]
            yield from self._stream_lines(request, wanted, lines)

        headers, pieces = await self._parts.registry.streams.start(job)
        return Response(200, headers, pieces)

    def _stream_lines(self, request: Request, wanted: PreviewParams, lines: bool) -> Generator[bytes, None, None]:
        """The result in pieces. With `lines`, progress lines come before it."""
        readers = self._parts.registry.readers
        look = Preview(
            lambda: readers.quick_view().log, self._families, wanted.attributes, request.caller.can_read, wanted.limit
        )
        result = None
        for tally in look.scan(wanted.first, wanted.last):
            if lines and result is not None:
                yield result
            progress = {"position": tally.position, "matched": tally.matched.total()}
            result = dumps(progress) + b"\n" if lines else b""
            last = tally
        yield dumps(preview_result(last, look.errors)) + (b"\n" if lines else b"")


def _options(request: Request, allow: str) -> Response:
    return Response(200, [root_link(request.base), (b"allow", allow.encode()), (_METHODS, allow.encode())])


def _check_method(request: Request, allow: str) -> None:
    """Checks the method. Raises: MethodNotAllowed."""
    known = {"HEAD"} if "GET" in allow else set()
    if request.method not in {*allow.split(", "), *known}:
        raise MethodNotAllowed(problems.ActionNotSupported(action=request.method), allow)
