"""People sign in at a real provider (ACC-50 to ACC-57)."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import jwt
import pytest

from tests.support.oidc import CLIENT, SECRET, Browser
from tests.support.oidc_site import TOKENS, Site, running_site
from tests.support.serving import serving

pytestmark = [pytest.mark.uses("Node.js"), pytest.mark.timeout(120)]
ACCOUNTS = {"ada": {"role": "writer"}, "rita": {"role": "reader"}, "anonymous": {"role": "admin"}}
CALLBACK = "/ui/login/callback"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with running_site(tmp_path_factory.mktemp("site")) as site:
        yield site


def whoami(browser: Browser, site: Site) -> Any:
    answer = browser.client.get(f"{site.url}/-/whoami")
    return answer.json() if answer.status_code == 200 else answer.status_code


def signed_in(site: Site, name: str = "ada", stops_at: str = "") -> Browser:
    browser = Browser()
    browser.stops_at = stops_at
    site.provider.set_accounts(ACCOUNTS)
    browser.go(f"{site.url}/ui/login")
    browser.click("Sign in with the <office>")
    browser.sign_in_at_provider(name)
    return browser


def test_a_person_signs_in_and_out(site: Site) -> None:
    """ACC-50, ACC-54, ACC-57: a person signs in with the provider's forms, has the ID token's role, and signs out."""
    browser = Browser()
    site.provider.set_accounts(ACCOUNTS)
    assert browser.go(f"{site.url}/ui/").url.path == "/ui/login"
    browser.click("Sign in with the <office>")
    page = browser.sign_in_at_provider("ada")
    assert (page.status_code, page.url.path) == (200, "/ui/") and "ada" in page.text
    known = whoami(browser, site)
    assert (known["name"], known["authenticator"], known["role"]) == ("ada", "session", "writer")
    cookies = {"annals": browser.client.cookies["annals"]}
    browser.submit()
    assert browser.page.url.host == "127.0.0.1" and "/session/end" in str(browser.page.url)
    claims = jwt.decode(browser.page.url.params["id_token_hint"], options={"verify_signature": False})
    assert (claims["sub"], claims["aud"]) == ("ada", CLIENT)
    assert whoami(browser, site)["name"] == "anonymous"
    copied = httpx.get(f"{site.url}/-/whoami", cookies=cookies)
    assert copied.status_code == 401 and "Max-Age=0" in copied.headers["set-cookie"]


def test_reserved_names_are_refused(site: Site) -> None:
    """ACC-15, ACC-52: a provider cannot sign a person in with a name that the registry reserves."""
    browser = signed_in(site, "anonymous")
    assert browser.page.status_code == 401 and "annals" not in browser.client.cookies


def test_roles_follow_the_provider(site: Site) -> None:
    """ACC-56: roles are read again after 15 minutes; a person whom the provider has removed loses the session."""
    browser = signed_in(site)
    site.provider.set_accounts({"ada": {"role": "reader"}})
    assert whoami(browser, site)["role"] == "writer"
    for role in ("reader", "admin"):  # the second time with the next refresh token
        site.provider.set_accounts({"ada": {"role": role}})
        site.change_sessions("checked = checked - 901")
        assert whoami(browser, site)["role"] == role
    site.provider.set_accounts({})
    assert whoami(browser, site)["role"] == "admin"
    site.change_sessions("checked = checked - 901")
    assert whoami(browser, site) == 401
    site.provider.set_accounts(ACCOUNTS)
    assert whoami(browser, site)["name"] == "anonymous", "the cookie is gone too"


@pytest.mark.parametrize("assignments", ["used = used - 28801", "ends = used"])
def test_limits(site: Site, assignments: str) -> None:
    """ACC-55: a session ends after a long time without a request, and at its maximum age."""
    browser = signed_in(site)
    assert whoami(browser, site)["name"] == "ada"
    site.change_sessions(assignments)
    assert whoami(browser, site) == 401


def test_what_is_kept(site: Site) -> None:
    """ACC-54, ACC-56, ACC-113: store and server log contain no id, code or token, except a sealed refresh token."""
    browser = signed_in(site, stops_at=CALLBACK)
    code, state = (parse_qs(urlsplit(browser.stopped).query)[name][0] for name in ("code", "state"))
    browser.stops_at = ""
    browser.go(browser.stopped)
    id = browser.client.cookies["annals"].partition(".")[0]
    with closing(sqlite3.connect(site.folder / "annals.db", timeout=30)) as db:
        assert {len(sealed) > 30 for (sealed,) in db.execute("SELECT sealed FROM session")} == {True}
        dumped = "\n".join(db.iterdump())
    for secret in (id, code, state, SECRET, "eyJ"):
        assert secret not in dumped and secret not in (site.folder / "serve.log").read_text()


def test_a_public_client_without_a_master_key(tmp_path: Path) -> None:
    """ACC-56: PKCE alone protects the code; without a key to seal a refresh token, a session lasts an hour."""
    with running_site(tmp_path, is_confidential=False) as site:
        browser = signed_in(site)
        assert whoami(browser, site)["name"] == "ada"
        with closing(sqlite3.connect(site.folder / "annals.db", timeout=30)) as db:
            assert db.execute("SELECT ends - used, length(sealed) FROM session").fetchall() == [(3600, 0)]


def test_any_secret(tmp_path: Path) -> None:
    """ACC-50: the secret may have all characters, such as those of base64 (RFC 6749, 2.3.1)."""
    with running_site(tmp_path, secret="kL9+xA/7Zq3v%41b:e w==") as site:
        assert whoami(signed_in(site), site)["name"] == "ada"


def test_ended_sessions_are_no_guesses(site: Site) -> None:
    """ACC-110: the sessions of an office, which has one address, may end at the same time."""
    browser = signed_in(site)
    cookies = {"annals": browser.client.cookies["annals"]}
    site.change_sessions("ends = used")
    with httpx.Client() as client:
        for _ in range(52):
            answer = client.get(f"{site.url}/-/whoami", headers={"cookie": f"annals={cookies['annals']}"})
            assert answer.status_code == 401
    token = {"authorization": "Bearer t"}
    assert httpx.get(f"{site.url}/-/whoami", headers=token).json()["name"] == "ci"
    assert whoami(signed_in(site), site)["name"] == "ada"


def test_back_after_a_sign_in(site: Site) -> None:
    """ACC-53: a completed callback is a page to sign in at, also for somebody who still has the session."""
    browser = signed_in(site, stops_at=CALLBACK)
    callback, browser.stops_at = browser.stopped, ""
    assert browser.go(callback).status_code == 200
    assert browser.go(callback).status_code == 400
    assert whoami(browser, site)["name"] == "ada"
    other = Browser()
    assert other.go(callback).status_code == 400 and "took too long" in other.page.text
    other.click("Sign in with the <office>")
    other.sign_in_at_provider("rita")
    assert whoami(other, site)["name"] == "rita"


def changed(url: str, **params: str | None) -> str:
    query = {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()} | params
    return url.partition("?")[0] + "?" + urlencode({name: value for name, value in query.items() if value is not None})


@pytest.mark.parametrize(
    ("params", "status"),
    [
        ({}, 200),
        ({"state": "x"}, 400),
        ({"state": None}, 400),
        ({"state": ""}, 400),
        ({"iss": "https://evil.example"}, 401),
        ({"iss": None}, 401),
        ({"code": "x"}, 401),
        ({"code": None}, 401),
        ({"code": None, "error": "access_denied"}, 401),
    ],
)
def test_changed_callbacks(site: Site, params: dict[str, str | None], status: int) -> None:
    """ACC-52, ACC-53: only the unchanged callback of the provider signs a person in."""
    browser = signed_in(site, stops_at=CALLBACK)
    browser.stops_at = ""
    page = browser.go(changed(browser.stopped, **params))
    assert page.status_code == status and ("annals" in browser.client.cookies) == (status == 200)
    assert "access_denied" not in page.text


def test_replayed_callbacks(site: Site) -> None:
    """ACC-53: a callback works in its own browser only, and only once, also with a copy of the browser's cookies."""
    victim = signed_in(site, stops_at=CALLBACK)
    victim.stops_at = ""
    other, attacker = Browser(), signed_in(site, "rita", stops_at=CALLBACK)
    assert other.go(victim.stopped).status_code == 400, "a browser without a sign-in"
    assert victim.go(attacker.stopped).status_code == 400, "the sign-in of another browser"
    assert attacker.client.get(victim.stopped).status_code == 400
    copied = [(cookie.name, cookie.value or "") for cookie in victim.client.cookies.jar if "sign-in" in cookie.name]
    assert copied
    assert victim.go(victim.stopped).status_code == 200 and whoami(victim, site)["name"] == "ada"
    again = httpx.get(victim.stopped, cookies=dict(copied))
    assert again.status_code == 400 and "set-cookie" not in again.headers


