"""Attempts over HTTP, with a real sink (UI-111)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

import pytest

from annals.domain.model.builtin import default_source
from tests.api.subscriptions.test_deliveries import MARK, delivering, subscribed
from tests.support.polling import until
from tests.support.registries.in_process import create
from tests.support.subscribing import bearer, create_subscription
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


KEPT: Final = [
    "/modelsource",
    "/messagecatalog/kept",
    "/messagecatalog/kept/messagedefinitions/m",
    "/messagegroups/kept/messages/m/versions/1",
    "/messagecatalog/kept/messagedefinitions/m/versions/1",
]


def test_events_about_what_the_owner_may_no_longer_read(sqlite_url: str) -> None:
    # SUB-911, ACC-76: they are hidden, and that there are such deliveries is not. Events of other APIs have their paths
    # as subjects; the rights are those at the entity. Those about the model are for all with a role (ACC-73).
    create(sqlite_url, default_source())
    tokens = {"gina": {"name": "gina"}, "root": {"name": "root", "role": "admin"}}
    root, gina = bearer("root"), bearer("gina")
    with webhooks() as sinks, delivering(sqlite_url, tokens=json.dumps(tokens)) as api:
        sinks.answer = lambda path, event: 400
        grants = [
            api.done("POST", "/-/grants", {"subject": "caller:gina", "role": "writer", "at": place}, **root).json()
            for place in ("/messagegroups/kept", "/messagegroups/lost")
        ]
        config = {"families": ["messagecatalog", "xregistry"]}
        types = [f"io.xregistry.{name}" for name in ("version.created", "modelsource.updated")]
        types.append("io.cloudevents.messagecatalog.updated.v1")
        wish = {"protocol": "HTTP", "sink": f"{sinks.url}/gina", "config": config, "types": types}
        path = f"/subscriptions/{create_subscription(api, wish, **gina)['id']}"
        api.done("PUT", "/modelsource", default_source() | {"description": "d"}, **root)
        for name in ("kept", "lost"):
            api.done("PUT", f"/messagegroups/{name}/messages/m", {"envelope": "CloudEvents/1.0"}, **gina)
        until(lambda: len(api.done("GET", f"{path}/deadletters", **gina).json()) == 9)
        api.done("DELETE", f"/-/grants/{grants[1]['id']}", **root)
        letters = api.done("GET", f"{path}/deadletters", **gina).json()
        assert [letter["event"]["subject"] for letter in letters if "event" in letter] == KEPT
        assert [letter["reason"] for letter in letters if "event" not in letter] == ["rejected"] * 4
        shown = [api.done("GET", f"{path}/deadletters/{letter['sequence']}", **gina).json() for letter in letters]
        assert shown == letters
        attempts = api.done("GET", f"{path}/attempts", **gina).json()["attempts"]
        assert sorted(attempt["subject"] for attempt in attempts if "subject" in attempt) == sorted(KEPT)
        assert len([attempt for attempt in attempts if "event" not in attempt]) == 4
