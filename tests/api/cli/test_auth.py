"""`annals auth check`: the caller that a credential identifies, and why."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.api.auth.test_jwt import KEY, jwk, token
from tests.support.console import Annals


@pytest.fixture
def settings(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "jwks.json").write_text(json.dumps({"keys": [jwk(KEY)]}))
    (folder / "tokens.json").write_text('{"t": {"name": "ci", "role": "writer", "groups": {"/dirs/d": "admin"}}}')
    for name, value in (("TOKENS", "tokens.json"), ("JWT_KEYS", "jwks.json"), ("JWT_ISSUER", "i")):
        monkeypatch.setenv(f"ANNALS_{name}", value)


def test_who_it_would_be_and_why(annals: Annals, folder: Path, settings: None) -> None:
    """ACC-10, ACC-16: the verb prints the caller, its rights, and the authenticator that accepts the credential."""
    (folder / "secret").write_text("t\n")
    ended = annals("auth", "check", "--secret-file", "secret")
    assert (ended.code, json.loads(ended.out)) == (
        0,
        {
            "name": "ci",
            "authenticator": "tokens",
            "role": "writer",
            "groups": {"/dirs/d": "admin"},
            "expires": None,
            "why": "it is known from ANNALS_TOKENS",
        },
    )


@pytest.mark.parametrize(
    ("secret", "line"),
    [
        ("wrong", "refused by all: no authenticator that is on knows this bearer credential (asked: tokens, jwt)."),
        (token(exp=time.time() - 60), "refused by jwt: it has expired (asked: tokens, jwt)."),
        (
            token(iss="other", exp=2**33),
            "refused by jwt: iss is not the issuer that the settings name (asked: tokens, jwt).",
        ),
    ],
)
def test_why_it_is_refused(annals: Annals, folder: Path, settings: None, secret: str, line: str) -> None:
    (folder / "secret").write_text(secret)
    ended = annals("auth", "check", "--secret-file", "secret")
    assert (ended.code, ended.out, ended.err.splitlines()[-1]) == (1, "", f"annals: {line}")
    assert secret not in ended.err


@pytest.mark.parametrize("options", ["", "--user ann"])
def test_a_secret_that_is_no_text(annals: Annals, folder: Path, settings: None, options: str) -> None:
    (folder / "secret").write_bytes(b"\xff\xfe")
    ended = annals("auth", "check", "--secret-file", "secret", *options.split())
    assert (ended.code, ended.err.splitlines()[-1]) == (2, "annals: secret is not UTF-8 text.")


def test_a_server_that_reads_no_credential(annals: Annals) -> None:
    ended = annals("auth", "check", "--secret-file", "none")
    assert ended.code == 2 and "every caller is anonymous, with the role writer" in ended.err
