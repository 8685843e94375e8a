"""ID tokens of the provider, which the command line sends as bearer tokens (ACC-50)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any, Final

import jwt
import pytest

from tests.api.auth.test_jwt import KEY, jwk
from tests.api.ui.test_hostile_provider import HostileProvider, claims_of, id_token
from tests.support.registries.in_process import Api, create, serving

CLI: Final = "annals-cli"


@pytest.fixture(scope="module")
def provider() -> Iterator[HostileProvider]:
    with HostileProvider() as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def settings_of(provider: HostileProvider) -> dict[str, Any]:
    client: dict[str, Any] = {"oidc_client_id": "annals", "oidc_cli_client_id": CLI}
    return {"public_url": "http://h", "oidc_issuer": provider.issuer, **client}


@pytest.fixture(scope="module")
def api(provider: HostileProvider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A registry that also accepts JWTs of the same issuer for another audience."""
    folder: Path = tmp_path_factory.mktemp("registry")
    (folder / "jwks.json").write_text(json.dumps({"keys": [jwk(KEY)]}))
    jwts: dict[str, Any] = {"jwt_keys": str(folder / "jwks.json"), "jwt_issuer": provider.issuer, "jwt_audience": "api"}
    create(f"sqlite:///{folder}/annals.db")
    with serving(f"sqlite:///{folder}/annals.db", **settings_of(provider), **jwts) as api:
        yield api


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({}, 200),
        ({"aud": [CLI, "other"]}, 200),
        ({"azp": CLI}, 200),
        ({"aud": "api"}, 200),
        ({"aud": "annals"}, 401),
        ({"aud": ["other"]}, 401),
        ({"aud": ...}, 401),
        ({"aud": {"annals-cli": 1}}, 401),
        ({"azp": "annals"}, 401),
        ({"azp": None}, 401),
        ({"iss": "https://evil.example"}, 401),
        ({"exp": 1}, 401),
        ({"exp": ...}, 401),
        ({"sub": "console"}, 401),
    ],
)
def test_claims(api: Api, provider: HostileProvider, changes: dict[str, Any], status: int) -> None:
    """ACC-50, ACC-52: the audience must be the client of the command line, not the client of the web UI."""
    token = id_token(claims_of(provider, "n", **{"aud": CLI, "role": "reader", **changes}))
    answer = api.send("GET", "/-/whoami", authorization=f"Bearer {token}")
    assert answer.status_code == status, answer.text
    if status == 200:
        known = answer.json()
        assert (known["name"], known["authenticator"], known["role"]) == ("eve", "jwt", "reader")


@pytest.mark.parametrize("damage", ["signature", "alg", "text"])
def test_forged_tokens(api: Api, provider: HostileProvider, damage: str) -> None:
    """ACC-20: the claims select the verifier of a token, and the verifier checks the signature."""
    claims = claims_of(provider, "n", aud=CLI, role="admin")
    other = id_token({**claims, "x": 1}).rpartition(".")[2]
    token = {
        "signature": f"{id_token(claims).rpartition('.')[0]}.{other}",
        "alg": jwt.encode(claims, "", "none", {"kid": "k"}),
        "text": "ey.e30.x",
    }[damage]
    assert api.send("GET", "/", authorization=f"Bearer {token}").status_code == 401


def test_without_other_authenticators(provider: HostileProvider, sqlite_url: str) -> None:
    """ACC-18, ACC-50: ID tokens alone cause the challenge Bearer; without the setting, they are refused."""
    create(sqlite_url)
    authorization = f"Bearer {id_token(claims_of(provider, 'n', aud=CLI, role='writer'))}"
    with serving(sqlite_url, **settings_of(provider)) as api:
        assert api.send("GET", "/").headers.get_list("www-authenticate") == ['Bearer realm="annals"']
        assert api.send("PUT", "/dirs/d", b"{}", authorization=authorization).status_code == 201
    with serving(sqlite_url, **{**settings_of(provider), "oidc_cli_client_id": None}) as api:
        assert api.send("GET", "/", authorization=authorization).status_code == 401


def test_a_provider_that_is_down(provider: HostileProvider, sqlite_url: str) -> None:
    """ACC-51: tokens of the provider are 502 until its keys are known; other credentials work."""
    create(sqlite_url)
    down = "http://127.0.0.1:9"
    token = id_token({**claims_of(provider, "n", aud=CLI), "iss": down})
    tokens = json.dumps({"t": {"name": "ci", "role": "reader"}})
    with serving(sqlite_url, **{**settings_of(provider), "oidc_issuer": down}, tokens=tokens) as api:
        assert api.send("GET", "/", authorization=f"Bearer {token}").status_code == 502
        assert api.send("GET", "/", authorization="Bearer t").status_code == 200
