"""Rights over HTTP: fixed tokens and JWTs identify callers with roles."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from pydantic import ValidationError
from sqlalchemy import text

from annals.api.auth.credentials import InvalidCredential, RequestCredential, Scheme
from annals.api.auth.jwt import JwtVerifier
from annals.api.auth.jwt_claims import ClaimSettings
from annals.api.auth.jwt_keys import IssuerKeys
from annals.api.settings.settings import Settings
from annals.api.settings.shown_settings import shown_settings
from annals.commands.store.log import Store
from annals.projections.outgoing.destination_guard import DestinationGuard
from tests.support.registries.in_process import Api, create, serving

HASHED = "sha256:" + hashlib.sha256(b"secret-admin").hexdigest()
TOKENS = {
    "read": {"name": "rita", "role": "reader"},
    "write": {"name": "walt", "role": "writer"},
    HASHED: {"name": "ada", "role": "admin"},
    "none": {"name": "nemo"},
    "g1": {"name": "gina", "groups": {"/dirs/d1": "writer"}},
    "g1read": {"name": "gary", "groups": {"/dirs/d1": "reader"}},
}


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


@pytest.fixture
def api(store_url: str) -> Iterator[Api]:
    """A registry with callers, two Groups and a file in each."""
    create(store_url)
    with serving(store_url, tokens=json.dumps(TOKENS)) as api:
        for group in ("d1", "d2"):
            api.done("PUT", f"/dirs/{group}/files/f", b"x", **bearer("write"))
        yield api


def status(api: Api, token: str, method: str, path: str, body: Any = None) -> int:
    return api.send(method, path, body, **bearer(token)).status_code


def positions(url: str) -> list[tuple[str, int]]:
    store = Store(url)
    with store.engine.connect() as connection:
        rows = connection.execute(text("SELECT caller, last FROM interaction ORDER BY last")).all()
    store.close()
    return [(str(caller), int(last)) for caller, last in rows]


@pytest.mark.parametrize("authorization", [None, "Bearer wrong", "Bearer", "Basic cmVhZDo=", "Bearer read extra"])
def test_unknown_callers_get_401(api: Api, store_url: str, authorization: str | None) -> None:
    # Callers: no or a bad token is 401 with a challenge, and changes nothing
    before = positions(store_url)
    headers = {} if authorization is None else {"authorization": authorization}
    for method, path in (("GET", "/"), ("PUT", "/dirs/d3"), ("GET", "/none"), ("GET", "/-/metrics"), ("OPTIONS", "/")):
        answer = api.send(method, path, {}, **headers)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
        is_bearer = (authorization or "").startswith("Bearer")
        assert ("invalid_token" in answer.headers["www-authenticate"]) == is_bearer
        assert answer.json()["type"] == "http://h/r/-/docs#unauthorized"
    assert positions(store_url) == before


def test_an_admin_can_always_change_the_capabilities(api: Api) -> None:
    # CAP-5, CAP-10, CAP-13: `null` restores the default capabilities, with which writers cannot change anything
    api.done("PATCH", "/", {"capabilities": None}, **bearer("write"))
    mutable = {name: {"mutable": True} for name in ("capabilities", "entities", "modelsource")}
    back = {"available": {**mutable, "model": {"mutable": False}}}
    refused = api.send("PATCH", "/capabilities", back, **bearer("write"))
    assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD, OPTIONS")
    assert status(api, "write", "PATCH", "/", {"capabilities": back}) == 405
    options = api.send("OPTIONS", "/capabilities", **bearer("secret-admin"))
    assert options.headers["allow"] == "GET, HEAD, OPTIONS, PUT, PATCH"
    for path in ("/model", "/modelsource"):
        assert status(api, "secret-admin", "PUT", path, {}) in (400, 405)
    api.done("PATCH", "/capabilities", back, **bearer("secret-admin"))
    assert status(api, "write", "PATCH", "/capabilities", {"flags": ["*"]}) == 200
    read_only = {"available": {name: {"mutable": False} for name in ("capabilities", "entities", "model")}}
    api.done("PUT", "/capabilities", read_only, **bearer("write"))
    assert status(api, "write", "PATCH", "/dirs/d1", {}) == 405
    api.done("PATCH", "/capabilities", back, **bearer("secret-admin"))
    assert status(api, "write", "PATCH", "/dirs/d1", {}) == 200


@pytest.mark.parametrize("path", ["/-/livez", "/readyz", "/.xregistry", "/.well-known/xregistry"])
def test_what_is_open(api: Api, path: str) -> None:
    # probes and discovery need no token
    assert api.send("GET", path).status_code == 200


@pytest.mark.parametrize(
    ("token", "reads", "writes", "defines"),
    [("read", 200, 403, 403), ("write", 200, 200, 200), ("secret-admin", 200, 200, 200), ("none", 403, 403, 403)],
)
def test_roles_for_the_registry(api: Api, store_url: str, token: str, reads: int, writes: int, defines: int) -> None:
    # Callers: reader, writer (including model and capabilities), admin; a refused write is not recorded
    before = positions(store_url)
    assert {status(api, token, "GET", path) for path in ("/", "/dirs", "/dirs/d1/files/f", "/export")} == {reads}
    assert status(api, token, "GET", "/-/metrics") == reads
    assert status(api, token, "PATCH", "/dirs/d1", {}) == writes
    assert status(api, token, "PATCH", "/capabilities", {"flags": ["doc"]}) == defines
    assert (positions(store_url) == before) == (writes == 403)


def test_the_caller_is_recorded(api: Api, store_url: str) -> None:
    # Callers: an interaction stores the name of its caller
    api.done("PATCH", "/dirs/d1", {}, **bearer("secret-admin"))
    api.done("PATCH", "/dirs/d1", {}, **bearer("g1"))
    assert [caller for caller, _ in positions(store_url)][-2:] == ["ada", "gina"]


def test_a_writer_of_one_group(api: Api, store_url: str) -> None:
    # Callers: with a role for a single Group, a request that also names another Group is refused as a whole
    assert status(api, "g1", "PUT", "/dirs/d1/files/g", {}) == 201
    assert status(api, "g1", "POST", "/dirs", {"d1": {"name": "n"}}) == 200
    assert status(api, "g1", "POST", "/", {"dirs": {"d1": {}}}) == 200
    before = positions(store_url)
    for method, path, body in (
        ("PUT", "/dirs/d2/files/f", {}),
        ("PUT", "/dirs/d9", {}),
        ("POST", "/dirs", {"d1": {}, "d2": {}}),
        ("DELETE", "/dirs", None),
        ("PATCH", "/", {"name": "mine"}),
        ("PUT", "/modelsource", {}),
        ("PUT", "/dirs/d1/files/p/meta", {"xref": "/dirs/d2/files/f"}),
    ):
        assert status(api, "g1", method, path, body) == 403, path
    assert status(api, "g1read", "PATCH", "/dirs/d1", {}) == 403
    assert positions(store_url) == before


@pytest.mark.parametrize("token", ["g1", "g1read"])
def test_what_is_seen_of_a_registry_from_one_group(api: Api, token: str) -> None:
    # Callers: other Groups do not exist for the caller; model and capabilities are readable
    for path in (
        "/",
        "/dirs",
        "/export",
        "/dirs/d1",
        "/dirs/d1/files/f",
        "/dirs/d1?inline=*",
        "/model",
        "/capabilities",
    ):
        assert status(api, token, "GET", path) == 200, path
    hidden, missing = (api.send("GET", f"/dirs/{group}/files/f", **bearer(token)) for group in ("d2", "d9"))
    assert hidden.status_code == missing.status_code == 404
    assert hidden.text.replace("d2", "d9") == missing.text
    assert list(api.send("GET", "/dirs", **bearer(token)).json()) == ["d1"]
    assert status(api, token, "GET", "/-/metrics") == 403


def test_tokens_in_a_file(store_url: str, tmp_path: Path) -> None:
    create(store_url)
    file = tmp_path / "tokens.json"
    file.write_text(json.dumps({"t": {"name": "n", "role": "reader"}}))
    with serving(store_url, tokens=str(file)) as api:
        assert (status(api, "t", "GET", "/"), api.send("GET", "/").status_code) == (200, 401)


@pytest.mark.parametrize(
    "tokens",
    [
        "/no/such/file",
        "{",
        '{"t": "reader"}',
        '{"t": {"role": "reader"}}',
        '{"t": {"name": "n", "role": "king"}}',
        '{"t": {"name": "n", "groups": {"/dirs": "reader"}}}',
        '{"t": {"name": "n", "rolle": "reader"}}',
    ],
)
def test_tokens_that_mean_nothing_are_refused_at_the_start(tokens: str) -> None:
    # a mistake in the setting must not leave a registry open
    with pytest.raises(ValidationError):
        Settings(tokens=tokens)


def test_tokens_are_not_printed() -> None:
    printed = [setting.value for setting in shown_settings(Settings(tokens=json.dumps(TOKENS)))]
    assert "***" in printed and not any("secret" in value or "rita" in value for value in printed)


# --- JWTs ---

KEY = ec.generate_private_key(ec.SECP256R1())
OTHER = ec.generate_private_key(ec.SECP256R1())
ISSUED = {"iss": "https://issuer", "aud": "annals", "sub": "jo", "realm": {"roles": ["other", "reader", "writer"]}}


def issued(key: Any = KEY, algorithm: str = "ES256", kid: str = "k1", **claims: Any) -> str:
    content = {**ISSUED, "exp": time.time() + 300, **claims}
    return jwt.encode(
        {name: value for name, value in content.items() if value is not None}, key, algorithm, headers={"kid": kid}
    )


@pytest.fixture
def issuing(store_url: str, tmp_path: Path) -> Iterator[Api]:
    """A registry that trusts an issuer."""
    create(store_url)
    key = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(KEY.public_key()))
    file = tmp_path / "jwks.json"
    file.write_text(json.dumps({"keys": [{**key, "kid": "k1", "alg": "ES256", "use": "sig"}]}))
    claims: dict[str, Any] = {"jwt_issuer": "https://issuer", "jwt_audience": "annals", "jwt_role_claim": "realm.roles"}
    with serving(store_url, jwt_keys=str(file), tokens='{"t": {"name": "fixed", "role": "reader"}}', **claims) as api:
        yield api


def test_a_jwt_names_a_caller(issuing: Api, store_url: str) -> None:
    # Callers: the highest role in the claim applies; fixed tokens remain valid
    token = issued()
    assert [status(issuing, token, "PUT", "/dirs/d1", {}) for _ in range(2)] == [201, 200]
    assert positions(store_url)[-1][0] == "jo"
    assert status(issuing, "t", "GET", "/") == 200
    assert status(issuing, issued(realm={}), "GET", "/") == 403
    assert status(issuing, issued(realm=None, xregistry_groups={"/dirs/d1": "reader"}), "GET", "/dirs/d1") == 200


@pytest.mark.parametrize(
    "token",
    [
        issued(OTHER),
        issued(kid="k2"),
        issued(exp=time.time() - 60),
        issued(exp=None),
        issued(sub=None),
        issued(iss="https://elsewhere"),
        issued(aud="other"),
        issued(nbf=time.time() + 600),
        issued("k" * 32, "HS256"),
        jwt.encode({**ISSUED, "exp": time.time() + 300}, "", "none", headers={"kid": "k1"}),
        issued()[:-4] + "AAAA",
        "a.b.c",
        "eyJ9.e30.e30",
    ],
)
def test_a_jwt_that_is_not_good(issuing: Api, token: str) -> None:
    # RFC 8725: another key, algorithm, issuer or audience is refused, and so is a token that is not valid now
    answer = issuing.send("GET", "/", **bearer(token))
    assert (answer.status_code, answer.headers["www-authenticate"]) == (
        401,
        'Bearer realm="annals", error="invalid_token"',
    )


def key_set(**keys: Any) -> dict[str, Any]:
    """A JWKS of public keys by their ids."""
    jwks = {kid: json.loads(jwt.algorithms.ECAlgorithm.to_jwk(key.public_key())) for kid, key in keys.items()}
    return {"keys": [{**key, "kid": kid, "alg": "ES256", "use": "sig"} for kid, key in jwks.items()]}


class Issuer(BaseHTTPRequestHandler):
    """Serves `keys`, or an error without keys, and counts the requests."""

    keys: dict[str, Any] | None = None
    looks = 0

    def do_GET(self) -> None:
        type(self).looks += 1
        self.send_response(200 if self.keys else 500)
        self.end_headers()
        self.wfile.write(json.dumps(self.keys).encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Logs nothing."""


