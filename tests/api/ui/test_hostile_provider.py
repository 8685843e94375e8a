"""A misbehaving provider, or an attacker between it and the server, cannot sign anyone in (ACC-51, ACC-52)."""

from __future__ import annotations

import hmac
import json
import socket
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest

from annals.api.auth import issuer_requests, jwt_keys
from annals.api.auth.issuer_requests import MAX_BYTES
from annals.api.auth.oidc import provider as oidc_provider
from annals.api.auth.oidc import provider_metadata
from annals.api.auth.oidc.provider_metadata import parse_metadata
from annals.commands.store.database.engine import open_engine
from tests.api.auth.test_jwt import KEY, jwk, signed
from tests.support.registries.in_process import Api, create, serving

BASE: Final = "http://h"


class _Handler(BaseHTTPRequestHandler):
    server: HostileProvider

    def do_GET(self) -> None:
        self._answer(200, json.dumps(self.server.documents.get(self.path, {})).encode())

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["content-length"])).decode())
        self.server.forms.append({name: values[0] for name, values in form.items()})
        self._answer(*self.server.answer())

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        if 300 <= status < 400:
            self.send_header("location", "/.well-known/openid-configuration")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing."""


class HostileProvider(ThreadingHTTPServer):
    """A provider whose token endpoint calls `answer`, which a test sets. answer: returns a status and a body."""

    answer: Callable[[], tuple[int, bytes]]

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.issuer = f"http://127.0.0.1:{self.server_port}"
        self.forms: list[dict[str, str]] = []
        metadata = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/auth",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/jwks",
        }
        self.documents: dict[str, Any] = {
            "/.well-known/openid-configuration": metadata,
            "/jwks": {"keys": [jwk(KEY)]},
        }


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider may answer slowly on a busy machine."""
    monkeypatch.setattr(oidc_provider, "_PAGE_SECONDS", 60.0)
    for module in (issuer_requests, provider_metadata, jwt_keys):
        monkeypatch.setattr(module, "FETCH_SECONDS", 60.0)


@pytest.fixture(scope="module")
def provider() -> Iterator[HostileProvider]:
    with HostileProvider() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@pytest.fixture(scope="module")
