"""The host names under which a server answers: only known ones, as a protection against DNS rebinding (ACC-87)."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from annals.api.settings.settings import Settings
from tests.support.registries.in_process import Api, create, serving

TOKENS = '{"t": {"name": "n", "role": "writer"}}'
OPEN: dict[str, Any] = {"public_url": None, "hosts": None}


def status(api: Api, host: str, path: str = "/", **headers: str) -> int:
    return api.send("GET", path, host=host, **headers).status_code


#: Rule, settings, a host, and whether the server accepts it.
ROWS: list[tuple[str, dict[str, Any], str, bool]] = [
    ("loopback names", OPEN, "localhost", True),
    ("loopback names", OPEN, "LOCALHOST:8080", True),
    ("loopback names", OPEN, "annals.localhost", True),
    ("loopback names", OPEN, "localhost.", True),
    ("any IP address", OPEN, "127.0.0.1:8080", True),
    ("any IP address", OPEN, "192.0.2.7", True),
    ("any IP address", OPEN, "[2001:db8::1]:8080", True),
    ("any IP address", OPEN, "[::1]", True),
    ("no other name", OPEN, "evil.example", False),
    ("no other name", OPEN, "localhost.evil.example", False),
    ("no other name", OPEN, "127.0.0.1.evil.example", False),
    ("no other name", OPEN, "2130706433", False),
    ("no other name", OPEN, "annals:8080", False),
    ("nor nonsense", OPEN, 'a"b', False),
    ("nor nonsense", OPEN, "a b", False),
    ("the public URL's host", {**OPEN, "public_url": "https://reg.example/r"}, "REG.example:1", True),
    ("the public URL's host", {**OPEN, "public_url": "https://reg.example/r"}, "a.reg.example", False),
    ("the public URL's host", {**OPEN, "public_url": "https://reg.example", "tokens": TOKENS}, "evil.example", False),
    ("the host listened on", {**OPEN, "host": "inner.example"}, "inner.example:8080", True),
    ("a façade's", {**OPEN, "compat_schemaregistry_hosts": "schemas.example"}, "schemas.example", True),
    ("one of ANNALS_HOSTS", {**OPEN, "hosts": "a.example, B.example"}, "b.example:80", True),
    ("one of ANNALS_HOSTS", {**OPEN, "hosts": "a.example"}, "b.example", False),
    ("one of ANNALS_HOSTS", {**OPEN, "hosts": "a.example", "tokens": TOKENS}, "b.example", False),
    ("names below one", {**OPEN, "hosts": "*.a.example"}, "x.y.a.example", True),
    ("names below one", {**OPEN, "hosts": "*.a.example"}, "a.example", False),
    ("names below one", {**OPEN, "hosts": "*.a.example"}, "xa.example", False),
    ("all names", {**OPEN, "hosts": "*"}, "any.example", True),
    ("only where nobody needs a credential", {**OPEN, "tokens": TOKENS}, "any.example", True),
]


@pytest.mark.parametrize(("rule", "options", "host", "taken"), ROWS, ids=[f"{row[0]}: {row[2]}" for row in ROWS])
def test_host(sqlite_url: str, rule: str, options: dict[str, Any], host: str, taken: bool) -> None:
    # ACC-87: Host is a loopback name, an IP address, the public URL's host, a façade's or one of ANNALS_HOSTS
    create(sqlite_url)
    with serving(sqlite_url, **options) as api:
        assert (status(api, host, authorization="Bearer t") != 421) == taken


@pytest.mark.parametrize(
    ("path", "media_type", "more"),
    [
        ("/dirs", "application/json; charset=utf-8", {}),
        ("/-/log", "application/problem+json", {"status": 421}),
        ("/subscriptions", "application/problem+json", {"status": 421}),
        ("/compat/schemaregistry/v0.2/schemagroups", "application/problem+json", {"status": 421}),
    ],
)
@pytest.mark.parametrize("method", ["GET", "PUT", "OPTIONS"])
def test_it_names_the_host_and_the_setting(
    sqlite_url: str, method: str, path: str, media_type: str, more: dict[str, Any]
) -> None:
    # ACC-87: 421 misdirected_request, naming the host received and the setting, before any work
    create(sqlite_url)
    with serving(sqlite_url, **OPEN) as api:
        answer = api.send(method, path, host="evil.example:8080")
        problem = answer.json()
        assert (answer.status_code, answer.headers["content-type"]) == (421, media_type)
        assert problem["type"] == "http://evil.example:8080/-/docs#misdirected_request"
        assert problem["title"] == (
            f'For "{path}", the request is for the host "evil.example:8080", which is not a known name of this '
            "server. If it is one, add it to the setting ANNALS_HOSTS."
        )
        assert (problem["subject"], problem["args"]) == (path, {"host": "evil.example:8080"})
        assert more.items() <= problem.items()


@pytest.mark.parametrize("path", ["/-/livez", "/-/readyz", "/livez", "/readyz"])
def test_health_has_no_host(sqlite_url: str, path: str) -> None:
    # ACC-87: health paths accept any host, because probes use names that the server does not know
    create(sqlite_url)
    with serving(sqlite_url, **OPEN) as api:
        assert status(api, "10-0-0-1.pods.example", path) == 200
        assert status(api, "10-0-0-1.pods.example", "/-/metrics") == 421


@pytest.mark.parametrize("trusted", ["127.0.0.1", None])
@pytest.mark.parametrize("header", ["x_forwarded_host", "forwarded"])
def test_the_host_that_a_proxy_names(sqlite_url: str, header: str, trusted: str | None) -> None:
    # ACC-87: the host that a trusted proxy forwards replaces Host
    create(sqlite_url)
    with serving(sqlite_url, **{**OPEN, "hosts": "reg.example", "trusted_proxies": trusted}) as api:

        def forwarded(host: str) -> dict[str, str]:
            return {header: f"host={host}" if header == "forwarded" else host}

        assert status(api, "inner.example", **forwarded("reg.example")) == (200 if trusted else 421)
        assert status(api, "reg.example", **forwarded("evil.example")) == (421 if trusted else 200)


def test_a_request_names_one_host(sqlite_url: str) -> None:
    # ACC-87: a missing Host -> 400; RFC 9112, "Request Target": several -> 400
    create(sqlite_url)
    with serving(sqlite_url, **OPEN) as api:
        for hosts in ([], ["localhost", "localhost"]):
            request = api.client.build_request("GET", "/", headers=[("host", host) for host in hosts] or None)
            if not hosts:
                del request.headers["host"]
            answer = api.runner.run(api.client.send(request))
            assert (answer.status_code, answer.json()["type"].rpartition("#")[2]) == (400, "bad_request")


@pytest.mark.parametrize("hosts", ["https://a.example", "a.example:80", "*.*.example", "a_b", "*example"])
def test_what_is_no_host_is_refused_at_the_start(hosts: str) -> None:
    with pytest.raises(ValidationError):
        Settings(hosts=hosts)
