"""Requests that try to exceed the rights of their caller, each in a different way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from annals.api.auth.limits.request_rates import RequestRates
from annals.domain.access.caller_names import check_name
from annals.domain.errors.http_errors import TooManyRequests
from annals.domain.model.builtin import default_source
from tests.support.registries.in_process import Api, create, serving

TOKENS: Final = {
    "all": {"name": "all", "role": "writer"},
    "own": {"name": "own", "groups": {"/schemagroups/own": "writer"}},
}
ALL: Final = {"authorization": "Bearer all"}
OWN: Final = {"authorization": "Bearer own"}
BASE: Final = "/compat/confluent"
SECRET: Final = '{"type": "record", "name": "h.Secret", "fields": [{"name": "HIDDEN", "type": "int"}]}'
USER: Final = '{"type": "record", "name": "M", "fields": [{"name": "s", "type": "h.Secret"}]}'


@pytest.fixture
def api(sqlite_url: str) -> Iterator[Api]:
    """A registry with a schema in a context that the caller `own` does not see."""
    create(sqlite_url, default_source())
    with serving(sqlite_url, tokens=json.dumps(TOKENS)) as api:
        api.done("POST", f"{BASE}/subjects/:.hidden:s/versions", {"schema": SECRET}, **ALL)
        api.done("POST", f"{BASE}/subjects/:.own:a/versions", {"schema": '"int"'}, **ALL)
        yield api


@pytest.mark.parametrize("query", ["", "?dryrun"])
@pytest.mark.parametrize("more", [{}, {"version": 2}])
def test_a_reference_leads_to_no_hidden_schema(api: Api, query: str, more: dict[str, Any]) -> None:
    # ACC-78, CSR-908: a hidden schema looks like a missing one, so a caller neither detects it nor blocks its deletion
    def answer(subject: str) -> tuple[int, str]:
        body = {"schema": USER, "references": [{"name": "h.Secret", "subject": subject, "version": 1}], **more}
        found = api.send("POST", f"{BASE}/subjects/:.own:b/versions{query}", body, **OWN)
        return found.status_code, found.text.replace(subject, "")

    assert answer(":.hidden:s") == answer(":.hidden:none")
    assert answer(":.hidden:s")[0] == 422
    api.done("DELETE", f"{BASE}/subjects/:.hidden:s", **ALL)


def test_the_highest_id_is_that_of_visible_schemas(api: Api) -> None:
    # ACC-76, ACC-78
    api.done("POST", f"{BASE}/subjects/:.hidden:t/versions", {"schema": '"string"'}, **ALL)
    shown = [api.send("GET", f"{BASE}/schemas/ids/2?fetchMaxId=true", **who).json()["maxId"] for who in (ALL, OWN)]
    assert shown == [3, 2]


def test_a_refusal_of_confluents_api_names_the_path(api: Api) -> None:
    # CSR-517
    refused = api.send("POST", f"{BASE}/subjects/:.hidden:x/versions", {"schema": '"int"'}, **OWN)
    assert refused.status_code == 403
    assert "request_path" not in refused.text


@pytest.mark.parametrize("path", ["/-/whoami", f"{BASE}/subjects", "/.xregistry"])
def test_who_may_not_read_waits_for_no_position(api: Api, path: str) -> None:
    # ACC-17: requests without a credential get no log position, and do not wait for one
    for name in ("waitfor", "%77aitfor"):
        assert "reached" not in api.send("GET", f"{path}?{name}=99999&timeout=0").text, name
    if path != "/.xregistry":
        assert api.send("GET", f"{path}?waitfor=99999&timeout=0", **ALL).status_code == 503


@pytest.mark.parametrize("segment", ["%00", "x%0d%0aX-Evil:1", "%7f", "x%E2%80%A8y"])
def test_a_short_url_leads_to_a_valid_one(api: Api, segment: str) -> None:
    # SHORT-4: the path behind the token is also encoded in the header
    answer = api.send("GET", f"/-/s/0/{segment}", **ALL)
    assert answer.status_code in (308, 404)
    assert "x-evil" not in answer.headers
    assert answer.headers.get("location", "%").isascii()


def test_a_header_proves_nothing_to_an_open_server(sqlite_url: str) -> None:
    # ACC-84, ACC-85: pages of other sites cannot write to a registry without authenticators, whatever they send
    create(sqlite_url)
    page = {"origin": "https://evil.example", "sec-fetch-site": "cross-site", "authorization": "Bearer x"}
    with serving(sqlite_url, cors_origins="*") as api:
        assert api.send("PUT", "/dirs/d", {}, **page).status_code == 403


def test_two_forms_of_forwarded_headers_have_to_agree(sqlite_url: str) -> None:
    # ACC-110: a client could impersonate other addresses with the header that its proxy does not set
    create(sqlite_url)
    with serving(sqlite_url, trusted_proxies="127.0.0.1") as api:
        proxy = {"x-forwarded-for": "7.7.7.7"}
        assert api.send("GET", "/", **proxy, forwarded="for=7.7.7.7").status_code == 200
        refused = api.send("GET", "/", **proxy, forwarded="for=11.0.0.1")
        assert (refused.status_code, "different clients" in refused.text) == (400, True)


@pytest.mark.parametrize(
    ("proxy", "client", "root"),
    [
        ({"x-forwarded-host": "h", "x-forwarded-proto": "https"}, "host=h;proto=https", "https://h"),
        ({"x-forwarded-host": "h", "x-forwarded-prefix": "/registry"}, "host=h", "http://h/registry"),
        ({"x-forwarded-prefix": "/registry"}, "", "http://h/registry"),
        ({"x-forwarded-host": "evil.example"}, "for=7.7.7.7;host=localhost", None),
        ({"x-forwarded-host": "evil.example"}, "for=7.7.7.7", None),
        ({"x-forwarded-proto": "http"}, "for=7.7.7.7;proto=https", None),
        ({"x-forwarded-port": "1"}, "for=7.7.7.7;proto=http", None),
        ({}, "for=7.7.7.7;host=localhost;proto=https", None),
    ],
)
def test_two_forms_name_one_address_of_the_registry(
    sqlite_url: str, proxy: dict[str, str], client: str, root: str | None
) -> None:
    # ACC-87: a client could replace the host that its proxy names, with the header that the proxy does not set. A
    # refusal uses neither of two addresses; a path is in one form only
    create(sqlite_url)
    with serving(sqlite_url, None, trusted_proxies="127.0.0.1", hosts="h") as api:
        named = {"x-forwarded-for": "7.7.7.7", "host": "h", **proxy}
        forwarded = client if client.startswith("for=") else f"for=7.7.7.7;{client}"
        answer = api.send("GET", "/", **named, forwarded=forwarded)
        assert answer.status_code == (200 if root is not None else 400)
        assert f"<{root or 'http://h'}>;rel=xregistry-root" in answer.headers["link"]
        if root is None:
            assert "different addresses" in answer.text and "strict-transport-security" not in answer.headers
        else:
            assert answer.json()["self"] == f"{root}/"


def test_a_network_is_one_caller_without_a_credential(sqlite_url: str) -> None:
    # ACC-110: a client can use all addresses of its IPv6 network
    create(sqlite_url)
    with serving(sqlite_url, trusted_proxies="127.0.0.1", rate_reads=1) as api:
        statuses = [api.send("GET", "/", x_forwarded_for=f"2001:db8::{number:x}").status_code for number in range(5)]
    assert 429 in statuses


def test_rates_are_counted_by_caller() -> None:
    rates = RequestRates(1, None, clock=lambda: 0.0)
    rates.count("a", True)
    rates.count("b", True)
    with pytest.raises(TooManyRequests):
        rates.count("a", True)


@pytest.mark.parametrize("name", ["con\u00adsole", "\u200bconsole", "system\u200d", "key\u200b:x", "a\u2028b"])
def test_a_name_does_not_look_like_a_reserved_one(name: str) -> None:
    # ACC-14, ACC-15
    with pytest.raises(ValueError, match=r"reserved|control characters"):
        check_name(name)
