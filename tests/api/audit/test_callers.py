"""Rights for the audit trail: callers with a role for the registry see all of it, others only their Groups."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.registries.in_process import Api, create, serving

Json = Any
TOKENS = {
    "write": {"name": "walt", "role": "writer"},
    "read": {"name": "rita", "role": "reader"},
    "none": {"name": "nemo"},
    "g1": {"name": "gina", "groups": {"/dirs/D1": "reader"}},
}


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


@pytest.fixture(scope="module")
def api(shared_store_url: str) -> Iterator[Api]:
    """A registry with two Groups from one request (`id1`), and a third Group from another request (`id2`)."""
    create(shared_store_url)
    with serving(shared_store_url, tokens=json.dumps(TOKENS)) as api:
        api.done("POST", "/dirs", {"d1": {"name": "one"}, "d2": {"files": {"f": {}}}}, **bearer("write"))
        api.done("PUT", "/dirs/d3", {}, **bearer("write"))
        yield api


def status(api: Api, token: str, path: str) -> int:
    return api.send("GET", path, **bearer(token)).status_code


PATHS = {
    "/-/history": {"read": 200, "g1": 200, "none": 403},
    "/-/history?below": {"read": 200, "g1": 200, "none": 403},
    "/-/history/dirs": {"read": 200, "g1": 200, "none": 403},
    "/-/history/boxes": {"read": 404, "g1": 404, "none": 403},
    "/-/history/model": {"read": 200, "g1": 200, "none": 403},
    "/-/history/dirs/d1?below": {"read": 200, "g1": 200, "none": 403},
    "/-/history/dirs/d2": {"read": 200, "g1": 404, "none": 403},
    "/-/diff/?from=1": {"read": 200, "g1": 200, "none": 403},
    "/-/diff/dirs/d1?from=1": {"read": 200, "g1": 200, "none": 403},
    "/-/diff/dirs/d2/files/f?from=1": {"read": 200, "g1": 404, "none": 403},
    "/-/interactions": {"read": 200, "g1": 200, "none": 403},
    "/-/hash/": {"read": 200, "g1": 200, "none": 403},
    "/-/findings/": {"read": 200, "g1": 200, "none": 403},
    "/-/interactions/id1": {"read": 200, "g1": 200, "none": 404},
    "/-/interactions/id2": {"read": 200, "g1": 404, "none": 404},
}


@pytest.mark.parametrize("path", PATHS)
def test_roles_that_may_read_the_audit_trail(api: Api, path: str) -> None:
    # Callers: entities of other Groups do not exist for the caller, as in reads of entities
    assert {token: status(api, token, path) for token in PATHS[path]} == PATHS[path]
    assert api.send("GET", path).status_code == 401


def test_hidden_entities_look_like_missing_ones(api: Api) -> None:
    # Callers: responses for a hidden Group and for one that never existed are equal
    for path in ("/-/history/dirs/{}", "/-/diff/dirs/{}?from=1"):
        there, nowhere = (api.send("GET", path.format(id), **bearer("g1")).text for id in ("d2", "d9"))
        assert there.replace("d2", "d9") == nowhere
    there, nowhere = (api.send("GET", f"/-/interactions/{id}", **bearer("g1")).text for id in ("id2", "id9"))
    assert there.replace("id2", "id9") == nowhere


def images(api: Api, token: str) -> Json:
    return api.send("GET", "/-/interactions/id1?images", **bearer(token)).json()


def test_an_interaction_is_filtered_by_group(api: Api) -> None:
    # Callers: the facts, including the name of the writer, with only the events in the reader's Groups
    whole, part = images(api, "read"), images(api, "g1")
    xids = ["/", "/dirs/d1", "/dirs/d2", "/dirs/d2/files/f", "/dirs/d2/files/f/versions/1"]
    assert [event["xid"] for event in whole["events"]] == xids
    expected = whole | {"events": [event for event in whole["events"] if event["xid"] == "/dirs/d1"]}
    assert part == {name: value for name, value in expected.items() if name not in ("chain", "state")}
    assert (part["caller"], part["events"][0]["caller"]) == ("walt", "walt")
