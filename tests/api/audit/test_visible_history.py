"""Feeds and the audit trail for a caller with roles at some places: those of a reader without the hidden parts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

import pytest

from annals.domain.access.roles import Role
from tests.support.registries.in_process import BASE, Api, create, serving

Json = Any
PLACES: dict[str, list[str]] = {
    "one": ["/dirs/team-a"],
    "beginning": ["/dirs/TEAM*"],
    "inside": ["/d*s/t*-a*"],
    "several": ["/dirs/other", "/dirs/team-b", "/dirs/none"],
    "everywhere": ["/*/*"],
    "nowhere": ["/boxes/*"],
}
TOKENS = {
    "root": {"name": "root", "role": "admin"},
    "reader": {"name": "reader", "role": "reader"},
    **{name: {"name": name, "groups": dict.fromkeys(places, Role.READER)} for name, places in PLACES.items()},
}
GROUPS = ("team-a", "team-ab", "Team-b", "other", "team")


@pytest.fixture(scope="module")
def api(shared_store_url: str) -> Iterator[Api]:
    """A registry with interactions about one Group, about several Groups, and about none."""
    create(shared_store_url)
    with serving(shared_store_url, tokens=json.dumps(TOKENS), sinks_allow="127.0.0.0/8") as api:
        for number, group in enumerate(GROUPS):
            body = {"files": {f"f{each}": {"name": f"n{each}", "file": {"of": group}} for each in range(number % 3)}}
            done(api, "PUT", f"/dirs/{group}", body)
        done(api, "POST", "/dirs", {group: {"name": group} for group in GROUPS[1:4]})
        done(api, "PATCH", "/", {"name": "all"})
        done(api, "PUT", "/modelsource", {"groups": {**api_model(api)["groups"], "boxes": {"singular": "box"}}})
        done(api, "DELETE", "/dirs/team-ab")
        done(api, "POST", "/", {"dirs": {"team": {"name": "t"}}, "boxes": {"b": {}}})
        done(api, "PUT", "/dirs/team-a/files/late", {})
        yield api


def api_model(api: Api) -> Json:
    return json.loads(done(api, "GET", "/modelsource").text)


def done(api: Api, method: str, path: str, body: Json = None, token: str = "root", **headers: str) -> Any:
    return api.done(method, path, body, authorization=f"Bearer {token}", **headers)


def sees(name: str, xid: str) -> bool:
    """Whether a caller sees the history of an entity, or the events with a subject."""
    group = "/".join(xid.lower().split("/")[:3])
    return xid in ("/model", "/modelsource", "/capabilities") or (
        xid.count("/") > 1 and any(fnmatchcase(group, place.lower()) for place in PLACES[name])
    )


def whole(api: Api, path: str) -> Json:
    return done(api, "GET", path, token="reader").json()


def pages(api: Api, path: str, name: str) -> Iterator[Json]:
    """The members of a list and of its next pages."""
    while path:
        answer = done(api, "GET", path, token=name)
        yield from answer.json()
        path = answer.links["next"]["url"].removeprefix(BASE) if "next" in answer.links else ""


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("query", ["", "&order=desc", "&images", "&from=6&until=20"])
def test_history_below_the_registry_is_that_of_what_is_visible(api: Api, name: str, query: str) -> None:
    # ACC-75: in log order; the history of the registry entity is empty, because it changes with each hidden Group
    for path, start in (("/-/history?below", "/"), ("/-/history/dirs?below", "/dirs")):
        everything = whole(api, path + query)
        expected = [each for each in everything if sees(name, each["xid"]) and each["xid"].startswith(start)]
        answer = api.send("GET", path + query, authorization=f"Bearer {name}")
        if start == "/dirs" and name == "nowhere":
            assert answer.status_code == 404
            continue
        assert answer.json() == expected
        assert list(pages(api, f"{path}{query}&limit=2", name)) == expected
    assert done(api, "GET", f"/-/history?{query}", token=name).json() == []
    for own in ("model", "dirs/team-a"):
        if sees(name, f"/{own}"):
            assert done(api, "GET", f"/-/history/{own}?{query}", token=name).json() == whole(
                api, f"/-/history/{own}?{query}"
            )


@pytest.mark.parametrize("name", PLACES)
def test_an_interaction_with_one_visible_event_shows_that_one(api: Api, name: str) -> None:
    # ACC-75, ACC-74: the facts of the interaction without its hashes, which cover hidden events too
    expected = []
    for interaction in whole(api, "/-/interactions"):
        path = f"/-/interactions/{interaction['xregcorrelationid']}"
        one = whole(api, path)
        events = [event for event in one.pop("events") if sees(name, event["xid"])]
        shown = {key: value for key, value in one.items() if key not in ("chain", "state")}
        answer = api.send("GET", path, authorization=f"Bearer {name}")
        assert answer.status_code == (200 if events else 404)
        if events:
            assert answer.json() == shown | {"events": events}
            expected.append(shown)
    assert done(api, "GET", "/-/interactions", token=name).json() == expected
    assert list(pages(api, "/-/interactions?limit=1", name)) == expected
    assert list(pages(api, "/-/interactions?limit=2&order=desc", name)) == expected[::-1]
    assert done(api, "GET", "/-/interactions?caller=root&from=6", token=name).json() == [
        each for each in expected if each["last"] > 6
    ]


@pytest.mark.parametrize("name", PLACES)
def test_a_difference_has_what_is_visible(api: Api, name: str) -> None:
    # ACC-75: computed from the log and from the heads, forwards and backwards
    for moments in ("from=0", "from=5", "from=9&to=4", "from=1&to=12"):
        for path in ("", "dirs"):
            everything = whole(api, f"/-/diff/{path}?{moments}")
            for moment in ("from", "to"):  # an interaction may have hidden entities only
                everything[moment].pop("xregcorrelationid", None)
            everything["entities"] = [each for each in everything["entities"] if sees(name, each["xid"])]
            answer = api.send("GET", f"/-/diff/{path}?{moments}", authorization=f"Bearer {name}")
            if answer.status_code == 404:
                assert (path, name) == ("dirs", "nowhere")
                continue
            assert answer.json() == everything, moments


@pytest.mark.parametrize("name", PLACES)
def test_hashes_are_of_what_is_visible(api: Api, name: str) -> None:
    # ACC-75: now and at earlier moments; of each entity and in total
    position = int(done(api, "GET", "/-/log/head").json()["position"])
    for asof in (position, 8, 5):
        rows = [row for row in tree(api, asof) if sees(name, row)]
        parts = done(api, "GET", f"/-/hash/?asof={asof}&parts=256", token=name).json()
        assert [part["from"] for part in parts["parts"]] == rows
        assert parts["count"] == len(rows)
        total = sum(int(part["hash"], 16) for part in parts["parts"]) % (1 << 256)
        assert parts["hash"] == f"{total:064x}"
        hashes = {part["from"]: part["hash"] for part in whole(api, f"/-/hash/?asof={asof}&parts=256")["parts"]}
        assert all(part["hash"] == hashes[part["from"]] for part in parts["parts"])


def tree(api: Api, asof: int) -> list[str]:
    return [part["from"] for part in whole(api, f"/-/hash/?asof={asof}&parts=256")["parts"]]


@pytest.mark.parametrize("name", PLACES)
def test_feeds_have_what_is_visible(api: Api, name: str) -> None:
    # ACC-74: events, the log and its head, without the chain and state hashes
    expected = [event for event in whole(api, "/-/events") if sees(name, event["subject"])]
    assert done(api, "GET", "/-/events", token=name).json() == expected
    for query in ("", "documents=true"):
        lines: list[Json] = []
        for line in whole(api, f"/-/log?{query}"):
            if "chain" in line:
                interaction = {key: value for key, value in line.items() if key not in ("chain", "state", "salt")}
                lines.append(interaction)
            elif "stream" in line and not sees(name, line["xid"]):
                lines = lines[:-1] if "base64" in lines[-1] else lines
            else:
                lines.append(line)
        expected_lines = [
            line
            for line, after in zip(lines, [*lines[1:], {"first": 0}], strict=True)
            if "first" not in line or "first" not in after
        ]
        assert done(api, "GET", f"/-/log?{query}", token=name).json() == expected_lines
    one_by_one = [line for line in log_pages(api, name) if "stream" in line]
    assert one_by_one == [line for line in done(api, "GET", "/-/log", token=name).json() if "stream" in line]
    for asof in ("", "?asof=6"):
        head = whole(api, f"/-/log/head{asof}")
        assert set(head) > {"chain", "state"}
        assert done(api, "GET", f"/-/log/head{asof}", token=name).json() == {
            key: value for key, value in head.items() if key not in ("chain", "state", "xregcorrelationid")
        }


def log_pages(api: Api, name: str) -> Iterator[Json]:
    """The lines of pages with one event each; a page before the end is never empty."""
    path = "/-/log?limit=1"
    while lines := (answer := done(api, "GET", path, token=name)).json():
        yield from lines
        path = answer.links["next"]["url"].removeprefix(BASE)


def test_a_document_is_readable_with_an_entity_that_has_it(api: Api) -> None:
    # ACC-75: a caller can read a document if it sees an entity that has it
    events = done(api, "GET", "/-/log").json()
    documents = {
        each["private"]["document"]: each["xid"]
        for each in events
        if "private" in each and "document" in each["private"]
    }
    assert len(documents) > 2
    for sha256, xid in documents.items():
        for name in PLACES:
            status = api.send("GET", f"/-/documents/{sha256}", authorization=f"Bearer {name}").status_code
            assert status == (200 if sees(name, xid) else 404), (name, xid)