def api(provider: HostileProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    url = f"sqlite:///{tmp_path_factory.mktemp('registry')}/annals.db"
    create(url)
    with serving(url, public_url=BASE, oidc_issuer=provider.issuer, oidc_client_id="annals") as api:
        yield api


def claims_of(provider: HostileProvider, nonce: str, /, **changes: Any) -> dict[str, Any]:
    now = int(time.time())
    fixed = {"iss": provider.issuer, "aud": "annals", "sub": "eve", "nonce": nonce, "exp": now + 300, "iat": now}
    return {name: value for name, value in {**fixed, **changes}.items() if value is not ...}


def id_token(claims: dict[str, Any], **header: Any) -> str:
    return signed(json.dumps(claims).encode(), **header)


def shared_secret_token(claims: dict[str, Any]) -> str:
    return jwt.encode(claims, "x" * 64, "HS256", {"kid": "k"})


def begin(api: Api) -> tuple[str, str, dict[str, str]]:
    """The `state`, the cookie and the parameters of a new sign-in."""
    api.client.cookies.clear()
    answer = api.send("GET", "/ui/login/provider?next=/ui/")
    assert answer.status_code == 303, answer.text
    params = {name: values[0] for name, values in parse_qs(urlsplit(answer.headers["location"]).query).items()}
    return params["state"], answer.headers["set-cookie"].partition(";")[0], params


def test_sign_ins_of_one_browser_are_few(api: Api) -> None:
    """ACC-53, ACC-114: pages elsewhere can begin sign-ins, whose cookies must not become too long for requests."""
    api.client.cookies.clear()
    for number in range(12):
        assert api.send("GET", f"/ui/login/provider?next=/ui/{number}{'a' * 900}").status_code == 303
    cookies = [cookie for cookie in api.client.cookies.jar if cookie.name.startswith("annals-sign-in-")]
    assert len(cookies) == 4
    last = api.send("GET", "/ui/login/provider?next=/ui/")
    assert last.headers["set-cookie"].partition("=")[0] in {cookie.name for cookie in api.client.cookies.jar}
    assert api.send("GET", "/ui/login").status_code == 200
    api.client.cookies.clear()


def complete(api: Api, provider: HostileProvider, make: Callable[[str], tuple[int, Any]]) -> Any:
    """Signs in; the response to the callback. make: returns the provider's token response for a nonce."""
    state, cookie, params = begin(api)
    status, content = make(params["nonce"])
    body = content if isinstance(content, bytes) else json.dumps(content).encode()
    provider.answer = lambda: (status, body)
    return api.send("GET", f"/ui/login/callback?code=c&state={state}", cookie=cookie)


@pytest.mark.parametrize(
    "changes",
    [
        {"nonce": "other"},
        {"nonce": ...},
        {"nonce": 5},
        {"nonce": None},
        {"iss": "https://evil.example"},
        {"iss": ...},
        {"aud": "other"},
        {"aud": ["other"]},
        {"aud": ...},
        {"azp": "other"},
        {"azp": None},
        {"exp": 1},
        {"exp": ...},
        {"iat": 9_999_999_999},
        {"sub": "console"},
        {"sub": "link:x"},
        {"sub": ...},
        {"sub": 7},
    ],
)
def test_refused_claims(api: Api, provider: HostileProvider, changes: dict[str, Any]) -> None:
    """ACC-52: an ID token with wrong claims results in 401, and in no session."""
    answer = complete(api, provider, lambda nonce: (200, {"id_token": id_token(claims_of(provider, nonce, **changes))}))
    assert answer.status_code == 401 and "annals=" not in answer.headers["set-cookie"].replace("annals-sign-in", "")


@pytest.mark.parametrize("made", ["HS256", "none", "other key", "no token", "no text", "two parts", "too long"])
def test_refused_tokens(api: Api, provider: HostileProvider, made: str) -> None:
    """ACC-20 to ACC-22, ACC-52."""

    def make(nonce: str) -> tuple[int, Any]:
        claims = claims_of(provider, nonce)
        good = id_token(claims)
        tokens: dict[str, Any] = {
            "HS256": shared_secret_token(claims),
            "none": jwt.encode(claims, "", "none", {"kid": "k"}),
            "other key": good.rpartition(".")[0] + "." + id_token({**claims, "x": 1}).rpartition(".")[2],
            "no token": ...,
            "no text": 5,
            "two parts": good.rpartition(".")[0],
            "too long": id_token({**claims, "x": "x" * 9000}),
        }
        return 200, {"access_token": "a", **({} if tokens[made] is ... else {"id_token": tokens[made]})}

    assert complete(api, provider, make).status_code == 401


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (400, b'{"error": "invalid_grant"}', 401),
        (400, b"no JSON", 502),
        (200, b"no JSON", 502),
        (200, b"[]", 502),
        (200, b'{"a": "' + b"x" * MAX_BYTES + b'"}', 502),
        (302, b"{}", 502),
        (500, b"{}", 502),
    ],
)
def test_other_answers(api: Api, provider: HostileProvider, status: int, body: bytes, expected: int) -> None:
    """ACC-27, ACC-51: an invalid response of the provider results in 502; redirects are not followed."""
    assert complete(api, provider, lambda nonce: (status, body)).status_code == expected


def test_a_good_answer(api: Api, provider: HostileProvider) -> None:
    """ACC-50: the server sends the verifier of the challenge to the provider, and not to the browser."""
    state, cookie, params = begin(api)
    provider.answer = lambda: (
        200,
        json.dumps({"id_token": id_token(claims_of(provider, params["nonce"], azp="annals"))}).encode(),
    )
    answer = api.send("GET", f"/ui/login/callback?code=c&state={state}", cookie=cookie)
    assert (answer.status_code, answer.headers["location"]) == (303, "/ui/")
    sent = provider.forms[-1]
    from authlib.oauth2.rfc7636 import create_s256_code_challenge

    assert params["code_challenge_method"] == "S256" and params["response_type"] == "code"
    assert hmac.compare_digest(create_s256_code_challenge(sent["code_verifier"]), params["code_challenge"])
    assert sent["redirect_uri"] == params["redirect_uri"] == f"{BASE}/ui/login/callback"
    assert sent["code_verifier"] not in cookie and sent["client_id"] == "annals"


@pytest.mark.parametrize("state", ["x", "", "used"])
def test_a_bad_state_with_a_session(api: Api, provider: HostileProvider, state: str) -> None:
    """ACC-53: it is 400 for somebody who is signed in, too, and changes no session."""
    answer = complete(api, provider, lambda nonce: (200, {"id_token": id_token(claims_of(provider, nonce))}))
    used = parse_qs(urlsplit(str(answer.request.url)).query)["state"][0]
    session = f"annals={api.client.cookies['annals']}"
    bad = api.send("GET", f"/ui/login/callback?code=c&state={used if state == 'used' else state}", cookie=session)
    assert bad.status_code == 400 and "set-cookie" not in bad.headers
    assert api.send("GET", "/-/whoami", cookie=session).json()["name"] == "eve"


