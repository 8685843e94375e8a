"""Token renewal: requests, accepted answers, and secrets that are never exposed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import parse_qs

import pytest
from starlette.responses import JSONResponse, RedirectResponse, Response

from annals.projections.outgoing.destination_guard import DestinationGuard
from annals.projections.subscriptions.ports import RenewedTokens
from annals.projections.subscriptions.transport.token_renewal import MAX_LIFETIME_SECONDS, RenewalFailure, TokenRenewal
from tests.projections.subscriptions.events import LOCAL, run
from tests.support.receivers import Receiver, serve_receiver

NOW = 1_800_000_000.0
REFRESH = "r3fr+sh/ü"


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with serve_receiver(Receiver()) as served:
        yield served


def renewed(receiver: Receiver, answer: Response, resolver: DestinationGuard = LOCAL) -> RenewedTokens | RenewalFailure:
    receiver.answers = [answer]
    return run(TokenRenewal(resolver, lambda: NOW).renew(f"{receiver.url}token?tenant=1", REFRESH))


def test_what_is_asked(receiver: Receiver) -> None:
    # SUB-307: the grant of refresh tokens, as a form
    receiver.requests.clear()
    renewed(receiver, JSONResponse({"access_token": "a"}))
    (request,) = receiver.requests
    assert (request.method, request.target) == ("POST", "/token?tenant=1")
    assert request.header("content-type") == "application/x-www-form-urlencoded"
    assert parse_qs(request.body.decode()) == {"grant_type": ["refresh_token"], "refresh_token": [REFRESH]}


ANSWERS: dict[str, tuple[dict[str, Any], RenewedTokens]] = {
    "all of it": (
        {"access_token": "a", "token_type": "Bearer", "expires_in": 3600, "refresh_token": "r"},
        RenewedTokens("a", NOW + 3600, "r"),
    ),
    "the refresh token stays": ({"access_token": "a", "expires_in": "60"}, RenewedTokens("a", NOW + 60)),
    "no refresh token": (
        {"access_token": "a", "expires_in": 60.5, "refresh_token": None},
        RenewedTokens("a", NOW + 60.5),
    ),
    "no end": ({"access_token": "a"}, RenewedTokens("a")),
    "an end that is none": ({"access_token": "a", "expires_in": "soon"}, RenewedTokens("a")),
    "an end that is over": ({"access_token": "a", "expires_in": -5}, RenewedTokens("a")),
    "an end beyond all": ({"access_token": "a", "expires_in": 1e300}, RenewedTokens("a", NOW + MAX_LIFETIME_SECONDS)),
    "an end in a list": ({"access_token": "a", "expires_in": [60]}, RenewedTokens("a")),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_tokens(receiver: Receiver, name: str) -> None:
    # SUB-307: a rotated refresh token is returned; numbers may be text
    given, expected = ANSWERS[name]
    assert renewed(receiver, JSONResponse(given)) == expected


FAILURES: dict[str, tuple[Response, str]] = {
    "refused": (
        JSONResponse({"error": "invalid_grant", "error_description": f"{REFRESH} is over"}, 400),
        "invalid_grant",
    ),
    "refused without a word": (Response(status_code=401), "401"),
    "an error that is a secret": (JSONResponse({"error": REFRESH}, 400), "400"),
    "a redirect": (RedirectResponse("http://169.254.169.254/"), "307"),
    "broken": (Response(b"{", 200), "answer"),
    "no object": (JSONResponse(["a"]), "answer"),
    "no token": (JSONResponse({"access_token": ""}), "answer"),
    "a token that is no text": (JSONResponse({"access_token": 5}), "answer"),
    "a token that is no header": (JSONResponse({"access_token": "a\r\nX-B: b"}), "answer"),
    "a token beyond measure": (JSONResponse({"access_token": "a" * 20_000}), "answer"),
    "an answer beyond measure": (JSONResponse({"access_token": "a", "more": "x" * 100_000}), "answer"),
    "an answer without bottom": (Response(b"[" * 60_000, 200), "answer"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_failures(receiver: Receiver, name: str) -> None:
    # SUB-307, SUB-303: a failure has no tokens, and its message does not contain the old one
    answer, code = FAILURES[name]
    found = renewed(receiver, answer)
    assert isinstance(found, RenewalFailure)
    assert found.code == code
    assert REFRESH not in found.message


def test_renewed_tokens_for_deliveries(receiver: Receiver) -> None:
    receiver.answers = [JSONResponse({"access_token": "a"}), Response(status_code=500)]
    renewal = TokenRenewal(LOCAL)
    assert run(renewal(receiver.url, REFRESH)) == RenewedTokens("a")
    assert run(renewal(receiver.url, REFRESH)) is None


def test_refused_token_endpoints_are_not_contacted(receiver: Receiver) -> None:
    # SUB-901: the guard checks endpoints, too; SUB-306: without TLS, a token does not leave the machine
    receiver.requests.clear()
    assert renewed(receiver, Response(), DestinationGuard()) == RenewalFailure("address", str(_refusal()))
    assert isinstance(run(TokenRenewal(LOCAL).renew("ftp://sink.test/", REFRESH)), RenewalFailure)

    async def look_up(host: str, port: int) -> Sequence[str]:
        return ["192.0.2.1"]

    elsewhere = TokenRenewal(DestinationGuard("192.0.2.1", allows_plaintext=True, look_up=look_up))
    found = run(elsewhere.renew("http://sink.test/token", REFRESH))
    assert isinstance(found, RenewalFailure) and found.code == "address"
    assert receiver.requests == []


def _refusal() -> Exception:
    try:
        run(DestinationGuard().resolve("127.0.0.1", 8080))
    except Exception as error:
        return error
    raise AssertionError