def test_two_tabs(site: Site) -> None:
    """ACC-53: each tab has its own sign-in."""
    browser = signed_in(site, stops_at=CALLBACK)
    first = browser.stopped
    browser.go(f"{site.url}/ui/login")
    browser.click("Sign in with the <office>")
    second, browser.stops_at = browser.stopped, ""
    assert first != second
    assert browser.go(first).status_code == browser.go(second).status_code == 200


def test_a_provider_that_is_down(tmp_path: Path) -> None:
    """ACC-51: without its provider the server starts, says so, and accepts other credentials; a callback gets 502."""
    with running_site(tmp_path) as site:
        browser = signed_in(site, stops_at=CALLBACK)
        port, url = urlsplit(site.url).port, site.url
        issuer = site.provider.issuer
        settings = {"ANNALS_OIDC_ISSUER": issuer, "ANNALS_OIDC_CLIENT_ID": CLIENT, "ANNALS_PUBLIC_URL": url}
        callback = browser.stopped
    tokens = {"ANNALS_TOKENS": json.dumps(TOKENS)}
    database = f"sqlite:///{tmp_path}/annals.db"
    with serving(database, tmp_path, "--port", str(port), **settings, **tokens):
        page = browser.go(f"{url}/ui/login")
        assert page.status_code == 200 and "does not answer at the moment" in page.text
        assert browser.client.get(f"{url}/ui/login/provider").status_code == 502
        assert browser.client.get(callback).status_code == 502
        browser.stops_at = ""
        assert browser.submit("token", token="t").url.path == "/ui/"
        assert whoami(browser, site)["name"] == "ci"
