"""Writes from browsers are accepted from pages of this server and of listed origins only (ACC-84 to ACC-86)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.registries.in_process import Api, create, serving

OWN = "http://h:8080"
LISTED = "https://app.example"
OTHER = "https://evil.example"
TOKENS = '{"t": {"name": "n", "role": "writer"}}'
BEARER = {"authorization": "Bearer t"}

#: Rule, settings, headers of a write, and whether it is refused.
ROWS: list[tuple[str, dict[str, Any], dict[str, str], bool]] = [
    ("ACC-85: no browser sends neither", {}, {}, False),
    ("ACC-85: a session's cookie comes from a browser", {}, {"cookie": "a=b; annals=x"}, True),
    ("ACC-85: so it does under TLS", {}, {"cookie": "__Host-annals=x"}, True),
    ("ACC-85: other cookies", {}, {"cookie": "annals2=x; b=annals"}, False),
    ("ACC-85: the cookie of a page of ours", {}, {"cookie": "annals=x", "sec_fetch_site": "same-origin"}, False),
    ("ACC-84: a page of ours", {}, {"sec_fetch_site": "same-origin", "origin": OWN}, False),
    ("ACC-84: typed by a person", {}, {"sec_fetch_site": "none"}, False),
    ("ACC-84: a page elsewhere", {}, {"sec_fetch_site": "cross-site", "origin": OTHER}, True),
    ("ACC-84: a page elsewhere, no Origin", {}, {"sec_fetch_site": "cross-site"}, True),
    ("ACC-84: a page of a name beside ours", {}, {"sec_fetch_site": "same-site", "origin": "http://h:9"}, True),
    ("ACC-84: a word that nobody knows", {}, {"sec_fetch_site": "elsewhere", "origin": OWN}, True),
    ("ACC-84: without Sec-Fetch-Site, ours", {}, {"origin": OWN}, False),
    ("ACC-84: behind a proxy with TLS, ours", {}, {"origin": "https://h:8080"}, False),
    ("ACC-84: without Sec-Fetch-Site, another", {}, {"origin": OTHER}, True),
    ("ACC-84: another port", {}, {"origin": "http://h:8081"}, True),
    ("ACC-84: a page without an origin", {}, {"origin": "null"}, True),
    ("ACC-84: nonsense", {}, {"origin": ""}, True),
    (
        "ACC-84: that of the public URL",
        {"public_url": "https://reg.example/r"},
        {"origin": "https://reg.example"},
        False,
    ),
    ("ACC-84: its host without TLS", {"public_url": "https://reg.example/r"}, {"origin": "http://reg.example"}, True),
    ("ACC-84: listed", {"cors_origins": LISTED}, {"sec_fetch_site": "cross-site", "origin": LISTED}, False),
    ("ACC-84: listed, without Sec-Fetch-Site", {"cors_origins": LISTED}, {"origin": LISTED}, False),
    ("ACC-84: not listed", {"cors_origins": LISTED}, {"origin": OTHER}, True),
    (
        "ACC-84: nor with a credential",
        {"tokens": TOKENS},
        {"sec_fetch_site": "cross-site", "origin": OTHER, **BEARER},
        True,
    ),
    ("ACC-85: * allows reads", {"cors_origins": "*"}, {"sec_fetch_site": "cross-site", "origin": OTHER}, True),
    ("ACC-84: where nobody checks a credential", {"cors_origins": "*"}, {"origin": OTHER, **BEARER}, True),
    (
        "ACC-85: and writes with a credential",
        {"cors_origins": "*", "tokens": TOKENS},
        {"origin": OTHER, **BEARER},
        False,
    ),
]


@pytest.mark.parametrize(("rule", "options", "headers", "refused"), ROWS, ids=[row[0] for row in ROWS])
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_write(
    sqlite_url: str, method: str, rule: str, options: dict[str, Any], headers: dict[str, str], refused: bool
) -> None:
    create(sqlite_url)
    credential = BEARER if "tokens" in options else {}
    with serving(sqlite_url, **{"public_url": None, **options}) as api:
        api.done("PUT", "/dirs/d", {}, **credential)
        before = api.send("GET", "/?inline=*", **credential).content
        path = "/dirs" if method == "POST" else "/dirs/d"
        answer = api.send(method, path, {"new": {}} if method == "POST" else {}, host="h:8080", **headers)
        assert (answer.status_code == 403) == refused, answer.text
        if refused:
            assert answer.json()["type"].rpartition("#")[2] == "cross_origin"
            assert api.send("GET", "/?inline=*", **credential).content == before
        elif "authorization" in headers or "tokens" not in options:
            assert answer.is_success


FORM = {"content_type": "text/plain"}
BASIC = {"authorization": "Basic YTpi"}
COOKIE = {"cookie": "annals=x"}
PROXIED = {"client_cert": ":YQ==:"}

#: Rule, `ANNALS_CORS_ORIGINS`, path and headers of a POST, and whether it is refused.
FORM_ROWS: list[tuple[str, str, str, dict[str, str], bool]] = [
    ("ACC-85: browsers add passwords to forms", "*", "/dirs/d/files/f", {**FORM, **BASIC}, True),
    ("ACC-84: also from listed origins", LISTED, "/dirs/d/files/f", {**FORM, **BASIC}, True),
    ("ACC-84: and to empty bodies", LISTED, "/-/links/a/actions/check", BASIC, True),
    ("ACC-88: sessions", LISTED, "/dirs/d/files/f", {**FORM, **COOKIE}, True),
    ("ACC-88: also without a preflight that allows them", LISTED, "/dirs", {**COOKIE, "content_type": "a/b"}, True),
    ("ACC-84: certificates", LISTED, "/dirs/d/files/f", {**FORM, **PROXIED}, True),
    ("ACC-85: no browser adds a token", "*", "/dirs/d/files/f", {**FORM, **BEARER}, False),
    ("ACC-85: nor a password after a preflight", "*", "/dirs", {**BASIC, "content_type": "application/json"}, False),
    ("ACC-84: a form without a credential", LISTED, "/dirs/d/files/f", FORM, False),
    ("ACC-84: pages are for their own forms", LISTED, "/ui/login", FORM, True),
    ("ACC-84: also with a token", LISTED, "/ui/grants", {**FORM, **BEARER}, True),
]


@pytest.mark.parametrize(
    ("rule", "origins", "path", "headers", "refused"), FORM_ROWS, ids=[row[0] for row in FORM_ROWS]
)
def test_credentials_that_browsers_add(
    sqlite_url: str, rule: str, origins: str, path: str, headers: dict[str, str], refused: bool
) -> None:
    # a page of an allowed origin may use the credentials that it has itself, not those that the browser has
    create(sqlite_url)
    with serving(sqlite_url, public_url=None, cors_origins=origins, tokens=TOKENS) as api:
        answer = api.send("POST", path, b"", host="h:8080", sec_fetch_site="cross-site", origin=LISTED, **headers)
        is_refused = answer.status_code == 403 and "cross_origin" in answer.text
        assert is_refused == refused, answer.text


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS"])
def test_reads_are_allowed_from_any_origin(api: Api, method: str) -> None:
    # ACC-84 applies to methods that write; CORS decides which responses a page may read
    assert api.send(method, "/", sec_fetch_site="cross-site", origin=OTHER).status_code == 200


@pytest.mark.parametrize(
    ("path", "media_type", "more"),
    [
        ("/dirs/d", "application/json; charset=utf-8", {}),
        ("/-/check/dirs/d/files/f", "application/problem+json", {"status": 403}),
        ("/subscriptions", "application/problem+json", {"status": 403}),
        ("/compat/schemaregistry/v0.2/schemagroups/g", "application/problem+json", {"status": 403}),
        ("/-/nowhere", "application/problem+json", {"status": 403}),
    ],
)
def test_each_api_refuses_in_its_own_format(api: Api, path: str, media_type: str, more: dict[str, Any]) -> None:
    # ACC-84: 403 cross_origin, without CORS headers: the page cannot read it, the page's developer can
    answer = api.send("PUT", path, {}, sec_fetch_site="cross-site", origin=OTHER)
    problem = answer.json()
    assert (answer.status_code, answer.headers["content-type"]) == (403, media_type)
    assert problem["type"] == "http://h/r/-/docs#cross_origin"
    assert problem["title"] == (
        f'For "{path}", a page of another origin, "{OTHER}", requests a change. Pages that may do this are those of '
        "the origins in ANNALS_CORS_ORIGINS; where that is *, their changes need the header Authorization."
    )
    assert (problem["subject"], problem["args"]) == (path, {"origin": OTHER})
    assert more.items() <= problem.items()
    assert "access-control-allow-origin" not in answer.headers


FORMS = [
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "text/plain;charset=UTF-8",
    "TEXT/PLAIN",
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("PUT", "/dirs/d", 415),
        ("PUT", "/dirs/d/files/f$details", 415),
        ("POST", "/dirs/d/notes", 415),
        ("PUT", "/modelsource", 415),
        ("DELETE", "/dirs", 415),
        ("POST", "/subscriptions", 415),
        ("POST", "/-/links", 415),
        ("PUT", "/compat/schemaregistry/v0.2/schemagroups/g", 415),
        ("PUT", "/dirs/d/files/f", 201),
        ("POST", "/dirs/d/files/f", 201),
    ],
)
def test_bodies_as_forms_have_them(api: Api, form: str, method: str, path: str, status: int) -> None:
    # ACC-86: from a browser, a form or text/plain body is accepted as a document only; from other clients, anywhere
    for browser in ({"sec_fetch_site": "same-origin"}, {"origin": "http://h"}):
        answer = api.send(method, path, b"{}", content_type=form, **browser)
        assert answer.status_code == status, answer.text
        assert status == 201 or answer.json()["type"].rpartition("#")[2] == "unsupported_media_type"
        api.send("DELETE", "/dirs/d")
    if path != "/subscriptions":  # subscriptions refuse these media types from any client
        assert api.send(method, path, b"{}", content_type=form).status_code != 415


def test_no_cookies_for_pages_elsewhere(sqlite_url: str) -> None:
    # ACC-88: CORS never sends Allow-Credentials, and a preflight needs no credential
    create(sqlite_url)
    with serving(sqlite_url, cors_origins=LISTED, tokens=TOKENS) as api:
        preflight = api.send("OPTIONS", "/dirs/d", origin=LISTED, access_control_request_method="PUT")
        assert preflight.status_code == 204
        for answer in (preflight, api.send("GET", "/", origin=LISTED, **BEARER)):
            assert "access-control-allow-credentials" not in answer.headers
