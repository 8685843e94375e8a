"""A certified OpenID Connect provider, oidc-provider for Node.js, and a minimal browser that fills in its forms."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urljoin, urlsplit

import httpx

from tests.support.downloads.npm import packages
from tests.support.left_out import leave_out
from tests.support.ports import free_port, wait_for_port

PACKAGE: Final = "oidc-provider@9.13.3"
CLIENT: Final = "annals"
CLI_CLIENT: Final = "annals-cli"
SECRET: Final = "the-secret-of-the-client"
_SCRIPT: Final = Path(__file__).with_name("oidc_provider.mjs")


class Provider(NamedTuple):
    """A running provider. accounts: the file with its accounts."""

    issuer: str
    accounts: Path

    def set_accounts(self, accounts: Mapping[str, Any]) -> None:
        """Replaces the accounts. accounts: claims by account name."""
        self.accounts.write_text(json.dumps(accounts))


@contextmanager
def provider(home: Path, public_url: str, *, refreshes: bool = True, **client: Any) -> Iterator[Provider]:
    """The provider with two clients: a registry and the command line. Skips the test if there is no npm or node.

    home: an empty folder. public_url: of the registry. refreshes: whether the provider issues refresh tokens. client:
    further properties of the registry as a client.
    """
    node = shutil.which("node") or leave_out("no node: apt-get install nodejs, or put node on PATH")
    port, accounts, package = free_port(), home / "accounts.json", packages(PACKAGE)
    accounts.write_text("{}")
    grants = ["authorization_code", *(["refresh_token"] if refreshes else [])]
    registered = {
        "client_id": CLIENT,
        "client_secret": SECRET,
        "redirect_uris": [f"{public_url}/ui/login/callback"],
        "post_logout_redirect_uris": [f"{public_url}/ui/login"],
        "grant_types": grants,
        **client,
    }
    command_line = {
        "client_id": CLI_CLIENT,
        "token_endpoint_auth_method": "none",
        "redirect_uris": [],
        "response_types": [],
        "grant_types": ["urn:ietf:params:oauth:grant-type:device_code", *grants[1:]],
    }
    clients = json.dumps([registered, command_line])
    command = [node, str(_SCRIPT), str(package), str(port), clients, str(accounts)]
    with (home / "provider.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            wait_for_port(port, lambda: process.poll() is None, 60)
            yield Provider(f"http://127.0.0.1:{port}", accounts)
        finally:
            process.kill()
            process.wait()


class Form(NamedTuple):
    """A form of a page: its target, and its fields with their values."""

    action: str
    method: str
    fields: dict[str, str]

    @property
    def is_post(self) -> bool:
        """Whether the form changes something."""
        return self.method.lower() == "post"


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self.links: dict[str, str] = {}
        self._link = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        members = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.forms.append(Form(members.get("action", ""), members.get("method", "get"), {}))
        elif tag == "input" and self.forms and members.get("name"):
            self.forms[-1].fields[members["name"]] = members.get("value", "")
        elif tag == "a":
            self._link = members.get("href", "")

    def handle_data(self, data: str) -> None:
        if self._link:
            self.links[data.strip()] = self._link
            self._link = ""


class Browser:
    """Requests pages as a browser does, follows redirects, and stores cookies and the current page.

    stops_at: a path to which no redirect is followed; `stopped` is then the URL of the redirect.
    """

    def __init__(self) -> None:
        self.client = httpx.Client(timeout=30, headers={"accept": "text/html"})
        self.page = httpx.Response(204, request=httpx.Request("GET", "about:blank"))
        self.stops_at, self.stopped = "", ""

    def go(self, url: str) -> httpx.Response:
        """Opens a page."""
        return self._follow(self.client.get(url, headers={"sec-fetch-mode": "navigate", "sec-fetch-site": "none"}))

    def click(self, text: str) -> httpx.Response:
        """Follows a link of the page."""
        return self.go(urljoin(str(self.page.url), self._parsed.links[text]))

    def submit(self, field: str = "", **values: str) -> httpx.Response:
        """Submits a form of the page: the one with a field, or the first whose method is POST."""
        form = next(form for form in self._parsed.forms if (field in form.fields if field else form.is_post))
        url = urljoin(str(self.page.url), form.action)
        headers = {"sec-fetch-mode": "navigate", "sec-fetch-site": "same-origin"}
        return self._follow(self.client.post(url, data={**form.fields, **values}, headers=headers))

    def sign_in_at_provider(self, name: str) -> httpx.Response:
        """Fills in the forms of the provider until it redirects the browser back."""
        self.submit("login", login=name, password="any")
        while not self.stopped and "/interaction/" in str(self.page.url):
            self.submit("prompt")
        return self.page

    @property
    def _parsed(self) -> _Page:
        page = _Page()
        page.feed(self.page.text)
        return page

    def _follow(self, answer: httpx.Response) -> httpx.Response:
        while answer.has_redirect_location:
            url = urljoin(str(answer.url), answer.headers["location"])
            if self.stops_at and urlsplit(url).path == self.stops_at:
                self.stopped = url
                break
            answer = self.client.get(url)
        self.page = answer
        return answer
