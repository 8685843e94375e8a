"""A real browser opens malicious pages next to a registry without authentication (ACC-84, ACC-87, ACC-102)."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from typing import Any
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest

from tests.support.serving import serving
from tests.support.stores import WHOLE

pytestmark = [pytest.mark.uses("Chromium"), pytest.mark.timeout(120)]

#: Sends requests with and without a preflight, and reports the result of each.
ATTACK = """
<!doctype html><title>a page</title>
<form method=post enctype=text/plain target=frame></form><iframe name=frame></iframe>
<script type=module>
const target = %(target)s, told = {};
const form = document.forms[0];
form.action = target + "/dirs?by=form";
const sent = new Promise(done => document.querySelector("iframe").onload = done);
form.submit();
await sent;
async function attempt(name, path, options) {
  try {
    const answer = await fetch(target + path, options);
    told[name] = answer.type === "opaque" ? "unread" : answer.status;
  } catch { told[name] = "refused"; }
}
const body = JSON.stringify({"new": {}});
await attempt("simple", "/dirs", {method: "POST", mode: "no-cors", headers: {"content-type": "text/plain"}, body});
await attempt("document", "/dirs/d/files/f", {method: "POST", mode: "no-cors", body: "a text"});
await attempt("put", "/dirs/new", {method: "PUT", headers: {"content-type": "application/json"}, body: "{}"});
await attempt("delete", "/dirs/gone", {method: "DELETE"});
await attempt("read", "/dirs", {});
await fetch("/told", {method: "POST", body: JSON.stringify(told)});
</script>
"""

#: Loads stored documents in frames, and reports which of their scripts ran within two seconds.
EMBEDDING = """
<!doctype html><title>a page</title>
<script type=module>
const ran = [];
onmessage = said => ran.push(said.data);
for (const address of %(addresses)s) {
  const frame = document.createElement("iframe");
  frame.src = address;
  document.body.append(frame);
}
setTimeout(() => fetch("/told", {method: "POST", body: JSON.stringify(ran)}), 2000);
</script>
<body></body>
"""
HTML = b"<!doctype html><script>parent.postMessage('html ran', '*')</script>"
SVG = b"<svg xmlns='http://www.w3.org/2000/svg'><script>parent.postMessage('svg ran', '*')</script></svg>"
STORED = {"html": ("text/html", HTML), "svg": ("image/svg+xml", SVG)}
MODEL = {"groups": {"dirs": {"singular": "dir", "resources": {"files": {"singular": "file"}}}}}


class Pages(ThreadingHTTPServer):
    """A server of pages by path that forwards all other requests to `beyond`, with their original Host header.

    This imitates DNS rebinding: the name of a loaded page resolves to another server.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.pages: dict[str, tuple[str, bytes]] = {}
        self.reports: Queue[Any] = Queue()
        self.beyond = ""

    @property
    def origin(self) -> str:
        """Its origin, with a host name that no registry has."""
        return f"http://evil.example:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Pages
    protocol_version = "HTTP/1.1"

    def handle_any(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.path == "/told":
            self.server.reports.put(json.loads(body))
            return self._answer(204, "text/plain", b"")
        if self.path in self.server.pages:
            return self._answer(200, *self.server.pages[self.path])
        if not self.server.beyond:
            return self._answer(404, "text/plain", b"")
        connection = http.client.HTTPConnection(urlsplit(self.server.beyond).netloc)
        connection.request(self.command, self.path, body, dict(self.headers.items()))
        answer = connection.getresponse()
        return self._answer(answer.status, answer.headers.get("content-type", "text/plain"), answer.read())

    def _answer(self, status: int, media_type: str, content: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", media_type)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None: ...


for _method in ("GET", "POST", "PUT", "DELETE", "OPTIONS"):
    setattr(_Handler, f"do_{_method}", _Handler.handle_any)


@pytest.fixture
def pages() -> Iterator[Pages]:
    with Pages() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


@contextmanager
def chromium(home: Path, url: str) -> Iterator[None]:
    """A browser with one page open."""
    program = shutil.which("chromium")
    if program is None:
        if os.environ.get(WHOLE):
            raise FileNotFoundError("chromium")
        pytest.skip("no browser: apt-get install chromium")
    options = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run")
    names = "--host-resolver-rules=MAP *.example 127.0.0.1"
    with (home / "browser.log").open("wb") as log:
        browser = subprocess.Popen(
            [program, *options, names, "--remote-debugging-port=0", f"--user-data-dir={home / 'browser'}", url],
            stdout=log,
            stderr=log,
        )
        try:
            yield
        finally:
            browser.terminate()
            browser.wait(timeout=30)


def put(url: str, value: bytes, media_type: str = "application/json") -> None:
    with urlopen(Request(url, value, {"Content-Type": media_type}, method="PUT")):
        pass


def files(url: str) -> dict[str, set[str]]:
    """The names of the Resources of a registry by Group."""
    with urlopen(f"{url}/dirs?inline=files") as answer:
        return {name: set(group["files"]) for name, group in json.load(answer).items()}


UNTOUCHED: dict[str, set[str]] = {"d": set(), "gone": set()}
REFUSED = {"simple": "unread", "document": "unread", "put": "refused", "delete": "refused", "read": "refused"}
ALLOWED = {"simple": "unread", "document": "unread", "put": 201, "delete": 204, "read": 200}
#: An attack, settings, the results that the page reports, and the contents of the registry afterwards.
ATTACKS: list[tuple[str, dict[str, str], dict[str, Any], dict[str, set[str]]]] = [
    ("ACC-84: a page elsewhere", {}, REFUSED, UNTOUCHED),
    ("ACC-84: an origin that may", {"ANNALS_CORS_ORIGINS": "{origin}"}, ALLOWED, {"d": {"f"}, "new": set()}),
    ("ACC-87: a name that leads here", {}, dict.fromkeys(REFUSED, 421), UNTOUCHED),
]


@pytest.mark.parametrize(("rule", "settings", "told", "after"), ATTACKS, ids=[row[0] for row in ATTACKS])
def test_page_that_writes(
    tmp_path: Path, pages: Pages, rule: str, settings: dict[str, str], told: dict[str, Any], after: dict[str, set[str]]
) -> None:
    settings = {name: value.format(origin=pages.origin) for name, value in settings.items()}
    with serving("sqlite:///annals.db", tmp_path, **settings) as served:
        put(f"{served.url}/modelsource", json.dumps(MODEL).encode())
        for name in UNTOUCHED:
            put(f"{served.url}/dirs/{name}", b"{}")
        rebinds = rule.startswith("ACC-87")
        pages.beyond = served.url if rebinds else ""
        page = ATTACK % {"target": json.dumps(pages.origin if rebinds else served.url)}
        pages.pages["/page"] = ("text/html", page.encode())
        with chromium(tmp_path, f"{pages.origin}/page"):
            assert pages.reports.get(timeout=60) == told
        assert files(served.url) == after


def test_stored_pages_do_not_run(tmp_path: Path, pages: Pages) -> None:
    # ACC-102: stored HTML and SVG are saved or shown without their scripts; from another server the scripts run
    with serving("sqlite:///annals.db", tmp_path) as served:
        put(f"{served.url}/modelsource", json.dumps(MODEL).encode())
        addresses = []
        for name, (media_type, content) in STORED.items():
            put(f"{served.url}/dirs/d/files/{name}", content, media_type)
            pages.pages[f"/{name}"] = (media_type, content)
            addresses += [f"{served.url}/dirs/d/files/{name}", f"{served.url}/dirs/d/files/{name}/versions/1"]
        for frames, ran in ((addresses, []), ([f"/{name}" for name in STORED], ["html ran", "svg ran"])):
            pages.pages["/page"] = ("text/html", (EMBEDDING % {"addresses": json.dumps(frames)}).encode())
            with chromium(tmp_path, f"{pages.origin}/page"):
                assert sorted(pages.reports.get(timeout=60)) == ran
