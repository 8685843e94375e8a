"""The page of subjects, with schemas that a client of Confluent's API has registered."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browser import Walk, walking
from tests.support.serving import serving

pytestmark = [pytest.mark.uses("Chromium"), pytest.mark.timeout(120)]

SUBJECTS = (":.team:x", "Odd name/ß", "a-value", "b-value")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home: Path = tmp_path_factory.mktemp("subjects")
    with serving(f"sqlite:///{home / 'annals.db'}", home) as served, httpx.Client(timeout=30) as client:
        api = f"{served.url}/compat/confluent"
        for subject in ("a-value", "b-value", "Odd%20name%2F%C3%9F", ":.team:x"):
            for type in ("string", "bytes"):
                body = {"schema": f'"{type}"'}
                client.put(f"{api}/config/{subject}", json={"compatibility": "NONE"}).raise_for_status()
                client.post(f"{api}/subjects/{subject}/versions", json=body).raise_for_status()
        client.delete(f"{api}/subjects/b-value/versions/1").raise_for_status()
        client.put(f"{api}/mode/a-value", json={"mode": "READONLY"}).raise_for_status()
        yield served.url


@pytest.fixture
def walk(browser: Browser, url: str) -> Iterator[Walk]:
    with walking(browser, url) as walk:
        yield walk


def rows(page: Page) -> list[str]:
    return page.get_by_role("table", name="Subjects", exact=True).locator("tbody tr").all_inner_texts()


def test_subjects(walk: Walk) -> None:
    """UI-69: the page lists each subject with context, versions, id and settings, and links to entities."""
    page = walk.go("/ui/confluent")
    assert page.get_by_role("columnheader").all_inner_texts() == [
        "Subject", "Context", "Versions", "Latest id", "Level", "Mode",
    ]  # fmt: skip
    shown = [row.split("\t") for row in rows(page)]
    assert [row[0] for row in shown] == list(SUBJECTS)
    described = {row[0]: row[1:] for row in shown}
    assert described["a-value"][1] == "2" and described["a-value"][3:] == ["NONE", "READONLY"]
    assert described["b-value"][1] == "1" and described[":.team:x"][0] == ".team"
    latest = httpx.get(f"{walk.url}/compat/confluent/subjects/b-value/versions/latest").json()
    assert described["b-value"][2] == str(latest["id"])
    page = walk.go("/ui/confluent?limit=3")
    page.get_by_role("link", name="Next", exact=True).click()
    assert len(rows(page)) == 1
    walk.go("/ui/confluent?context=.team")
    assert len(rows(page)) == 1
    walk.go("/ui/confluent").get_by_role("link", name="Odd name/ß", exact=True).click()
    expect(page.get_by_role("table", name="Versions", exact=True)).to_be_visible()
    assert walk.complaints == []


def test_the_past(url: str) -> None:
    assert httpx.get(f"{url}/-/subjects?asof=3").json()["count"] == 0
    assert httpx.get(f"{url}/-/subjects").json()["count"] == 4
    refused = [httpx.get(f"{url}/-/subjects?{query}").status_code for query in ("limit=0", "context=a:b", "x=1")]
    assert refused == [400, 400, 400]
