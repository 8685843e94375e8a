"""One credential of a request identifies the caller, in the fixed order of the configured authenticators."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annals.api.auth.callers import ORDER, Authenticator
from annals.api.auth.credentials import InvalidCredential, RequestCredential, Scheme
from annals.api.auth.identity import Identity
from annals.domain.access.roles import Caller, Role
from tests.api.auth.test_jwt import KEY, jwk, token
from tests.support.examples import examples
from tests.support.polling import until
from tests.support.registries.in_process import Api, create, serving

TOKENS = {
    "read": {"name": "rita", "role": "reader", "groups": {"/dirs/D1": "writer"}},
    "both": {"name": "jo", "role": "admin"},
}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A registry that accepts fixed tokens and JWTs of an issuer."""
    folder = tmp_path_factory.mktemp("registry")
    (folder / "jwks.json").write_text(json.dumps({"keys": [jwk(KEY)]}))
    url = f"sqlite:///{folder}/annals.db"
    create(url)
    options: dict[str, Any] = {"jwt_keys": str(folder / "jwks.json"), "jwt_issuer": "i", "jwt_audience": "a"}
    with serving(url, tokens=json.dumps(TOKENS), **options) as api:
        yield api


def whoami(api: Api, **headers: str) -> Any:
    answer = api.send("GET", "/-/whoami", **headers)
    return answer.json() if answer.status_code == 200 else answer.status_code


