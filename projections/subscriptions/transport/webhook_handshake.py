"""The client side of the webhook handshake: whether a sink accepts deliveries, and how many a minute.

The deliverer decides when to ask, and what to do without consent.
Spec: CloudEvents HTTP 1.1 Web Hooks, "Abuse Protection"; rules SUB-711 to 714.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from annals.projections.outgoing.http_client import USER_AGENT, HttpClient, HttpResponse, RequestFailed
from annals.projections.outgoing.resolver import Resolver
from annals.projections.subscriptions.contract import SinkTarget

#: Largest number of digits of a rate.
_MAX_RATE_DIGITS: Final = 9


@dataclass(frozen=True, slots=True)
class HandshakeResult:
    """A sink's answer, or that there was none.

    rate: requests a minute, None for unlimited.
    reason: why there is no consent, for the owner.
    is_answered: whether the sink has answered.
    """

    is_allowed: bool
    rate: int | None = None
    reason: str = ""
    is_answered: bool = True


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
        except RequestFailed as error:
            return HandshakeResult(False, reason=error.message, is_answered=False)
        try:
            response = await client.request(
                "OPTIONS", _request_headers(target.origin, rate, callback), None, target.timeout
            )
        except RequestFailed as error:
            return HandshakeResult(False, reason=error.message, is_answered=False)
        finally:
            await client.close()
        return handshake_result(response, target.origin, rate)


def _request_headers(origin: str, rate: int | None, callback: str | None) -> Iterator[tuple[str, str]]:
    yield "User-Agent", USER_AGENT
    yield "WebHook-Request-Origin", origin
    if rate is not None:
        yield "WebHook-Request-Rate", str(rate)
    if callback is not None:
        yield "WebHook-Request-Callback", callback


def handshake_result(response: HttpResponse, origin: str, requested_rate: int | None) -> HandshakeResult:
    """The meaning of an answer. Only status 405 has a meaning of its own: a refusal."""
    allowed_origin, allowed_rate = response.header("webhook-allowed-origin"), response.header("webhook-allowed-rate")
    if response.status == 405:
        return HandshakeResult(False, reason="the sink does not know OPTIONS (405)")
    if allowed_origin is None:
        return HandshakeResult(False, reason=f"the answer ({response.status}) has no WebHook-Allowed-Origin")
    if allowed_origin.strip() != "*" and allowed_origin.strip().lower() != origin.lower():
        return HandshakeResult(False, reason="WebHook-Allowed-Origin names another origin")
    if allowed_rate is None:
        needs_rate = requested_rate is not None
        return HandshakeResult(not needs_rate, reason="the answer has no WebHook-Allowed-Rate" if needs_rate else "")
    try:
        return HandshakeResult(True, parse_rate(allowed_rate))
    except ValueError:
        return HandshakeResult(False, reason="WebHook-Allowed-Rate is neither * nor a number above 0")


def parse_rate(text: str) -> int | None:
    """The rate in a `WebHook-Allowed-Rate`, None for unlimited. Raises: ValueError."""
    stripped = text.strip()
    if stripped == "*":
        return None
    if not (stripped.isascii() and stripped.isdigit() and 0 < len(stripped) <= _MAX_RATE_DIGITS and int(stripped) > 0):
        raise ValueError("neither * nor a number above 0")
    return int(stripped)


def granted_rate(text: str | None) -> int | None:
    """The rate that a callback grants: 0 for unlimited; None for what was requested, if it names none (SUB-713)."""
    try:
        return parse_rate(text or "") or 0
    except ValueError:
        return None


def callback_url(root_url: str, id: str, secret: str) -> str:
    """The URL at which a sink consents. root_url: the registry's root URL, as sinks see it."""
    return f"{root_url.rstrip('/')}/-/subscriptions/{quote(id, safe='')}/consent/{quote(secret, safe='')}"
