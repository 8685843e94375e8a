"""The webhook handshake: the request, and what counts as consent."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from starlette.responses import Response

from annals.projections.outgoing.destination_guard import DestinationGuard
from annals.projections.subscriptions.contract import Credential
from annals.projections.subscriptions.transport.webhook_handshake import (
    HandshakeResult,
    WebhookHandshake,
    callback_url,
    parse_rate,
)
from tests.projections.subscriptions.events import LOCAL, run, target
from tests.support.receivers import Receiver, listener, respond_with, serve_receiver

ORIGIN = "registry.example.com"


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with serve_receiver(Receiver()) as served:
        yield served


def validate(uri: str, rate: int | None = None, callback: str | None = None, seconds: float = 5) -> HandshakeResult:
    to = target(uri, origin=ORIGIN, seconds=seconds, credential=Credential("ACCESSTOKEN", token="t"))
    return run(WebhookHandshake(LOCAL).validate(to, rate, callback))


def test_what_is_asked(receiver: Receiver) -> None:
    # 7.1: OPTIONS to the sink's URI, with the origin, and with the rate and the callback if they are given
    receiver.requests.clear()
    validate(f"{receiver.url}hooks/a?b=c")
    validate(receiver.url, 120, "https://registry.example.com/-/subscriptions/s1/consent/x")
    plain, full = receiver.requests
    assert (plain.method, plain.target) == ("OPTIONS", "/hooks/a?b=c")
    assert plain.header("webhook-request-origin") == ORIGIN
    assert plain.header("webhook-request-rate") is plain.header("webhook-request-callback") is None
    assert full.header("webhook-request-rate") == "120"
    assert full.header("webhook-request-callback") == "https://registry.example.com/-/subscriptions/s1/consent/x"
    assert plain.header("authorization") is None  # the handshake sends no credential


ALLOWED, RATE = "WebHook-Allowed-Origin", "WebHook-Allowed-Rate"
#: The answer's status and headers, the requested rate, and the result; None for a refusal.
ANSWERS: dict[str, tuple[int, dict[str, str], int | None, HandshakeResult | None]] = {
    "the origin": (200, {ALLOWED: ORIGIN, RATE: "100"}, None, HandshakeResult(True, 100)),
    "the origin in other letters": (200, {ALLOWED: ORIGIN.upper(), RATE: "100"}, None, HandshakeResult(True, 100)),
    "any origin": (200, {ALLOWED: "*", RATE: "*"}, None, HandshakeResult(True)),
    "no rate where none was asked for": (200, {ALLOWED: "*"}, None, HandshakeResult(True)),
    "less than was asked for": (200, {ALLOWED: "*", RATE: "10"}, 120, HandshakeResult(True, 10)),
    "a status proves nothing against it": (500, {ALLOWED: "*", RATE: "10"}, None, HandshakeResult(True, 10)),
    "nor for it": (200, {}, None, None),
    "no rate where one was asked for": (200, {ALLOWED: "*"}, 120, None),
    "another origin": (200, {ALLOWED: "other.example.com", RATE: "*"}, None, None),
    "an origin that begins like it": (200, {ALLOWED: f"{ORIGIN}.evil.test", RATE: "*"}, None, None),
    "a rate of nothing": (200, {ALLOWED: "*", RATE: "0"}, None, None),
    "a rate that is none": (200, {ALLOWED: "*", RATE: "much"}, None, None),
    "a rate below": (200, {ALLOWED: "*", RATE: "-1"}, None, None),
    "not allowed": (405, {ALLOWED: "*", RATE: "*"}, None, None),
    "a redirect": (307, {"Location": "/other"}, None, None),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_answers(receiver: Receiver, name: str) -> None:
    # SUB-711, 7.1: headers decide; of the statuses only 405 matters, as a refusal
    status, headers, rate, expected = ANSWERS[name]
    receiver.answers = [Response(status_code=status, headers=headers)]
    found = validate(receiver.url, rate)
    if expected is not None:
        assert found == expected
    else:
        assert not found.is_allowed and found.is_answered and found.rate is None and found.reason


def test_no_answer() -> None:
    # 7.1: without an answer there is no consent, and no refusal either; forbidden addresses are not contacted
    with listener(respond_with(stay=True)) as port:
        silent = validate(f"http://127.0.0.1:{port}/", seconds=0.3)
    unreachable = validate(f"http://127.0.0.1:{port}/")
    forbidden = run(WebhookHandshake(DestinationGuard()).validate(target("https://169.254.169.254/"), None, None))
    for found in (silent, unreachable, forbidden):
        assert not found.is_allowed and not found.is_answered and found.reason
    assert "169" not in forbidden.reason


@pytest.mark.parametrize("text", ["", "0", "00", "1.5", "-1", "+1", "1e3", "ten", "9" * 12, "\u0661", "* *"])
def test_rates_that_are_none(text: str) -> None:
    with pytest.raises(ValueError):
        parse_rate(text)


def test_rates() -> None:
    # SUB-714: a callback may contain one, too
    assert (parse_rate("*"), parse_rate(" 120 "), parse_rate("007")) == (None, 120, 7)


def test_the_url_of_a_callback() -> None:
    # 7.1: {public}/-/subscriptions/{id}/consent/{secret}
    made = callback_url("https://example.com/registry/", "s/1", "a-b_c")
    assert made == "https://example.com/registry/-/subscriptions/s%2F1/consent/a-b_c"
