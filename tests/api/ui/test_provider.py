"""People sign in at a real provider (ACC-50 to ACC-57)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from tests.support.oidc import CLIENT, SECRET, Browser, Provider, provider
from tests.support.ports import free_port
from tests.support.serving import serving

pytestmark = [pytest.mark.uses("Node.js"), pytest.mark.timeout(120)]
ACCOUNTS = {"ada": {"role": "writer"}, "rita": {"role": "reader"}, "anonymous": {"role": "admin"}}
TOKENS = {"t": {"name": "ci", "role": "reader"}}
MASTER_KEY = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="


class Site(NamedTuple):
    """A registry that signs people in at a provider."""

    url: str
    provider: Provider
    folder: Path


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """One with tokens too, and a master key, so that its sessions keep refresh tokens."""
    folder = tmp_path_factory.mktemp("site")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    (folder / "secret").write_text(SECRET + "\n")
    with provider(folder, url) as running:
        settings = {
            "ANNALS_OIDC_ISSUER": running.issuer,
            "ANNALS_OIDC_CLIENT_ID": CLIENT,
            "ANNALS_OIDC_CLIENT_SECRET_FILE": str(folder / "secret"),
            "ANNALS_OIDC_NAME": "the <office>",
            "ANNALS_PUBLIC_URL": url,
            "ANNALS_TOKENS": json.dumps(TOKENS),
            "ANNALS_MASTER_KEY": MASTER_KEY,
        }
        with serving(f"sqlite:///{folder}/annals.db", folder, "--port", str(port), **settings):
            yield Site(url, running, folder)


def whoami(browser: Browser, site: Site) -> Any:
    answer = browser.client.get(f"{site.url}/-/whoami")
    return answer.json() if answer.status_code == 200 else answer.status_code


def signed_in(site: Site, name: str = "ada") -> Browser:
    browser = Browser()
    site.provider.set_accounts(ACCOUNTS)
    browser.go(f"{site.url}/ui/login")
    browser.click("Sign in with the <office>")
    browser.sign_in_at_provider(name)
    return browser


def test_a_person_signs_in_and_out(site: Site) -> None:
    """ACC-50, ACC-54, ACC-57: through the provider's forms and back, with the roles of the ID token."""
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
    assert whoami(browser, site)["name"] == "anonymous"
    copied = httpx.get(f"{site.url}/-/whoami", cookies=cookies)
    assert copied.status_code == 401 and "Max-Age=0" in copied.headers["set-cookie"]
