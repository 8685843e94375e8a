"""`annals auth login` and `logout` with a real provider, and the servers that receive the token (ACC-50)."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from annals.api.cli.sign_ins import SignIn, origin_of
from tests.support.console import Annals, Ended
from tests.support.forks import Fork
from tests.support.oidc import CLI_CLIENT, CLIENT, Browser
from tests.support.oidc_site import Site, running_site
from tests.support.polling import until
from tests.support.registries.in_process import create
from tests.support.registries.other_registry import other_registry
from tests.support.serving import environment

pytestmark = [pytest.mark.uses("Node.js"), pytest.mark.timeout(120)]
ACCOUNTS = {"ada": {"role": "writer"}}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with running_site(tmp_path_factory.mktemp("site"), ANNALS_OIDC_CLI_CLIENT_ID=CLI_CLIENT) as site:
        yield site


class Person:
    """A user with a command line, a store and a browser."""

    def __init__(self, site: Site, annals: Annals, home: Path) -> None:
        self.site, self.annals, self.home = site, annals, home
        self.file = home / "annals" / "sign-ins.json"
        site.provider.set_accounts(ACCOUNTS)

    def log_in(self, client: str = CLI_CLIENT, cancels: bool = False, url: str | None = None) -> Ended:
        """Runs `annals auth login`, and confirms the code in the browser, or cancels."""
        output, errors = self.home / "said", self.home / "complained"
        for file in (output, errors):
            file.write_text("")
        options = ("--issuer", self.site.provider.issuer, "--client-id", client)
        settings = environment(XDG_CONFIG_HOME=str(self.home))
        process = Fork(("auth", "login", url or self.site.url, *options), self.home, settings, output, errors)
        try:
            until(lambda: process.poll() is not None or "confirm the code" in errors.read_text())
            if process.poll() is None:
                self._confirm(errors.read_text().split()[1], cancels)
            return Ended(process.wait(timeout=60), output.read_text(), errors.read_text())
        finally:
            process.kill()

    def _confirm(self, url: str, cancels: bool) -> None:
        browser = Browser()
        browser.go(url)
        browser.submit("user_code")  # the code is in the URL
        if cancels:
            browser.submit("user_code", abort="yes")
            return
        browser.submit("user_code", confirm="yes")
        browser.sign_in_at_provider("ada")

    def compare(self, url: str | None = None) -> Ended:
        """The outcome of `annals log hash`, a verb that reads from the server."""
        database = self.home / "own.db"
        if not database.exists():
            create(f"sqlite:///{database}")
        return self.annals("log", "hash", "/", "--database", f"sqlite:///{database}", "--against", url or self.site.url)

    def change(self, **members: Any) -> None:
        """Changes members of the stored sign-in, for example its time of expiry."""
        sign_ins = json.loads(self.file.read_text())
        for each in sign_ins.values():
            each.update(members)
        self.file.write_text(json.dumps(sign_ins))

    @property
    def stored(self) -> dict[str, Any]:
        """The stored sign-in."""
        (sign_in,) = json.loads(self.file.read_text()).values()
        return dict(sign_in)


@pytest.fixture
def person(site: Site, annals: Annals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Person:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return Person(site, annals, tmp_path)


def test_signing_in_and_out(person: Person) -> None:
    """ACC-50: a browser confirms the code; then verbs send the token to this server, until the sign-out."""
    assert "answers 401" in person.compare().err
    ended = person.log_in()
    assert (ended.code, ended.out) == (0, f"signed in to {person.site.url} as ada\n"), ended.err
    assert stat.S_IMODE(person.file.stat().st_mode) == 0o600
    assert "eyJ" not in ended.out + ended.err
    assert person.compare().err.endswith("differs.\n")
    assert person.annals("auth", "logout", person.site.url).code == 0
    assert person.file.read_text() == "{}" and "answers 401" in person.compare().err
    assert person.annals("auth", "logout", person.site.url).code == 1


def test_the_token_goes_to_its_origin_only(person: Person) -> None:
    """ACC-50: another name of the same machine is another origin; --token has precedence over the stored token."""
    assert person.log_in().code == 0
    assert "answers 401" in person.compare(person.site.url.replace("127.0.0.1", "localhost")).err
    assert person.compare(person.site.url + "/").err.endswith("differs.\n")
    other = person.annals(
        *("log", "hash", "/", "--database", f"sqlite:///{person.home}/own.db", "--against", person.site.url),
        *("--token", "wrong"),
    )
    assert "answers 401" in other.err


def test_tokens_are_refreshed(person: Person) -> None:
    """ACC-50: an expired token is refreshed without interaction; if the provider refuses, the error names a remedy."""
    assert person.log_in().code == 0
    first = person.stored
    person.change(expires=0.0, id_token="old")
    assert person.compare().err.endswith("differs.\n")
    assert person.stored["id_token"].startswith("eyJ") and person.stored["expires"] >= first["expires"]
    assert stat.S_IMODE(person.file.stat().st_mode) == 0o600
    person.change(expires=0.0, refresh_token="wrong")
    refused = person.compare()
    assert refused.code == 3 and f"annals auth login {person.site.url}" in refused.err
    person.change(refresh_token="")
    assert "no refresh token" in person.compare().err


def test_what_is_refused(person: Person) -> None:
    """ACC-50: if the user cancels or the provider refuses the client, the verb fails and stores nothing."""
    cancelled = person.log_in(cancels=True)
    assert cancelled.code == 1 and "access_denied" in cancelled.err
    assert person.log_in(client=CLIENT).code == 1
    assert person.log_in(client="unknown").code == 1
    with other_registry() as other:
        ended = person.log_in(url=other.url)
    said = f"annals: {other.url} answers 404, and not as a registry; check the URL.\n"
    assert ended.code == 3 and ended.err.endswith(said)
    assert not person.file.exists()


@pytest.mark.parametrize(
    ("arguments", "code", "named"),
    [
        (("http://registry.example.com",), 2, "https"),
        (("registry",), 2, "https"),
        (("https://r.example",), 2, "--issuer"),
        (("https://r.example", "--issuer", "https://p.example"), 2, "--client-id"),
        (("https://r.example", "--issuer", "http://p.example", "--client-id", "x"), 2, "OIDC_ISSUER"),
        (("https://r.example", "--issuer", "http://127.0.0.1:9", "--client-id", "x"), 3, "does not answer"),
    ],
)
def test_wrong_use(annals: Annals, arguments: tuple[str, ...], code: int, named: str) -> None:
    """ACC-50: the error names the wrong argument; tokens are not sent unencrypted to other machines."""
    ended = annals("auth", "login", *arguments)
    assert ended.code == code and named in ended.err and "Traceback" not in ended.err


def test_a_file_that_is_not_safe(person: Person) -> None:
    """ACC-50: a file of sign-ins that other users can read, or that is malformed, is not used."""
    sign_in = SignIn("https://p.example", "cli", 9e9, "an ID token")
    person.file.parent.mkdir()
    person.file.write_text(json.dumps({origin_of(person.site.url): asdict(sign_in)}))
    person.file.chmod(0o640)
    ended = person.compare()
    assert ended.code == 2 and "chmod 600" in ended.err
    person.file.chmod(0o600)
    assert "answers 401" in person.compare().err, "the server does not take this token"
    person.file.write_text('{"x": []}')
    assert person.compare().code == 2


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("https://h", "https://h:443"),
        ("https://H:443/path?q", "https://h:443"),
        ("http://h:8080/", "http://h:8080"),
        ("https://user@h", "https://h:443"),
        ("https://h@evil.example", "https://evil.example:443"),
        ("https://h:x", None),
        ("ftp://h", None),
        ("h:443", None),
        ("", None),
    ],
)
def test_origins(url: str, origin: str | None) -> None:
    """ACC-50: the origin of a server, which decides whether it receives a token, is scheme, host and port."""
    assert origin_of(url) == origin
