"""Browsers: pages of the origins in the setting may use the registry, others may not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pydantic import ValidationError

from annals.api.settings.settings import Settings
from tests.support.registries.in_process import Api, create, serving

ORIGIN = "https://app.example"


@pytest.fixture
def shared(sqlite_url: str) -> Iterator[Api]:
    create(sqlite_url)
    with serving(sqlite_url, cors_origins=f"{ORIGIN}, https://b.example", tokens='{"t": {"name": "n"}}') as api:
        yield api


def test_nothing_without_the_setting(api: Api) -> None:
    # HTTP-8: CORS is not part of the protocol
    answer = api.send("GET", "/", origin=ORIGIN)
    assert not [name for name in answer.headers if name.startswith("access-control")]


def test_answers_to_pages(shared: Api) -> None:
    # errors too: a page has to be able to read them
    allowed = shared.send("GET", "/", origin=ORIGIN)
    assert (allowed.status_code, allowed.headers["access-control-allow-origin"]) == (401, ORIGIN)
    assert (allowed.headers["vary"], allowed.headers["access-control-expose-headers"]) == (
        "accept-encoding, origin, accept, sec-fetch-mode",
        "*",
    )
    for origin in ("https://evil.example", "null", ORIGIN + ".evil"):
        assert "access-control-allow-origin" not in shared.send("GET", "/", origin=origin).headers


def test_browsers_ask_first(shared: Api) -> None:
    # a preflight carries no token, and needs none; its path need not exist
    preflight = {"access_control_request_method": "PATCH", "access_control_request_headers": "authorization,if-match"}
    answer = shared.send("OPTIONS", "/dirs/none", origin=ORIGIN, **preflight)
    assert answer.status_code == 204
    assert answer.headers["access-control-allow-headers"] == "authorization,if-match"
    assert "PATCH" in answer.headers["access-control-allow-methods"]
    assert shared.send("OPTIONS", "/", origin="https://evil.example", **preflight).status_code == 401


def test_every_origin(sqlite_url: str) -> None:
    create(sqlite_url)
    with serving(sqlite_url, cors_origins="*") as api:
        assert api.send("GET", "/", origin="https://any.example").headers["access-control-allow-origin"] == "*"


@pytest.mark.parametrize("origins", ["app.example", "https://app.example/"])
def test_what_is_no_origin_is_refused_at_the_start(origins: str) -> None:
    with pytest.raises(ValidationError):
        Settings(cors_origins=origins)
