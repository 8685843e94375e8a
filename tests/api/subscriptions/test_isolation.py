"""Subscriptions are separate from the registry: its responses, hashes and events contain nothing of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from annals.commands.store.log import Store
from annals.commands.verify.verify_log import verify_log, verify_row_hashes
from annals.projections.entities.rebuild import rebuild
from tests.support.registries.in_process import Api, create, serving
from tests.support.subscribing import BODY, KEY, TOKENS, bearer, create_subscription

ROOT = bearer("root")
ANN = bearer("ann")


@pytest.fixture
def api(store_url: str) -> Iterator[Api]:
    """A registry with a Group, whose callers authenticate by tokens."""
    create(store_url)
    with serving(store_url, tokens=TOKENS, master_key=KEY) as served:
        served.done("PUT", "/dirs/d1", {}, **ANN)
        yield served


def changed_subscription(api: Api) -> str:
    """Creates, changes and pauses a subscription; its id."""
    id: str = create_subscription(api, **ANN)["id"]
    api.done("PUT", f"/subscriptions/{id}", {**BODY, "types": ["a"]}, **ANN)
    assert api.send("POST", f"/subscriptions/{id}/actions/pause", **ANN).status_code == 202
    return id


def text(api: Api, path: str, token: str = "bob", **headers: str) -> str:
    answer = api.send("GET", path, **headers, **bearer(token))
    assert answer.status_code == 200, answer.text
    return answer.text


def test_the_registry_does_not_change(api: Api) -> None:
    # SUB-112: subscriptions are neither in entities nor in the state hash nor in events
    paths = ("/?inline=dirs", "/export", "/dirs", "/-/events")
    before = [text(api, path) for path in paths]
    head = json.loads(text(api, "/-/log/head"))
    id = changed_subscription(api)
    assert [text(api, path) for path in paths] == before
    after = json.loads(text(api, "/-/log/head"))
    assert after["position"] == head["position"] + 3
    assert after["state"] == head["state"] and after["chain"] != head["chain"]
    assert id not in text(api, "/-/events", "root", accept="application/x-ndjson")


def test_the_log_stays_provable(api: Api, store_url: str) -> None:
    # SUB-507: the log verifies; the read model can be rebuilt, and its hashes and responses are correct
    changed_subscription(api)
    api.done("DELETE", f"/subscriptions/{create_subscription(api, **ANN)['id']}", **ANN)
    api.done("PUT", "/dirs/d2", {}, **ANN)
    before = text(api, "/export")
    with closing(Store(store_url)) as store:
        assert list(verify_log(store)) == [] and list(verify_row_hashes(store)) == []
        assert rebuild(store).position == store.log_end().position
        assert list(verify_row_hashes(store)) == []
    assert text(api, "/export") == before


def test_what_others_read(api: Api) -> None:
    # SUB-911: others learn nothing from the log, the audit trail or a comparison; administrators see all of it
    id = changed_subscription(api)
    paths = (
        "/-/log",
        "/-/history/?below",
        "/-/history/?below&limit=100&order=desc",
        "/-/diff/?from=1",
        "/-/interactions",
    )
    for path in paths:
        assert id not in text(api, path), path
        assert id in text(api, path, "root"), path
    below = f"/-/history/subscriptions/{id}"
    for path in (below, "/-/history/subscriptions", f"/-/diff/subscriptions/{id}?from=1", "/-/interactions/id2"):
        assert api.send("GET", path, **bearer("bob")).status_code == 404, path
        assert api.send("GET", path, **ROOT).status_code == 200, path
    actions = [(each["action"], each["command"]) for each in json.loads(text(api, below, "root"))]
    name = f"/subscriptions/{id}"
    assert actions == [
        ("created", f"WriteSubscription {name}"),
        ("updated", f"WriteSubscription {name}"),
        ("updated", f"ControlSubscription pause {name}"),
    ]


def test_pages_of_the_trail_have_no_holes(api: Api) -> None:
    # SUB-911: what is left out does not count toward the limit of a page
    changed_subscription(api)
    api.done("PUT", "/dirs/d2", {}, **ANN)
    whole = json.loads(text(api, "/-/history/?below"))
    pages: list[Any] = []
    path = "/-/history/?below&limit=2"
    while path:
        answer = api.send("GET", path, **bearer("bob"))
        pages += answer.json()
        path = answer.links.get("next", {}).get("url", "").removeprefix("http://h/r")
    assert pages == whole
    assert len(json.loads(text(api, "/-/interactions"))) == 3


def test_a_dry_run_shows_nothing_of_others(api: Api) -> None:
    # SUB-911: a dry run shows the owner what would be recorded; others get 404
    id = changed_subscription(api)
    assert id in api.send("DELETE", f"/subscriptions/{id}?dryrun", **ANN).text
    assert api.send("DELETE", f"/subscriptions/{id}?dryrun", **bearer("bob")).status_code == 404


def test_a_restore_leaves_subscriptions_alone(api: Api) -> None:
    # SUB-507: restoring the root changes Groups; it creates and deletes no subscription
    first = changed_subscription(api)
    api.done("DELETE", f"/subscriptions/{first}", **ANN)
    second = create_subscription(api, **ANN)["id"]
    api.done("PUT", "/dirs/d2", {}, **ANN)
    asof = json.loads(text(api, "/-/log/head"))["position"] - 3
    answer = api.send("POST", f"/-/restore/?asof={asof}", **ROOT)
    assert answer.status_code == 200, answer.text
    assert (answer.json()["created"], answer.json()["deleted"]) == (0, 1)
    assert [each["id"] for each in json.loads(text(api, "/subscriptions", "root"))] == [second]
    assert api.send("POST", f"/-/restore/subscriptions/{first}?asof={asof}", **ROOT).status_code == 404


def test_the_tree_has_no_such_path(api: Api) -> None:
    # HTTP-4: the name is reserved; writes to the registry's own paths cannot reach subscriptions
    id = changed_subscription(api)
    assert api.send("POST", "/", {"subscriptions": {id: {}}}, **ROOT).status_code == 400
    assert api.send("GET", "/?asof=5", **ANN).status_code == 200
    assert id not in text(api, "/?inline=*&asof=6", "root")


def test_a_new_model_leaves_subscriptions_alone(api: Api) -> None:
    # MOD: the check of entities against a new model skips subscriptions
    changed_subscription(api)
    source = json.loads(text(api, "/modelsource"))
    source["groups"]["boxes"] = {"singular": "box"}
    api.done("PUT", "/modelsource", source, **ROOT)
    assert len(json.loads(text(api, "/subscriptions", "root"))) == 1
