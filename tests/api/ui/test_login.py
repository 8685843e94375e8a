"""Sign-in by forms, without a provider: how a session begins and ends, and what pages show."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import httpx
import pytest
from argon2 import PasswordHasher
from sqlalchemy import create_engine, inspect

from annals.api.ui.sign_in.local_paths import local_path
from annals.domain.model import spec_attributes
from annals.projections.sessions.session_store import SessionStore
from tests.api.auth.test_jwt import KEY, jwk, token
from tests.support.registries.in_process import Api, create, serving
from tests.support.serving import serving as serving_process

HASHER: Final = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)
BASE: Final = "http://h"
FORM: Final = "application/x-www-form-urlencoded"
TOKENS: Final = {"t1": {"name": "ci", "role": "writer"}, "t2": {"name": "ci", "role": "reader"}}


def tokens_file(folder: Path, tokens: dict[str, Any]) -> None:
    (folder / "tokens.json").write_text(json.dumps(tokens))


def passwords_file(folder: Path, password: str, name: str = "ada") -> None:
    (folder / "basic.json").write_text(json.dumps({name: {"password": HASHER.hash(password), "role": "writer"}}))


@pytest.fixture
def api(store_url: str, tmp_path: Path) -> Iterator[Api]:
    """A registry with tokens, passwords and JWTs."""
    tokens_file(tmp_path, TOKENS)
    passwords_file(tmp_path, "pw")
    (tmp_path / "jwks.json").write_text(json.dumps({"keys": [jwk(KEY)]}))
    create(store_url)
    options: dict[str, Any] = {"jwt_keys": str(tmp_path / "jwks.json"), "jwt_issuer": "i", "jwt_audience": "a"}
    files: dict[str, Any] = {"tokens": str(tmp_path / "tokens.json"), "basic_file": str(tmp_path / "basic.json")}
    with serving(store_url, public_url=BASE, session_idle=1000, **files, **options) as api:
        yield api


def post(api: Api, path: str, cookie: str | None = None, **fields: str) -> httpx.Response:
    api.client.cookies.clear()  # the client would send the cookie of an earlier step
    headers = {"content-type": FORM, "sec-fetch-site": "same-origin"} | ({"cookie": cookie} if cookie else {})
    return api.send("POST", path, urlencode(fields).encode(), **headers)


def cookie_of(answer: httpx.Response) -> str:
    assert answer.status_code == 303, answer.text
    return answer.headers["set-cookie"].partition(";")[0]


def whoami(api: Api, cookie: str) -> Any:
    answer = api.send("GET", "/-/whoami", cookie=cookie)
    return answer.json() if answer.status_code == 200 else answer.status_code


def check_files(api: Api) -> None:
    """Checks the files for changes, as the server does every few seconds."""
    api.runner.run(api.app.state.periodic_tasks.run_once())


@pytest.mark.parametrize(
    ("fields", "name", "role"),
    [
        ({"token": "t1"}, "ci", "writer"),
        ({"token": " t2 "}, "ci", "reader"),
        ({"name": "ada", "password": "pw"}, "ada", "writer"),
    ],
)
def test_who_signs_in(api: Api, fields: dict[str, str], name: str, role: str) -> None:
    """ACC-54, ACC-59: the session has the caller of the credential, on every path."""
    answer = post(api, "/ui/login", next="/ui/?x=1", **fields)
    assert answer.headers["location"] == "/ui/?x=1"
    cookies = [text.split("; ") for text in answer.headers.get_list("set-cookie")]
    assert [(cookie[0].partition("=")[0], set(cookie[1:])) for cookie in cookies] == [
        (name, {"HttpOnly", "SameSite=Lax", "Path=/"}) for name in ("annals", "annals-known")
    ]
    known = whoami(api, cookie_of(answer))
    assert (known["name"], known["role"], known["authenticator"]) == (name, role, "session")
    assert name in api.send("GET", "/ui/", cookie=cookie_of(answer)).text


def test_an_open_page_does_not_keep_a_session(api: Api, store_url: str) -> None:
    """ACC-55: the stream that an open page reads does not count as use of the session."""
    cookie = cookie_of(post(api, "/ui/login", token="t1"))

    def idle(seconds: int) -> int:
        """Lets the session be unused for some seconds more; for how long it has been unused then."""
        with closing(create_engine(store_url).connect()) as connection, connection.begin():
            connection.exec_driver_sql(f"UPDATE session SET used = used - {seconds}")
            return int(time.time()) - int(connection.exec_driver_sql("SELECT used FROM session").scalar_one())

    api.client.cookies.clear()
    assert api.send("PUT", "/dirs/d1", {}, authorization="Bearer t1").status_code == 201
    assert idle(300) >= 300
    opened = api.send("GET", "/-/events?limit=1", cookie=cookie, accept="text/event-stream")
    assert opened.status_code == 200 and idle(0) >= 300
    assert api.send("GET", "/-/whoami", cookie=cookie).status_code == 200 and idle(0) < 100
    idle(1000)
    assert api.send("GET", "/-/events", cookie=cookie, accept="text/event-stream").status_code == 401


def test_a_jwt_ends_its_session(api: Api) -> None:
    """ACC-59: a session lasts no longer than the token that began it."""
    expires = int(time.time()) + 100
    known = whoami(api, cookie_of(post(api, "/ui/login", token=token(role="reader", exp=expires))))
    assert known["name"] == "jo"
    assert known["expires"].startswith(time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(expires)))


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"token": "wrong"}, 401),
        ({"name": "ada", "password": "wrong"}, 401),
        ({"name": "nobody", "password": "pw"}, 401),
        ({"name": "ada"}, 400),
        ({"next": "/ui/"}, 400),
    ],
)
def test_who_does_not(api: Api, fields: dict[str, str], status: int) -> None:
    """ACC-18, ACC-32, ACC-59: the page does not say which part of the credential was wrong, and repeats none of it.

    A 401 has the challenge of the cookie alone, because a browser would open a dialog for Basic.
    """
    answer = post(api, "/ui/login", **fields)
    assert answer.status_code == status and "set-cookie" not in answer.headers
    assert answer.headers.get_list("www-authenticate") == (['Cookie realm="annals"'] if status == 401 else [])
    assert "wrong" not in answer.text and "nobody" not in answer.text
    assert answer.headers["content-type"].startswith("text/html")


def test_guesses_are_counted(api: Api) -> None:
    """ACC-110: a failed sign-in by form counts like any other wrong credential."""
    for _ in range(5):
        assert post(api, "/ui/login", name="ada", password="guess").status_code == 401
    answer = post(api, "/ui/login", name="ada", password="pw")
    assert answer.status_code == 429 and "retry-after" in answer.headers
    assert answer.headers["content-type"].startswith("text/html")


def test_each_sign_in_has_an_id_of_its_own(api: Api) -> None:
    """ACC-55: a new sign-in ends the previous session of the browser, and no other."""
    first, other = (cookie_of(post(api, "/ui/login", token="t1")) for _ in range(2))
    second = cookie_of(post(api, "/ui/login", first, token="t1"))
    assert len({first, second, other}) == 3
    assert whoami(api, first) == 401
    assert whoami(api, second)["name"] == whoami(api, other)["name"] == "ci"


def test_sign_out(api: Api) -> None:
    """ACC-57: a copy of the cookie is refused after the sign-out, and pages are not cached."""
    cookie = cookie_of(post(api, "/ui/login", token="t1"))
    assert api.send("GET", "/ui/", cookie=cookie).headers["cache-control"] == "private, no-store"
    answer = post(api, "/ui/logout", cookie)
    assert (answer.status_code, answer.headers["location"]) == (303, "/ui/login")
    assert "Max-Age=0" in answer.headers["set-cookie"]
    assert whoami(api, cookie) == 401
    assert post(api, "/ui/logout", cookie).status_code == 303


@pytest.mark.parametrize("made", ["changed", "swapped", "longer", "empty"])
def test_changed_cookies(api: Api, monkeypatch: pytest.MonkeyPatch, made: str) -> None:
    """ACC-54: a cookie that this server has not signed is refused without a look-up, and removed from the browser."""
    cookie, other = (cookie_of(post(api, "/ui/login", token="t1")) for _ in range(2))
    changed = {
        "changed": cookie[:-3] + ("A" if cookie[-3] != "A" else "B") + cookie[-2:],
        "swapped": cookie.rpartition(".")[0] + "." + other.rpartition(".")[2],
        "longer": cookie.replace("annals=", "annals=x"),
        "empty": "annals=",
    }[made]
    looked_up = list[str]()
    monkeypatch.setattr(SessionStore, "find", lambda _, hash: looked_up.append(hash))
    answer = api.send("GET", "/-/whoami", cookie=changed)
    assert looked_up == []
    assert answer.status_code == 401 and "Max-Age=0" in answer.headers["set-cookie"]


def test_cookies_of_another_registry_are_no_guesses(api: Api) -> None:
    """ACC-110: browsers send them to every port of a host; people at that address can still sign in."""
    for _ in range(51):
        assert whoami(api, "annals=of-another.registry") == 401
    assert post(api, "/ui/login", token="t1").status_code == 303


def test_a_removed_token_or_name_ends_its_sessions(api: Api, tmp_path: Path) -> None:
    """ACC-59: sessions end with their token or password, also if the caller has another token, or a new password."""
    first, second = (cookie_of(post(api, "/ui/login", token=each)) for each in TOKENS)
    person = cookie_of(post(api, "/ui/login", name="ada", password="pw"))
    tokens_file(tmp_path, {"t2": {"name": "ci", "role": "admin"}})
    passwords_file(tmp_path, "new")
    check_files(api)
    assert whoami(api, first) == 401 and whoami(api, person) == 401
    assert whoami(api, second)["role"] == "admin"  # the session has the current role of its token
    tokens_file(tmp_path, TOKENS)
    check_files(api)
    assert whoami(api, first) == 401, "it does not come back with the token"


def test_an_authorization_header_counts_first(api: Api) -> None:
    """ACC-11: the header takes precedence, valid or not; an invalid one does not remove the cookie."""
    cookie = cookie_of(post(api, "/ui/login", token="t1"))
    assert api.send("GET", "/-/whoami", cookie=cookie, authorization="Bearer t2").json()["authenticator"] == "tokens"
    answer = api.send("GET", "/-/whoami", cookie=cookie, authorization="Bearer bad")
    assert answer.status_code == 401 and "set-cookie" not in answer.headers


PAGE: Final = {"accept": "text/html"}


@pytest.mark.parametrize(
    ("path", "headers", "location"),
    [
        ("/ui/", {"sec-fetch-mode": "navigate"}, "/ui/login"),
        ("/ui/?a=b%20c&d=%2F", {"sec-fetch-mode": "navigate"}, "/ui/login?next=/ui/%3Fa%3Db%2520c%26d%3D%252F"),
        ("/ui/", PAGE, "/ui/login"),
        ("/ui/", {"sec-fetch-mode": "cors", **PAGE}, None),
        ("/ui/", {}, None),
        ("/-/whoami", {"sec-fetch-mode": "navigate", "authorization": "Bearer bad"}, None),
        ("/dirs", {"sec-fetch-mode": "navigate"}, None),
    ],
)
def test_navigations_lead_to_the_sign_in(api: Api, path: str, headers: dict[str, str], location: str | None) -> None:
    """ACC-18: only a navigation to a page is redirected to the sign-in, so that no script gets a page by mistake."""
    answer = api.send("GET", path, **headers)
    assert (answer.status_code, answer.headers.get("location")) == ((303, location) if location else (401, None))


def test_the_next_page_survives_the_form(api: Api) -> None:
    """ACC-58: the sign-in page copies `next` from its query to a hidden field of its forms."""
    page = api.send("GET", "/ui/login?next=/ui/%3Fa%3Db%2520c%26d%3D%22").text
    assert re.findall('name="next" value="([^"]*)"', page) == ["/ui/?a=b%20c&amp;d=&#34;"] * 2


@pytest.mark.parametrize(
    ("text", "path"),
    [
        *((same, same) for same in ("/ui/", "/ui/x/y?a=b#c", "/ui/a..b/")),
        *(
            (bad, "/ui/")
            for bad in (
                *("", "/", "/ui", "/dirs", "//evil.example/ui/", "/ui//evil.example", "https://evil.example/ui/"),
                *("/ui/\\evil", "\\ui\\", "/ui/\t/x", "/ui/ x", "/ui/x\r\nSet-Cookie: a=b", "/ui/é", "javascript:1"),
                *("/ui/../dirs", "/ui/%2e%2e/dirs", "/ui/.%2E/dirs", "/ui/%2e/x", "/ui/login", "/ui/login?next=/ui/"),
                *("/ui/?u=https://evil.example", "/ui/" + "x" * 1024, "/UI/x", "//ui/", "http:/ui/", "/ui/..", "/ui/."),
            )
        ),
    ],
)
def test_next_is_a_path_of_a_page(text: str, path: str) -> None:
    """ACC-58: a `next` that a browser could resolve to anything but a page is replaced by `/ui/`."""
    assert local_path(text) == path


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("POST", "/ui/login", {"sec-fetch-site": "cross-site"}, 403),
        ("POST", "/ui/login", {"origin": "https://evil.example"}, 403),
        ("POST", "/ui/logout", {"sec-fetch-site": "same-site"}, 403),
        ("POST", "/ui/login", {"content-type": "application/json"}, 415),
        ("GET", "/ui/logout", {}, 405),
        ("GET", "/ui/login/provider", {}, 404),
        ("GET", "/ui/login/callback?state=x&code=y", {}, 404),
        ("GET", "/ui/elsewhere", {}, 404),
        ("GET", "/ui/static/none.css", {}, 404),
    ],
)
def test_refused_requests(api: Api, method: str, path: str, headers: dict[str, str], status: int) -> None:
    """ACC-84, ACC-86: a refusal is a page, and sets no cookie."""
    answer = api.send(method, path, b"token=t1" if method == "POST" else None, **{"content-type": FORM, **headers})
    assert answer.status_code == status and answer.headers["content-type"].startswith("text/html")
    assert "set-cookie" not in answer.headers


def test_headers_of_pages(api: Api) -> None:
    """ACC-100, ACC-101: a page allows no foreign content, no inline script or style, and no frame."""
    answer = api.send("GET", "/ui/login")
    policy = (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    )
    expected = {
        "content-security-policy": policy,
        "referrer-policy": "same-origin",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "x-content-type-options": "nosniff",
        "cache-control": "no-store",
    }
    assert {name: answer.headers.get(name) for name in expected} == expected
    assert "<style" not in answer.text and " style=" not in answer.text
    scripts = re.findall("<script[^>]*>(.*?)</script>", answer.text, re.DOTALL)
    assert scripts and not any(scripts), "a page has no script of its own"


def test_static_files(api: Api) -> None:
    """ACC-103: a page loads its own style sheet, but no API response as one; its name has a hash of its content."""
    path = re.findall('href="(/ui/static/[^"]+)"', api.send("GET", "/ui/login").text)[0]
    assert re.match(r"/ui/static/style\.[0-9a-f]{16}\.css", path)
    answer = api.send("GET", path, sec_fetch_dest="style")
    assert answer.status_code == 200 and answer.headers["content-type"] == "text/css; charset=utf-8"
    assert "immutable" in answer.headers["cache-control"]
    assert api.send("GET", "/dirs", sec_fetch_dest="style", authorization="Bearer t1").status_code == 403


def test_under_https(store_url: str) -> None:
    """ACC-54: the cookie is bound to the host and to TLS; without the prefix of its name it is ignored."""
    create(store_url)
    with serving(store_url, public_url="https://h", tokens=json.dumps(TOKENS)) as api:
        answer = post(api, "/ui/login", token="t1")
        assert answer.headers["set-cookie"].startswith("__Host-annals=") and "; Secure" in answer.headers["set-cookie"]
        cookie = cookie_of(answer)
        assert whoami(api, cookie)["name"] == "ci"
        assert whoami(api, cookie.removeprefix("__Host-"))["name"] == "anonymous"
        assert answer.headers["strict-transport-security"]


def test_two_processes_have_the_same_sessions(store_url: str) -> None:
    """ACC-54: processes share sessions, also after a restart; a session that one of them ends has ended in all."""
    create(store_url)
    with serving(store_url, public_url=BASE, tokens=json.dumps(TOKENS)) as first:
        cookie = cookie_of(post(first, "/ui/login", token="t1"))
        with serving(store_url, public_url=BASE, tokens=json.dumps(TOKENS)) as second:
            assert whoami(second, cookie)["name"] == "ci"
            post(second, "/ui/logout", cookie)
        assert whoami(first, cookie) == 401
        kept = cookie_of(post(first, "/ui/login", token="t1"))
    with serving(store_url, public_url=BASE, tokens=json.dumps(TOKENS)) as again:
        assert whoami(again, kept)["name"] == "ci"
    with serving(store_url, public_url=BASE, jwt_keys="none.json") as other:
        assert whoami(other, kept) == 401, "the authenticator of its credential is off"


def test_without_authenticators_there_are_no_sessions(store_url: str) -> None:
    """ACC-10: without authenticators, pages need no sign-in; there is no page for it, and no table of sessions."""
    create(store_url)
    with serving(store_url, public_url=BASE) as api:
        assert api.send("GET", "/ui/login").status_code == 404
        page = api.send("GET", "/ui/", cookie="annals=x.y")
        assert page.status_code == 200 and "Sign out" not in page.text
        assert api.send("GET", "/ui").headers["location"] == "/ui/"
    with closing(create_engine(store_url).connect()) as connection:
        assert [name for name in inspect(connection).get_table_names() if name.startswith("session")] == []


def test_a_model_with_the_name_has_its_path(store_url: str, caplog: pytest.LogCaptureFixture) -> None:
    """HTTP-4, UI-10: a Group type `ui` from before the name was reserved keeps its path; pages are then off."""
    source: dict[str, Any] = {"groups": {"ui": {"singular": "u", "resources": {}}}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spec_attributes, "RESERVED_PATHS", ("subscriptions",))  # as in an older release
        create(store_url, source)
    with serving(store_url, public_url=BASE) as api:
        assert "has no pages at /ui/" in caplog.text
        assert api.get("/ui") == {} and "text/html" not in api.send("GET", "/ui/x").headers["content-type"]
        assert api.send("GET", "/", accept="text/html").status_code == 200
        source["groups"]["dirs"] = {"singular": "dir"}
        api.done("PUT", "/modelsource", source)
        api.done("PUT", "/modelsource", {"groups": {"dirs": {"singular": "dir"}}})
        assert api.send("PUT", "/modelsource", source).status_code == 400, "once given up, the name is reserved"


def test_pages_can_be_turned_off(store_url: str) -> None:
    """UI-10: if pages are turned off, their paths do not exist."""
    create(store_url)
    with serving(store_url, public_url=BASE, ui=False) as api:
        assert [api.send("GET", path).status_code for path in ("/ui", "/ui/", "/ui/login")] == [404] * 3
        assert api.send("GET", "/", accept="text/html").status_code == 200


HTML, JSON = "text/html", "application/json"


@pytest.mark.parametrize(
    ("path", "accept", "mode", "status"),
    [
        ("/", f"{HTML},application/xhtml+xml,*/*;q=0.8", "navigate", 303),
        ("/", HTML, None, 303),
        ("/", f"{JSON};q=0.5,{HTML}", "navigate", 303),
        ("/", f"{HTML};q=0.5,{JSON}", "navigate", 200),
        ("/", f"{HTML},{JSON}", "navigate", 200),
        ("/", HTML, "cors", 200),
        ("/", "*/*", "navigate", 200),
        ("/", None, None, 200),
        ("/?inline=dirs", HTML, "navigate", 200),
        ("/dirs", HTML, "navigate", 200),
    ],
)
def test_the_root_leads_browsers_to_the_pages(
    sqlite_url: str, path: str, accept: str | None, mode: str | None, status: int
) -> None:
    """UI-11: a browser at `/` is redirected to the pages; other clients and other paths get the API's response."""
    create(sqlite_url)
    with serving(sqlite_url) as api:
        headers = {"accept": accept or "", "sec-fetch-mode": mode or ""}
        given = {name: value for name, value in headers.items() if value}
        for method in ("GET", "HEAD"):
            api.client.headers.pop("accept", None)
            answer = api.send(method, path, **given)
            assert answer.status_code == status
            assert answer.headers.get("location") == ("/r/ui/" if status == 303 else None)
            assert ("sec-fetch-mode" in answer.headers.get("vary", "")) == (path == "/")


