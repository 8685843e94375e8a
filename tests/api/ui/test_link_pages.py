"""The pages of replication links (UI-56, UI-64, UI-113)."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.api.ui.pages import TOKENS, follow, show, submit
from tests.support.registries.in_process import Api, create, serving

#: A link to a port where nothing listens.
LINK = {"url": "https://127.0.0.1:9/r", "mode": "pull"}


@pytest.fixture
def api(sqlite_url: str) -> Iterator[Api]:
    create(sqlite_url)
    with serving(sqlite_url, tokens=json.dumps(TOKENS), sinks_allow="127.0.0.1") as api:
        yield api


def test_links_of_a_registry(api: Api) -> None:
    page = show(api, "links")
    assert page.heading == "Replication"
    assert "annals replicate" in page.main.text
    api.done("PUT", "/-/links/copy", LINK, authorization="Bearer root")
    assert show(api, "links").table("Links") == [["copy", "active", "", "unknown", "", ""]]
    page = show(api, "links/copy")
    assert page.heading == "Link copy"
    assert "active" in page.region("State").text
    assert page.buttons == ["Check", "Pause"]
    assert follow(api, submit(api, "links/copy", action="pause")).buttons == ["Check", "Resume"]
    assert follow(api, submit(api, "links/copy", action="resume")).buttons == ["Check", "Pause"]
    assert submit(api, "links/copy", action="burn").status_code == 400


def test_promotion_says_first_what_happens(api: Api) -> None:
    api.done("PUT", "/-/links/copy", LINK, authorization="Bearer root")
    page = show(api, "links/copy")
    assert page.links["Repair"].endswith("/ui/links/copy/repair")
    page = show(api, page.links["Promote"].partition("/ui/")[2])
    assert page.heading == "Promote link copy"
    assert page.buttons == ["Promote"]
    assert "the whole registry" in page.main.text
    page = follow(api, submit(api, "links/copy/promote"))
    assert "promoted" in page.region("State").text
    assert page.buttons == ["Check"]


def test_a_repair_that_fails_says_why(api: Api) -> None:
    api.done("PUT", "/-/links/copy", LINK, authorization="Bearer root")
    page = show(api, "links/copy/repair")
    assert page.buttons == ["Repair"] and "not known how many entities change" in page.main.text
    answer = submit(api, "links/copy/repair")
    assert answer.status_code >= 400
    assert 'role="alert"' in answer.text


@pytest.mark.parametrize("path", ["links", "links/copy", "links/copy/promote", "links/copy/repair"])
def test_links_are_for_admins(api: Api, path: str) -> None:
    assert show(api, path, by="part", status=403).heading == "Not allowed"
