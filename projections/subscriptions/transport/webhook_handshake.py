"""The client side of the webhook handshake: whether a sink accepts deliveries, and how many a minute.

The deliverer decides when to ask, and what to do without consent.
Spec: CloudEvents HTTP 1.1 Web Hooks, "Abuse Protection"; rules SUB-711 to 714.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from projections.outgoing.http_client import USER_AGENT, HttpClient, HttpResponse, RequestFailed
from projections.outgoing.resolver import Resolver
from projections.subscriptions.contract import SinkTarget

#: Largest number of digits of a rate.
_DIGITS: Final = 9


@dataclass(frozen=True, slots=True)
class HandshakeResult:
    """A sink's answer.

    rate: requests a minute, None for unlimited.
    reason: why it refused, for the owner.
    """

    is_allowed: bool
    rate: int | None = None
    reason: str = ""


class WebhookHandshake:
    """A client for handshakes. One instance serves all sinks and concurrent tasks."""

    def __init__(self, resolver: Resolver) -> None:
        self._resolver = resolver

    async def validate(self, target: SinkTarget, rate: int | None, callback: str | None) -> HandshakeResult:
        """Whether a sink consents.

        rate: requests a minute to ask for.
        callback: URL at which the sink may consent later.
        The request is no login: it carries nothing that identifies the subscription's owner to the sink.
        """
        try:
            client = HttpClient(target.uri, self._resolver)
        except RequestFailed as failed:
            return HandshakeResult(False, reason=failed.message)
        try:
            answer = await client.request(
                "OPTIONS", _request_headers(target.origin, rate, callback), None, target.seconds
            )
        except RequestFailed as failed:
            return HandshakeResult(False, reason=failed.message)
        finally:
            await client.close()
        return handshake_result(answer, target.origin, rate)


def _request_headers(origin: str, rate: int | None, callback: str | None) -> Iterator[tuple[str, str]]:
    yield "User-Agent", USER_AGENT
    yield "WebHook-Request-Origin", origin
    if rate is not None:
        yield "WebHook-Request-Rate", str(rate)
    if callback is not None:
        yield "WebHook-Request-Callback", callback


def handshake_result(answer: HttpResponse, origin: str, asked: int | None) -> HandshakeResult:
    """The meaning of an answer. asked: the requested rate. Only status 405 has a meaning of its own: a refusal."""
    allowed, rate = answer.header("webhook-allowed-origin"), answer.header("webhook-allowed-rate")
    if answer.status == 405:
        return HandshakeResult(False, reason="the sink does not know OPTIONS (405)")
    if allowed is None:
        return HandshakeResult(False, reason=f"the answer ({answer.status}) has no WebHook-Allowed-Origin")
    if allowed.strip() != "*" and allowed.strip().lower() != origin.lower():
        return HandshakeResult(False, reason="WebHook-Allowed-Origin names another origin")
    if rate is None:
        wanting = asked is not None
        return HandshakeResult(not wanting, reason="the answer has no WebHook-Allowed-Rate" if wanting else "")
    try:
        return HandshakeResult(True, parse_rate(rate))
    except ValueError:
        return HandshakeResult(False, reason="WebHook-Allowed-Rate is neither * nor a number above 0")


def parse_rate(text: str) -> int | None:
    """The rate in a `WebHook-Allowed-Rate`, None for unlimited. Raises: ValueError."""
    stripped = text.strip()
    if stripped == "*":
        return None
    if not (stripped.isascii() and stripped.isdigit() and 0 < len(stripped) <= _DIGITS and int(stripped) > 0):
        raise ValueError("neither * nor a number above 0")
    return int(stripped)


def callback_url(public: str, id: str, secret: str) -> str:
    """The URL at which a sink consents. public: the registry's root URL, as sinks see it."""
    return f"{public.rstrip('/')}/-/subscriptions/{quote(id, safe='')}/consent/{quote(secret, safe='')}"