def test_the_keys_of_an_issuer_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    # Callers: an unknown key id causes a fetch of the keys, with a minimum interval; after a failed fetch, the old keys
    # remain valid
    async def names(tokens: JwtVerifier, *given: str) -> list[str | None]:
        found: list[str | None] = []
        for token in given:
            try:
                identity = await tokens.identify(RequestCredential(Scheme.BEARER, token))
                found.append(identity.caller.name if identity else None)
            except InvalidCredential:
                found.append(None)
        return found

    Issuer.looks = 0
    server = ThreadingHTTPServer(("127.0.0.1", 0), Issuer)
    Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/jwks"
    tokens = JwtVerifier(IssuerKeys(url, DestinationGuard("127.0.0.1")), ClaimSettings("https://issuer", "annals"))
    Issuer.keys = key_set(k1=KEY)
    assert asyncio.run(names(tokens, issued(), issued(OTHER, kid="k2"), issued(kid="k3"))) == ["jo", None, None]
    assert Issuer.looks == 1
    monkeypatch.setattr("annals.api.auth.jwt_keys.MIN_REFRESH_SECONDS", 0.0)
    Issuer.keys = key_set(k1=KEY, k2=OTHER)
    assert asyncio.run(names(tokens, issued(OTHER, kid="k2"))) == ["jo"]
    Issuer.keys = None
    assert asyncio.run(names(tokens, issued(kid="k3"), issued(nbf=0))) == [None, "jo"]
    assert Issuer.looks == 3
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("content", [None, "[]", "{", '{"keys": [5]}', '{"keys": 5}', "\ufeff"])
def test_keys_that_cannot_be_read(content: str | None, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    # Callers: all tokens are refused then, and the log has a warning
    file = tmp_path / "jwks.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(InvalidCredential):
        asyncio.run(
            JwtVerifier(IssuerKeys(str(file)), ClaimSettings()).identify(RequestCredential(Scheme.BEARER, issued()))
        )
    assert len([record for record in caplog.records if str(file) in record.getMessage()]) == 1