def test_an_api_key_begins_a_session(tmp_path: Path) -> None:
    """ACC-47, ACC-59: the rotation of a key ends the sessions of its old text only; its revocation ends all."""
    settings = {"ANNALS_TOKENS": json.dumps({"t": {"name": "root", "role": "admin"}}), "ANNALS_API_KEYS": "true"}
    with serving_process(f"sqlite:///{tmp_path}/annals.db", tmp_path, **settings) as served:
        admin = httpx.Client(base_url=served.url, headers={"authorization": "Bearer t"})
        made = admin.post("/-/keys", json={"name": "robot", "role": "writer"}).json()

        def sign_in(key: str) -> dict[str, str]:
            answer = httpx.post(f"{served.url}/ui/login", data={"token": key})
            return {"cookie": cookie_of(answer)}

        def name(session: dict[str, str]) -> str:
            answer = httpx.get(f"{served.url}/-/whoami", headers=session)
            return str(answer.json()["name"]) if answer.is_success else str(answer.status_code)

        old = sign_in(made["key"])
        assert name(old) == "key:robot"
        path = f"/-/keys/{made['id']}"
        new = sign_in(admin.post(f"{path}/actions/rotate", json={}).json()["key"])
        assert (name(old), name(new)) == ("401", "key:robot")
        assert admin.delete(path).is_success
        assert name(new) == "401"
