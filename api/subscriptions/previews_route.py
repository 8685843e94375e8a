"""`/-/subscriptions`: previews of a subscription's events, and the URLs at which sinks consent to receive events.

Rules SUB-511, SUB-714.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any, Final

from starlette.types import Receive

from annals.api.auth.callers import Authenticator
from annals.api.feeds.formats import NDJSON
from annals.api.feeds.rights import visible_subjects
from annals.api.http.json_bodies import json_response
from annals.api.http.limits import read_body
from annals.api.http.methods import options_response, post_only_options
from annals.api.http.problem_response import SUBSCRIPTIONS, root_link
from annals.api.http.query_params import query_params
from annals.api.http.request import Request
from annals.api.http.response import JSON, Response
from annals.api.subscriptions.context import SubscriptionApiContext, check_caller
from annals.api.subscriptions.previews import PreviewParams, parse_preview_params, preview_result
from annals.api.subscriptions.request_params import read_json
from annals.api.subscriptions.routes import with_problem_codes
from annals.domain.errors import problems
from annals.domain.values.json_text import dumps
from annals.projections.events.event_families import EventFamily
from annals.projections.subscriptions.preview import Preview
from annals.projections.subscriptions.transport.webhook_handshake import granted_rate

PREVIEWS: Final = SUBSCRIPTIONS

_PREVIEW: Final = "preview"
_CONSENT_METHODS: Final = ("GET", "HEAD", "POST")
_CONSENT_METHODS_HEADER: Final = "GET, POST, OPTIONS"
_RATE_HEADER: Final = b"webhook-allowed-rate"
_LINES_TYPE: Final = (b"content-type", NDJSON.encode())


class PreviewRoutes:
    """The surface of previews and consents. authenticator: authenticates callers of previews.

    A sink proves itself by its secret.
    """

    def __init__(
        self, context: SubscriptionApiContext, authenticator: Authenticator, families: tuple[EventFamily, ...]
    ) -> None:
        self._context = context
        self._authenticator = authenticator
        self._families = families

    async def answer(self, request: Request, receive: Receive) -> Response:
        """See `dispatch.Surface`. Raises: any Problem, with a `code`."""
        return await with_problem_codes(self._answer(request, receive))

    async def _answer(self, request: Request, receive: Receive) -> Response:
        match request.segments[2:]:
            case (name,) if name == _PREVIEW:
                request = await self._authenticator.authenticate(request)
                if response := post_only_options(request):
                    return response
                return await self._preview(request, await read_json(request, receive, self._context.max_body))
            case (id, "consent", secret):
                if response := options_response(request, _CONSENT_METHODS, _CONSENT_METHODS_HEADER):
                    return response
                await read_body(request, receive, self._context.max_body)
                return await self._consent(request, id, secret)
        raise problems.ApiNotFound()

    async def _consent(self, request: Request, id: str, secret: str) -> Response:
        """200 if the secret was valid. Raises: ApiNotFound."""
        rate = granted_rate(request.header(_RATE_HEADER))
        # A HEAD is no consent, because chat and mail clients send it to preview links.
        is_valid = request.method != "HEAD" and await asyncio.to_thread(
            self._context.deliveries.consent, id, secret, rate
        )
        if not is_valid:
            raise problems.ApiNotFound()
        return json_response(request, 200, {"consent": True})

    async def _preview(self, request: Request, body: Any) -> Response:
        check_caller(request.caller)
        query_params(request, ())
        quick_view = self._context.registry.readers.quick_view
        preview_params = await asyncio.to_thread(
            lambda: parse_preview_params(body, self._context.read_support(), quick_view().log)
        )
        as_lines = NDJSON in (request.header(b"accept") or "")

        def job() -> Generator[Any, None, None]:
            yield [_LINES_TYPE if as_lines else JSON, root_link(request.base), (b"cache-control", b"no-store")]
            yield from self._result_pieces(request, preview_params, as_lines)

        headers, pieces = await self._context.registry.streams.start(job)
        return Response(200, headers, pieces)

    def _result_pieces(
        self, request: Request, preview_params: PreviewParams, as_lines: bool
    ) -> Generator[bytes, None, None]:
        """The result in pieces. With `as_lines`, progress lines come before it."""
        readers = self._context.registry.readers
        preview = Preview(
            lambda: readers.quick_view().log,
            self._families,
            preview_params.attributes,
            visible_subjects(request.caller),
            preview_params.limit,
        )
        result = None
        for counts in preview.scan(preview_params.first, preview_params.last):
            if as_lines and result is not None:
                yield result
            progress = {"position": counts.position, "matched": counts.matched.total()}
            result = dumps(progress) + b"\n" if as_lines else b""
            last_counts = counts
        yield dumps(preview_result(last_counts, preview.errors)) + (b"\n" if as_lines else b"")
