"""URLs behind a proxy: forwarded headers count from trusted peers only."""

from __future__ import annotations

import time
from typing import Any

import pytest
from pydantic import ValidationError

from annals.api.http.connections.trusted_proxies import TrustedProxies
from annals.api.http.request import build_request
from annals.api.settings.settings import Settings


def base(headers: dict[str, str], *, peer: str = "10.0.0.1", trusted: str | None = "10.0.0.0/8, ::1") -> str:
    scope: dict[str, Any] = {
        "type": "http",
        "method": "GET",
        "scheme": "http",
        "server": ("127.0.0.1", 8080),
        "client": (peer, 1234),
        "raw_path": b"/dirs",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in {"host": "inner", **headers}.items()],
    }
    return build_request(scope, None, TrustedProxies(trusted)).base


ONE = {"x-forwarded-proto": "https", "x-forwarded-host": "reg.example"}


@pytest.mark.parametrize(
    ("headers", "url"),
    [
        ({}, "http://inner"),
        (ONE, "https://reg.example"),
        (ONE | {"x-forwarded-port": "8443"}, "https://reg.example:8443"),
        (ONE | {"x-forwarded-port": "443"}, "https://reg.example"),
        (ONE | {"x-forwarded-prefix": "/registry/"}, "https://reg.example/registry"),
        ({"x-forwarded-proto": "https"}, "https://inner"),
        ({"forwarded": 'for=192.0.2.1;proto=https;host="reg.example:8443"'}, "https://reg.example:8443"),
        ({"forwarded": "for=[2001:db8::1]:99;host=reg.example"}, "http://reg.example"),
        # RFC 7239 knows neither, so a proxy that passes a client's header on does not check them
        ({"forwarded": "host=reg.example;prefix=/evil;port=1"}, "http://reg.example"),
    ],
)
def test_a_trusted_proxy_is_believed(headers: dict[str, str], url: str) -> None:
    # HTTP-1: absolute URLs are those that clients use
    assert base(headers) == url


@pytest.mark.parametrize("trusted", ["10.0.0.0/8", "::ffff:10.0.0.0/104", "::ffff:10.0.0.1", "::/0"])
def test_proxies_with_addresses_in_the_form_of_ipv6(trusted: str) -> None:
    # HTTP-1: as a server that listens on both kinds of addresses shows its peers
    assert base(ONE, peer="::ffff:10.0.0.1", trusted=trusted) == "https://reg.example"
    assert base(ONE, peer="::ffff:10.0.0.1", trusted="192.0.2.0/24") == "http://inner"


@pytest.mark.parametrize("peer", ["192.0.2.9", "not an address"])
def test_untrusted_peers_are_ignored(peer: str) -> None:
    # HTTP-1: never blind trust in headers
    assert base(ONE, peer=peer) == "http://inner"
    assert base(ONE, trusted=None) == "http://inner"


def test_a_chain_of_proxies() -> None:
    # what the outermost trusted proxy says counts; entries before it are claims of the client
    chain = "for=6.6.6.6;proto=http;host=evil, for=192.0.2.1;proto=https;host=reg.example, for=10.0.0.2;host=mid"
    assert base({"forwarded": chain}) == "https://reg.example"
    for proxy in ("10.0.0.2", "::ffff:10.0.0.2"):  # in the second form behind a proxy that listens on IPv6, too
        lists = {"x-forwarded-for": f"192.0.2.1, {proxy}", "x-forwarded-host": "reg.example, mid"}
        assert base(lists | {"x-forwarded-proto": "https, http"}) == "https://reg.example", proxy


@pytest.mark.parametrize(
    "headers",
    [
        {"x-forwarded-host": 'a"b'},
        {"x-forwarded-host": "a/b"},
        {"x-forwarded-proto": "javascript"},
        {"x-forwarded-prefix": "/a b"},
        {"x-forwarded-prefix": "//evil"},
        {"forwarded": ",,;=;"},
        {"forwarded": "proto=https;host=reg.example", "x-forwarded-host": "other"},  # such a request is refused
    ],
)
def test_nonsense_is_left_aside(headers: dict[str, str]) -> None:
    # invalid values would become part of URLs in bodies and headers
    assert base(headers) == "http://inner"


@pytest.mark.parametrize("unit", ["a", "a=", "a ", ";", '"', '\\"', ",", "for=1;"])
def test_long_headers_take_linear_time(unit: str) -> None:
    # ACC-114: a client without a credential can send such a header, and a proxy passes it on
    started_at = time.thread_time()
    assert base({"forwarded": unit * (16_000 // len(unit))}) == "http://inner"
    assert time.thread_time() - started_at < 1


def test_networks_are_checked_at_the_start() -> None:
    with pytest.raises(ValidationError):
        Settings(trusted_proxies="10.0.0.0/8, proxy.example")
