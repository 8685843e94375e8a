"""Attempts over HTTP, with a real sink (UI-111)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.api.subscriptions.test_deliveries import MARK, delivering, subscribed
from tests.support.polling import until
from tests.support.registries.in_process import create
from tests.support.webhooks import Webhooks, webhooks


@pytest.fixture
def sinks() -> Iterator[Webhooks]:
    with webhooks() as sinks:
        yield sinks


def test_attempts_of_a_real_sink(store_url: str, sinks: Webhooks) -> None:
    create(store_url)
    refused = iter((503, 400))
    sinks.answer = lambda path, event: next(refused, 204)
    with delivering(store_url) as api:
        path = subscribed(api, f"{sinks.url}/s?token={MARK}", types=["io.xregistry.group.created"])
        for name in ("a", "b", "c"):
            api.done("PUT", f"/dirs/{name}", {})
        until(lambda: len(api.get(f"{path}/attempts")["attempts"]) == 4)
        answer = api.done("GET", f"{path}/attempts")
        assert MARK not in answer.text
        assert answer.headers["cache-control"] == "no-store"
        found = answer.json()
        assert sorted(one["outcome"] for one in found["attempts"]) == ["delivered", "delivered", "rejected", "retry"]
        assert {one["code"] for one in found["attempts"] if one["outcome"] != "delivered"} == {"503", "400"}
        assert {one["subject"] for one in found["attempts"]} == {"/dirs/a", "/dirs/b", "/dirs/c"}
        assert sum(hour["delivered"] for hour in found["hours"]) == 2
        numbers, following = [], f"{path}/attempts?limit=3"
        while following:
            page = api.done("GET", following)
            numbers.append([one["number"] for one in page.json()["attempts"]])
            following = page.links.get("next", {}).get("url", "").removeprefix("http://h/r")
        assert numbers == [[4, 3, 2], [1]]


def test_a_resume_answers_with_what_it_has_done(store_url: str, sinks: Webhooks) -> None:
    # SUB-509: also where deliveries had stopped by themselves
    create(store_url)
    sinks.answer = lambda path, event: 410
    with delivering(store_url) as api:
        path = subscribed(api, f"{sinks.url}/s", types=["io.xregistry.group.created"])
        api.done("PUT", "/dirs/a", {})
        until(lambda: api.get(path)["status"]["state"] == "gone")
        sinks.answer = lambda path, event: 204
        assert api.send("POST", f"{path}/actions/resume").json()["state"] == "active"


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "after=x", "asof=1"])
def test_refused_parameters(sqlite_url: str, sinks: Webhooks, query: str) -> None:
    create(sqlite_url)
    with delivering(sqlite_url) as api:
        path = subscribed(api, f"{sinks.url}/s")
        answer = api.send("GET", f"{path}/attempts?{query}")
        assert answer.status_code == 400
        assert query.partition("=")[0] in answer.text
        assert api.send("GET", "/subscriptions/none/attempts").status_code == 404
        assert api.send("POST", f"{path}/attempts").status_code == 405