@pytest.mark.parametrize("headers", [{}, {"authorization": "Bearer x"}, {"cookie": "annals=x"}])
@pytest.mark.parametrize("path", ["/", "/-/log", "/compat/confluent/subjects"])
def test_a_challenge_where_only_a_provider_is_set(api: Api, path: str, headers: dict[str, str]) -> None:
    """ACC-18, RFC 9110: each 401 has a challenge, also where `Authorization` carries no credential."""
    api.client.cookies.clear()
    answer = api.send("GET", path, **headers)
    assert (answer.status_code, answer.headers.get_list("www-authenticate")) == (401, ['Cookie realm="annals"'])


def test_failed_callbacks_are_bounded(provider: HostileProvider, store_url: str) -> None:
    """ACC-110: beyond the limit of attempts from one address, a callback gets 429, and stores nothing."""
    create(store_url)
    with serving(store_url, public_url=BASE, oidc_issuer=provider.issuer, oidc_client_id="annals") as api:
        refused = (400, {"error": "invalid_grant"})
        assert [complete(api, provider, lambda nonce: refused).status_code for _ in range(52)] == [401] * 50 + [429] * 2
    with open_engine(store_url).connect() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM session_used_state").scalar() == 50


METADATA: Final = {
    "issuer": "https://p",
    "authorization_endpoint": "https://p/a",
    "token_endpoint": "https://p/t",
    "jwks_uri": "https://p/j",
}


@pytest.mark.parametrize(
    "changes",
    [
        {"issuer": "https://p/"},
        {"issuer": "https://evil.example"},
        {"issuer": None},
        {"authorization_endpoint": "javascript:alert(1)"},
        {"authorization_endpoint": "http://p/a"},
        {"token_endpoint": "http://p/t"},
        {"token_endpoint": None},
        {"jwks_uri": "/etc/passwd"},
        {"jwks_uri": ["https://p/j"]},
        {"end_session_endpoint": "ftp://p"},
        {"end_session_endpoint": "https://x;script-src *@p/e"},  # its origin is in a header of pages
        {"end_session_endpoint": "https://p;script-src *"},
        {"end_session_endpoint": "https://p\n/e"},
        {"authorization_endpoint": "https://p/a b"},
        {"authorization_endpoint": "https://p/é"},
    ],
)
def test_refused_metadata(changes: dict[str, Any]) -> None:
    """ACC-51: metadata of another issuer, or with endpoints that are not https URLs fit for headers, are refused."""
    assert parse_metadata(json.dumps(METADATA).encode(), "https://p").token_endpoint == "https://p/t"
    with pytest.raises(ValueError, match=r"issuer|URL"):
        parse_metadata(json.dumps({**METADATA, **changes}).encode(), "https://p")


def test_absent_endpoints() -> None:
    """ACC-51: a null is no endpoint, and no reason to refuse a provider."""
    absent = {"end_session_endpoint": None, "device_authorization_endpoint": None}
    metadata = parse_metadata(json.dumps({**METADATA, **absent}).encode(), "https://p")
    assert (metadata.end_session_endpoint, metadata.device_authorization_endpoint) == (None, None)


def test_a_provider_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ACC-51: the page for other credentials does not wait for a provider that does not answer."""
    monkeypatch.setattr(oidc_provider, "_PAGE_SECONDS", 1.0)
    url = f"sqlite:///{tmp_path}/annals.db"
    create(url)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        issuer = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with serving(url, public_url=BASE, oidc_issuer=issuer, oidc_client_id="annals") as api:
            began = time.monotonic()
            assert "does not answer" in api.send("GET", "/ui/login").text
            assert time.monotonic() - began < 50, "the provider has 60 seconds"


def test_metadata_of_a_stranger(tmp_path: Path) -> None:
    """ACC-51: with metadata of another issuer, the sign-in page reports an outage, and no browser is redirected."""
    url = f"sqlite:///{tmp_path}/annals.db"
    create(url)
    with HostileProvider() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        server.documents["/.well-known/openid-configuration"]["issuer"] = "https://evil.example"
        with serving(url, public_url=BASE, oidc_issuer=server.issuer, oidc_client_id="annals") as api:
            assert "does not answer" in api.send("GET", "/ui/login").text
            assert api.send("GET", "/ui/login/provider").status_code == 502
        server.shutdown()