def basic(name: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


NOBODY: dict[str, Any] = {"name": "anonymous", "authenticator": None, "role": None, "groups": {}, "expires": None}


def test_who_calls(api: Api) -> None:
    """ACC-10, ACC-16: several authenticators at the same time."""
    rita = {"name": "rita", "authenticator": "tokens", "role": "reader", "groups": {"/dirs/d1": "writer"}}
    assert whoami(api, authorization="Bearer read") == {**rita, "expires": None}
    jo = whoami(api, authorization=f"Bearer {token(role='writer', exp=32503680000)}")
    assert jo == {**NOBODY, "name": "jo", "authenticator": "jwt", "role": "writer", "expires": jo["expires"]}
    assert jo["expires"] == "3000-01-01T00:00:00.000000Z"
    assert whoami(api) == NOBODY
    answer = api.send("GET", "/-/whoami", authorization="Bearer read")
    assert answer.headers["cache-control"] == "private, no-store"


def test_a_name_of_two_authenticators_is_one_caller(api: Api) -> None:
    """ACC-13: the caller has the roles of the credential that it used."""
    by_token = whoami(api, authorization="Bearer both")
    by_jwt = whoami(api, authorization=f"Bearer {token(role='reader')}")
    assert (by_token["name"], by_token["role"]) == ("jo", "admin")
    assert (by_jwt["name"], by_jwt["role"]) == ("jo", "reader")


@pytest.mark.parametrize(
    ("headers", "taken"),
    [
        ({"authorization": "bearer read"}, True),
        ({"authorization": "BEARER  read "}, True),
        ({"authorization": "Bearer wrong"}, False),
        ({"authorization": ""}, False),
        ({"authorization": "Bearer"}, False),
        ({"authorization": "Bearer read, Bearer read"}, False),
        ({"authorization": "Token read"}, False),
        ({"authorization": "Negotiate read"}, False),
        ({"authorization": basic("rita", "read")}, False),
        ({"authorization": "Bearer wrong", "cookie": "annals=x"}, False),
    ],
    ids=str,
)
def test_a_bad_credential_is_not_anonymous(api: Api, headers: dict[str, str], taken: bool) -> None:
    """ACC-11, ACC-12: no other credential is tried; names of schemes ignore case; other schemes are refused."""
    assert (whoami(api, **headers) != 401) == taken
    assert (api.send("GET", "/", **headers).status_code == 200) == taken


def test_one_authorization_header_and_no_credential_in_the_query(api: Api) -> None:
    """ACC-12: two `Authorization` headers are 401, and a token in the query is ignored."""
    twice = [("authorization", "Bearer read"), ("authorization", "Bearer read")]
    assert api.runner.run(api.client.get("/", headers=twice)).status_code == 401
    for name in ("access_token", "token", "authorization"):
        assert api.send("GET", f"/-/whoami?{name}=read").json() == NOBODY


class Listed:
    """A verifier that accepts one secret, refuses another, and leaves all others to the next verifier."""

    def __init__(self, name: str, scheme: Scheme, known: str, refused: str = "bad") -> None:
        self.name, self.schemes, self.known, self.refused = name, frozenset((scheme,)), known, refused

    async def identify(self, credential: RequestCredential) -> Identity | None:
        if credential.secret == self.refused:
            raise InvalidCredential("it is bad")
        return Identity(Caller(self.name, Role.READER), self.name) if credential.secret == self.known else None

    def listed(self) -> list[Identity]:
        return []


def test_the_order_is_fixed() -> None:
    """ACC-12: keys, tokens, jwt, regardless of the configured order; a verifier that refuses ends the search."""
    bearer = [Listed(name, Scheme.BEARER, "known") for name in ("jwt", "tokens", "keys")]
    authenticator = Authenticator([Listed("session", Scheme.SESSION, "known"), *bearer])
    assert authenticator.names == tuple(name for name in ORDER if name not in ("basic", "certificate"))
    for scheme, name in ((Scheme.BEARER, "keys"), (Scheme.SESSION, "session")):
        assert asyncio.run(authenticator.verify(RequestCredential(scheme, "known"))).authenticator == name
    with pytest.raises(InvalidCredential) as refused:
        asyncio.run(authenticator.verify(RequestCredential(Scheme.BEARER, "bad")))
    assert refused.value.authenticator == "keys"


def test_challenges(api: Api) -> None:
    """ACC-18: a 401 names each configured scheme, and `invalid_token` for a bad token."""
    for headers, expected in (
        ({}, 'Bearer realm="annals"'),
        ({"authorization": "Bearer x"}, 'Bearer realm="annals", error="invalid_token"'),
        ({"authorization": basic("a", "b")}, 'Bearer realm="annals"'),
    ):
        answer = api.send("GET", "/", **headers)
        assert (answer.status_code, answer.headers.get_list("www-authenticate")) == (401, [expected])


@pytest.mark.parametrize("path", ["/-/livez", "/readyz", "/.xregistry", "/.well-known/xregistry"])
def test_what_needs_no_credential_takes_a_bad_one(api: Api, path: str) -> None:
    """ACC-17: public paths ignore credentials."""
    assert api.send("GET", path).status_code == 200
    assert api.send("GET", path, authorization="Bearer wrong").status_code == 200


def file_errors(api: Api) -> str:
    lines = api.send("GET", "/-/metrics", authorization="Bearer t").text.splitlines()
    return next(line for line in lines if line.startswith("annals_auth_file_error{"))


def test_a_changed_file_is_read_again(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """ACC-19: a broken file keeps the old content in force, is logged, and sets a metric."""
    monkeypatch.setattr("annals.api.auth.files.periodic_tasks.INTERVAL", 0.01)
    file = tmp_path / "tokens.json"
    create(sqlite_url)

    def entry(role: str) -> str:
        return json.dumps({"t": {"name": "n", "role": role}})

    file.write_text(entry("reader"))
    with serving(sqlite_url, tokens=str(file)) as api:

        def write(text: str) -> None:
            (tmp_path / "new").write_text(text)
            (tmp_path / "new").replace(file)

        def role() -> object:
            return whoami(api, authorization="Bearer t")["role"]

        def messages() -> list[str]:
            api.runner.run(asyncio.sleep(0.05))  # time for several looks at the file
            return [record.getMessage() for record in caplog.records if "cannot be used" in record.getMessage()]

        assert role() == "reader"
        write(entry("writer"))
        until(lambda: role() == "writer")
        for number, broken in enumerate(("{", entry("king"), '{"t": {"name": "console"}}', "[]"), 1):
            write(broken)
            until(partial(lambda number: len(messages()) == number, number))
            assert role() == "writer"
            assert file_errors(api) == f'annals_auth_file_error{{file="{file}"}} 1.0'
        file.unlink()
        until(lambda: len(messages()) == 5)
        assert role() == "writer"
        assert len(messages()) == 5 and all(str(file) in line for line in messages())
        write(entry("admin"))
        until(lambda: role() == "admin")
        assert file_errors(api).endswith(" 0.0")


def test_the_look_at_files_is_frequent() -> None:
    """ACC-19: two checks within 5 s."""
    from annals.api.auth.files.periodic_tasks import INTERVAL

    assert 2 * INTERVAL <= 5


def test_paths_in_answers(api: Api) -> None:
    """ACC-16: the OpenAPI document has `/-/whoami`."""
    paths = api.send("GET", "/-/openapi.json", authorization="Bearer read").json()["paths"]
    assert paths["/-/whoami"]["get"]["operationId"] == "getCaller"


def test_a_token_as_a_password_outside_confluents_api(api: Api) -> None:
    """ACC-110: a good token in the wrong place is no attempt, so a client with a wrong URL locks nobody out."""
    for _ in range(6):
        refused = api.send("GET", "/subjects", authorization=basic("any", "both"))
        assert (refused.status_code, refused.json()["title"]) == (
            401,
            'For "/subjects", a valid credential is needed: the password is a token, which only Confluent\'s API'
            " (/compat/confluent) takes in that way; send it as a bearer token.",
        )
    found = api.send("GET", "/compat/confluent/schemas/types", authorization=basic("any", "both"))
    assert found.status_code == 200


@settings(max_examples=examples(150), deadline=None)
@given(st.sampled_from([b"", b"Bearer ", b"Basic ", b"basic  "]), st.binary(max_size=40), st.booleans())
def test_no_header_is_an_error_of_the_server(api: Api, scheme: bytes, content: bytes, is_encoded: bool) -> None:
    """ACC-11, ACC-12: any bytes identify a caller or are refused."""
    value = scheme + (base64.b64encode(content) if is_encoded else content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("annals.api.auth.limits.failed_attempts.MAX_BY_ADDRESS", 10**6)
        patch.setattr("annals.api.auth.limits.failed_attempts.MAX_BY_NAME", 10**6)
        for path in ("/dirs", "/compat/confluent/schemas/types"):
            request = api.client.get(path, headers={b"authorization": value})
            assert api.runner.run(request).status_code in (200, 401)
