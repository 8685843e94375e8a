"""`/-/subscriptions/preview`: the events that a subscription would have received, counted over the past."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from annals.projections.entities.view_pool import ViewPool
from annals.projections.events.event_families import XRegistryFamily
from annals.projections.events.xregistry_events import XRegistryEvents
from annals.projections.subscriptions.preview import MAX_SECONDS, Preview
from tests.support.registries.in_process import Api, create, serving
from tests.support.subscribing import TOKENS, bearer, refusal

PATH = "/-/subscriptions/preview"


@pytest.fixture
def api(store_url: str) -> Iterator[Api]:
    """Position 4: the registry, 5: /dirs/d1, 6 and 7: its file, 8 on: /dirs/d2."""
    create(store_url)
    with serving(store_url, tokens=TOKENS) as served:
        served.done("PUT", "/dirs/d1/files/f", b"x", **bearer("ann"))
        served.done("PUT", "/dirs/d2", {}, **bearer("ann"))
        yield served


def preview(api: Api, body: dict[str, Any], token: str = "ann") -> dict[str, Any]:
    answer = api.send("POST", PATH, body, **bearer(token))
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_counts_and_matches(api: Api) -> None:
    # SUB-511: events considered and matched, by family and type, and the first matches; nothing is stored
    found = preview(api, {"types": ["io.xregistry.group.created"], "filters": [{"prefix": {"subject": "/dirs/d1"}}]})
    types = {
        "io.xregistry.group.created": {"considered": 2, "matched": 1},
        "io.xregistry.registry.updated": {"considered": 2, "matched": 0},
        "io.xregistry.resource.created": {"considered": 1, "matched": 0},
        "io.xregistry.version.created": {"considered": 1, "matched": 0},
    }
    assert found["families"] == {"xregistry": {"considered": 6, "matched": 1, "types": types}}
    assert (found["considered"], found["matched"], found["errors"], found["complete"]) == (6, 1, [], True)
    assert (found["from"], found["to"], found["position"]) == (1, 9, 9)
    [event] = found["matches"]
    assert (event["subject"], event["sequence"]) == ("/dirs/d1", "00000000000000000005.00")
    assert preview(api, {"types": ["io.xregistry.group.created"], "limit": 0})["matches"] == []
    assert api.send("GET", "/subscriptions", **bearer("root")).json() == []


def test_a_stretch(api: Api) -> None:
    # SUB-834, SUB-835: from a position or a time, to a position
    assert preview(api, {"fromposition": 8})["considered"] == 2
    assert preview(api, {"fromposition": 5, "toposition": 6})["considered"] == 2
    assert preview(api, {"fromtime": "2026-01-02T03:04:05Z"})["considered"] == 6
    for body, pointer in (
        ({"fromposition": 99}, "/fromposition"),
        ({"fromposition": 1, "toposition": 99}, "/toposition"),
        ({"fromposition": 3, "toposition": 2}, "/toposition"),
        ({"fromposition": 1, "fromtime": "2026-01-02T03:04:05Z"}, "/fromposition"),
        ({"limit": -1}, "/limit"),
        ({"filters": [{"regex": "a"}]}, "/filters/0/regex"),
        ({"colour": "red"}, "/colour"),
    ):
        assert refusal(api.send("POST", PATH, body, **bearer("ann")))[::2] == (400, pointer)


def test_errors_of_expressions(api: Api) -> None:
    # SUB-511: which expression could not be evaluated, how often, and for which event first
    filters = [{"any": [{"not": {"sql": "LENGTH(nothing) > 1"}}, {"sql": "subject = '/dirs/d1'"}]}]
    found = preview(api, {"types": ["io.xregistry.group.created"], "filters": filters})
    [error] = found["errors"]
    assert (error["pointer"], error["count"]) == ("/filters/0/any/0/not/sql", 2)
    assert error["first"] == {"event": "id1.1.xregistry.group.created", "error": "missingAttribute"}
    assert found["matched"] == 2


def test_who_sees_what(api: Api) -> None:
    # SUB-911: only events about entities that the caller may read
    found = preview(api, {}, "gina")
    assert {each["subject"] for each in found["matches"]} == {
        "/dirs/d1",
        "/dirs/d1/files/f",
        "/dirs/d1/files/f/versions/1",
    }
    assert preview(api, {}, "rita")["considered"] == 6
    assert api.send("POST", PATH, {}, **bearer("nemo")).status_code == 403
    assert api.send("POST", PATH, {}).status_code == 401
    assert refusal(api.send("GET", PATH, **bearer("ann")))[0] == 405
    assert api.send("OPTIONS", PATH, **bearer("ann")).headers["allow"] == "OPTIONS, POST"
    assert refusal(api.send("POST", "/-/subscriptions/other", {}, **bearer("ann")))[0] == 404


def test_lines(api: Api) -> None:
    # SUB-511: the last line is the result
    answer = api.send("POST", PATH, {}, accept="application/x-ndjson", **bearer("ann"))
    assert answer.headers["content-type"] == "application/x-ndjson"
    assert json.loads(answer.text.splitlines()[-1])["complete"] is True


def test_a_long_log_is_looked_at_in_parts(api: Api, store_url: str) -> None:
    # SUB-511: a preview takes a limited time; its position says where to continue
    readers = ViewPool(store_url)
    try:
        look = Preview(lambda: readers.quick_view().log, (XRegistryFamily(XRegistryEvents()),), {}, lambda _: True, 3)
        times = iter([0.0, MAX_SECONDS + 1])
        *_, tally = look.scan(1, 9, lambda: next(times))
        assert not tally.is_complete and tally.position == 0
        seconds = iter([0.0, 1.0, 2.0, MAX_SECONDS, MAX_SECONDS])
        *_, tally = look.scan(1, 9, lambda: next(seconds))  # also while events are matched
        assert not tally.is_complete and 0 < tally.position < 9
        *_, rest = look.scan(tally.position + 1, 9)
        assert tally.matched.total() == 2 and tally.matched.total() + rest.matched.total() == 6
        *_, tally = look.scan(1, 9)
        assert tally.is_complete and tally.matched.total() == 6 and len(tally.matches) == 3
    finally:
        readers.close()
