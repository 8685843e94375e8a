"""Stored content never runs on the server's origin, whichever request returns it (ACC-100, ACC-102 to 104)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any, NamedTuple

import pytest

from tests.support.registries.in_process import Api, create, serving

POLICY = "sandbox; default-src 'none'"
CONTENT = b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>"
HASH = sha256(CONTENT).hexdigest()
FACADE = "/compat/schemaregistry/v0.2/schemagroups/g/schemas"
PAGES = [
    "text/html",
    "TEXT/HTML; charset=utf-8",
    "image/svg+xml",
    "application/xml",
    "text/xml",
    "application/xhtml+xml",
]
TYPES = [*PAGES, "text/plain", "application/json", "nonsense/html"]


@pytest.mark.parametrize("path", ["/-/docs", "/-/"])
def test_pages_of_the_server(api: Api, path: str) -> None:
    """ACC-101: pages load nothing from elsewhere, run no inline script, and cannot be framed."""
    answer = api.send("GET", path, accept="text/html")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = dict(rule.split(" ", 1) for rule in answer.headers["content-security-policy"].split("; "))
    none = dict.fromkeys(("default-src", "base-uri", "frame-ancestors", "form-action"), "'none'")
    assert {name: policy[name] for name in none} == none and "script-src" not in policy
    assert "'unsafe" not in answer.headers["content-security-policy"] and "<script" not in answer.text
    assert answer.headers["referrer-policy"] == "same-origin"
    for name in ("cross-origin-opener-policy", "cross-origin-resource-policy"):
        assert answer.headers[name] == "same-origin"


class DocumentRequest(NamedTuple):
    """A request that returns a document. disposition: its Content-Disposition, None if the media type decides."""

    method: str
    path: str
    disposition: str | None = None
    body: bytes | None = None


DOCUMENT_REQUESTS = {
    "a Resource": DocumentRequest("GET", "/schemagroups/g/schemas/s", "s"),
    "a Version": DocumentRequest("GET", "/schemagroups/g/schemas/s/versions/1", "s"),
    "the past": DocumentRequest("GET", "/schemagroups/g/schemas/s?asof=2026-01-02T03:04:05Z", "s"),
    "a filter": DocumentRequest("GET", "/schemagroups/g/schemas/s?filter=schemaid=s", "s"),
    "a pointer": DocumentRequest("GET", "/schemagroups/g/schemas/x", "x"),
    "the answer to a PUT": DocumentRequest("PUT", "/schemagroups/g/schemas/s", "s", CONTENT),
    "the answer to a POST": DocumentRequest("POST", "/schemagroups/g/schemas/s", "s", CONTENT),
    "the flag binary": DocumentRequest("GET", "/schemagroups/g/schemas/s?binary", "s"),
    "by hash": DocumentRequest("GET", f"/-/documents/{HASH}", "attachment"),
    "an older API": DocumentRequest("GET", f"{FACADE}/s"),
    "a version of an older API": DocumentRequest("GET", f"{FACADE}/s/versions/1"),
    "an older API, the past": DocumentRequest("GET", f"{FACADE}/s?asof=2026-01-02T03:04:05Z"),
}


@pytest.fixture(params=TYPES, scope="module")
def stored(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Api, str]]:
    """A registry with a document of a media type."""
    with serving(f"sqlite:///{tmp_path_factory.mktemp('stored') / 'annals.db'}") as api:
        headers = {"content_type": request.param, "xregistry_format": "Text"}
        api.done("PUT", "/schemagroups/g/schemas/s", CONTENT, **headers)
        api.done("PUT", "/schemagroups/g/schemas/x/meta", {"xref": "/schemagroups/g/schemas/s"})
        yield api, request.param


def test_a_document_with_the_id_inline_is_saved(sqlite_url: str) -> None:
    # ACC-102: the id is the disposition, and this one would show the page of a stranger
    with serving(sqlite_url) as api:
        api.done("PUT", "/schemagroups/g/schemas/Inline", CONTENT, content_type="text/html", xregistry_format="Text")
        assert api.send("GET", "/schemagroups/g/schemas/Inline").headers["content-disposition"] == "attachment"


@pytest.mark.parametrize("name", DOCUMENT_REQUESTS)
def test_stored_documents_cannot_run(stored: tuple[Api, str], name: str) -> None:
    # ACC-102: stored documents have CSP `sandbox; default-src 'none'`
    # HTML, SVG and XML are attachments, unless HTTP-44 gives a file name
    (api, media_type), read = stored, DOCUMENT_REQUESTS[name]
    headers = {} if read.body is None else {"content_type": media_type, "xregistry_format": "Text"}
    answer = api.send(read.method, read.path, read.body, **headers)
    assert answer.status_code in (200, 201), answer.text
    assert answer.content == CONTENT
    assert answer.headers["content-security-policy"] == POLICY
    assert answer.headers["x-content-type-options"] == "nosniff"
    by_type = "attachment" if media_type in PAGES else None
    assert answer.headers.get("content-disposition") == (read.disposition or by_type)
    if name == "by hash":
        assert answer.headers["content-type"] == "application/octet-stream"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *((method, path) for method in ("GET", "HEAD", "OPTIONS") for path in ("/", "/-/docs", "/-/nope", "/none")),
        *(
            ("GET", path)
            for path in ("/-/livez", "/export", "/-/events", "/-/log", "/-/metrics", "/compat/x", "/livez")
        ),
        *(("PUT", path) for path in ("/", "/dirs", "/subscriptions", "/-/log")),
    ],
)
def test_nothing_is_taken_for_something_else(api: Api, method: str, path: str) -> None:
    # ACC-100: all responses have nosniff; without https they have no HSTS
    answer = api.send(method, path)
    assert answer.headers.get_list("x-content-type-options") == ["nosniff"]
    assert "strict-transport-security" not in answer.headers


@pytest.mark.parametrize("path", ["/", "/-/nope", "/export", "/-/docs"])
def test_https_stays_https(sqlite_url: str, path: str) -> None:
    # ACC-100: under https Strict-Transport-Security, one year
    create(sqlite_url)
    with serving(sqlite_url, public_url="https://h") as api:
        assert api.send("GET", path).headers["strict-transport-security"] == "max-age=31536000"


@pytest.mark.parametrize("path", ["/", "/dirs/d", "/-/docs", f"/-/documents/{HASH}", "/-/livez", "/compat/x"])
@pytest.mark.parametrize(
    "destination", ["script", "style", "worker", "sharedworker", "serviceworker", "object", "embed", "Script"]
)
def test_pages_embed_nothing_of_ours(api: Api, destination: str, path: str) -> None:
    # ACC-103: Sec-Fetch-Dest of script, style, ... is accepted below /ui/static/ only, else 403
    answer = api.send("GET", path, sec_fetch_dest=destination, sec_fetch_site="same-origin")
    assert (answer.status_code, answer.json()["type"].rpartition("#")[2]) == (403, "forbidden_destination")


@pytest.mark.parametrize("destination", ["document", "empty", "iframe", "image", ""])
def test_browsers_and_clients_may_read_content(api: Api, destination: str) -> None:
    # ACC-103 applies only to destinations that run content
    assert api.send("GET", "/", sec_fetch_dest=destination).status_code == 200


SCRIPTS = ["javascript:alert(1)", "JavaScript:alert(1)", "data:text/html,x", "vbscript:x", "blob:x"]
PLACES = ["https://a.example/s", "http://a.example/s?x=javascript:y", "s3://bucket/key"]


@pytest.mark.parametrize("url", [*SCRIPTS, *PLACES])
def test_where_documents_are(sqlite_url: str, url: str) -> None:
    # ACC-104: javascript: and data: never become redirects, in any spelling; attributes still have the stored URL
    with serving(sqlite_url) as api:
        given = {"format": "Text", "schemaurl": url}
        stored = api.send("PUT", "/schemagroups/g/schemas/s$details", given)
        assert stored.status_code == 201, stored.text
        for path in ("/schemagroups/g/schemas/s", "/schemagroups/g/schemas/s/versions/1", f"{FACADE}/s"):
            answer = api.send("GET", path)
            assert (answer.status_code, answer.content) == (303, b"")
            assert answer.headers.get("location") == (None if url in SCRIPTS else url)
        assert api.send("GET", "/schemagroups/g/schemas/s").headers["xregistry-schemaurl"] == url
        assert api.get("/schemagroups/g/schemas/s$details")["schemaurl"] == url


def test_short_urls_lead_into_the_registry(sqlite_url: str) -> None:
    # ACC-104: a short URL redirects into the registry, whatever path follows its token
    create(sqlite_url)
    with serving(sqlite_url, public_url=None) as api:
        for path in ("/-/s/0", "/-/s/0/javascript:alert(1)", "/-/s/0//evil.example", "/-/s/0/%2F%2Fevil.example"):
            answer = api.send("GET", path)
            assert answer.status_code == 404 or answer.headers["location"].startswith("http://h/"), path


class Links(HTMLParser):
    """The tags of a page, and the targets of its links."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.hrefs: list[str] = []
        self.tags: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.hrefs += [value or "" for name, value in attrs if name in ("href", "src", "action", "xlink:href")]


def test_the_page_of_the_api_links_nothing_that_is_stored(sqlite_url: str) -> None:
    # ACC-104: on pages a stored `javascript:` is text, and no link
    evil: dict[str, Any] = {"description": "<script>x</script> javascript:x", "documentation": "javascript:x"}
    attribute = {"type": "url", "description": "javascript:z", "default": "javascript:y", "required": True}
    files = {"singular": "file", **evil, "attributes": {"link": attribute}}
    model = {"groups": {"dirs": {"singular": "dir", **evil, "resources": {"files": files}}}}
    create(sqlite_url, json.loads(json.dumps(model)))
    with serving(sqlite_url) as api:
        answer = api.send("GET", "/-/docs")
        found = Links(answer.text)
        assert "script" not in found.tags
        assert "javascript:" in answer.text
        assert {href.partition(":")[0] for href in found.hrefs if not href.startswith("#")} == {"http", "https"}
