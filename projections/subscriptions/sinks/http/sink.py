"""The HTTP sink for webhooks.

Any number of `send` calls may run at a time; connections are kept open. A sink belongs to one event loop.
Spec: CloudEvents HTTP protocol binding 1.0.2; HTTP 1.1 Web Hooks; rules SUB-305, SUB-701 to 715, SUB-823.
"""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from cloudevents.core.v1.event import CloudEvent

from annals.domain.subscriptions.protocol_settings import is_secret_header
from annals.projections.outgoing.http_client import MAX_CONNECTIONS, USER_AGENT, HttpClient, HttpResponse, RequestFailed
from annals.projections.outgoing.resolver import Resolver
from annals.projections.subscriptions.contract import (
    DELIVERED,
    Credential,
    DeliveryResult,
    Outcome,
    Sink,
    SinkTarget,
    sink,
)
from annals.projections.subscriptions.sinks.http.messages import HttpMessage, encode_message
from annals.projections.subscriptions.sinks.http.outcomes import response_outcome
from annals.projections.subscriptions.sinks.http.signature import signature_headers
from annals.projections.subscriptions.transport.scrub import scrub_secrets

#: Largest size of a batch in bytes (SUB-706).
MAX_BATCH_BYTES: Final = 1024 * 1024
#: Headers that only the binding or the connection may set (SUB-201, SUB-708).
_RESERVED_HEADERS: Final = frozenset(
    ("host", "content-length", "content-type", "transfer-encoding", "connection", "upgrade", "te", "trailer")
)
_RESERVED_PREFIXES: Final = ("ce-", "webhook-")
_TOO_LARGE: Final = Outcome(DeliveryResult.REJECTED, "batch", "the events are larger than one request may be")


@sink("HTTP")
def open_http(target: SinkTarget, resolver: Resolver) -> Sink:
    """A sink that connects on its first send."""
    return HttpSink(target, resolver)


class HttpSink:
    """See contract.Sink."""

    #: Largest useful number of concurrent `send` calls.
    concurrency: Final = MAX_CONNECTIONS

    def __init__(self, target: SinkTarget, resolver: Resolver) -> None:
        self._target, self._resolver = target, resolver
        self._fixed_headers = tuple(_fixed_headers(target))
        self._secret_values = tuple(_secret_values(target))
        self._client: HttpClient | None = None

    async def send(self, events: Sequence[CloudEvent]) -> Outcome:
        """See contract.Sink. Sends several events as one batch, if the subscription asks for batches."""
        target = self._target
        if not events:
            return DELIVERED
        if len(events) > (target.settings.get("maxbatchsize", 100) if target.contentmode == "batched" else 1):
            return _TOO_LARGE
        try:
            message = encode_message(events, target.contentmode)
        except (ValueError, RecursionError) as error:
            return Outcome(DeliveryResult.REJECTED, "unwritable", type(error).__name__)
        if len(events) > 1 and len(message.body) > MAX_BATCH_BYTES:
            return _TOO_LARGE
        try:
            return self._outcome(await self._send_request(events, message))
        except RequestFailed as failure:
            result = DeliveryResult.REJECTED if failure.code == "request" else DeliveryResult.RETRY
            return Outcome(result, failure.code, failure.message)

    async def close(self) -> None:
        """See contract.Sink."""
        if self._client is not None:
            await self._client.close()

    async def _send_request(self, events: Sequence[CloudEvent], message: HttpMessage) -> HttpResponse:
        """The response to the request. Raises: RequestFailed."""
        target = self._target
        if self._client is None:
            self._client = HttpClient(target.uri, self._resolver, has_secrets=target.credential is not None)
        signature = (
            signature_headers(target.signing_key, events, message.body, time.time())
            if target.signing_key is not None
            else ()
        )
        headers = (*self._fixed_headers, *message.headers, *signature)
        method = target.settings.get("method", "POST")
        return await self._client.request(method, headers, message.body, target.timeout)

    def _outcome(self, response: HttpResponse) -> Outcome:
        if 200 <= response.status < 300:
            return response_outcome(response.status, "", None, datetime.now(UTC))
        return response_outcome(
            response.status, self._message(response), response.header("retry-after"), datetime.now(UTC)
        )

    def _message(self, response: HttpResponse) -> str:
        """The sink's own message, or the phrase of the status."""
        is_encoded = response.header("content-encoding") not in (None, "", "identity")
        message = "" if is_encoded else scrub_secrets(response.body, self._secret_values, response.is_complete)
        if message or response.status not in _PHRASES:
            return message
        return _PHRASES[response.status]


_PHRASES: Final = {status.value: status.phrase for status in HTTPStatus}


def authorization_header(credential: Credential) -> str:
    """The value of `Authorization` (SUB-305)."""
    if credential.type == "PLAIN":
        return f"Basic {b64encode(f'{credential.identifier}:{credential.secret}'.encode()).decode()}"
    scheme = "Bearer" if credential.tokentype.lower() == "bearer" else credential.tokentype
    return f"{scheme} {credential.token}"


def _fixed_headers(target: SinkTarget) -> Iterator[tuple[str, str]]:
    """The headers of every delivery to a target."""
    custom_headers: Mapping[str, str] = target.settings.get("headers", {})
    allowed = {name: value for name, value in custom_headers.items() if not _is_reserved(name, target)}
    if not any(name.lower() == "user-agent" for name in allowed):
        yield "User-Agent", USER_AGENT
    yield from allowed.items()
    if target.credential is not None:
        yield "Authorization", authorization_header(target.credential)
    if target.origin:
        yield "WebHook-Request-Origin", target.origin


def _is_reserved(name: str, target: SinkTarget) -> bool:
    lower_name = name.lower()
    return (
        lower_name in _RESERVED_HEADERS
        or lower_name.startswith(_RESERVED_PREFIXES)
        or (lower_name == "authorization" and target.credential is not None)
    )


def _secret_values(target: SinkTarget) -> Iterator[str]:
    """The secrets that are removed from a sink's answers."""
    if target.credential is not None:
        yield from (target.credential.secret, target.credential.token)
        yield authorization_header(target.credential).partition(" ")[2]
    headers: Mapping[str, str] = target.settings.get("headers", {})
    for name, value in headers.items():
        if is_secret_header(name):
            yield value
            yield value.rpartition(" ")[2]  # the token after its scheme
    query = urlsplit(target.uri).query
    yield query
    yield from (value for _, value in parse_qsl(query))
    if target.signing_key is not None:
        yield b64encode(target.signing_key).decode()
