"""`/-/events`: pages, lines, filters and waiting."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.registries.in_process import BASE, Api, create, serving

NOW = "2026-01-02T03:04:05.000000Z"
BATCH = "application/cloudevents-batch+json"
NDJSON = "application/x-ndjson"
EVENT_STREAM = "text/event-stream"
JSON = "application/json"
Json = Any


@contextmanager
def grown(url: str) -> Iterator[Api]:
    """Positions 1 to 3 make the registry, 4 to 7 a file in a new Group, 8 deprecates it, 9 and 10 add another Group."""
    create(url)
    with serving(url) as api:
        api.done("PUT", "/dirs/d1/files/f1$details", {"file": {"a": 1}})
        api.done("PATCH", "/dirs/d1", {"name": "n", "deprecated": {"documentation": "http://x/"}})
        api.done("PUT", "/dirs/d10", {})
        yield api


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A registry that tests only read."""
    with grown(f"sqlite:///{tmp_path_factory.mktemp('feeds') / 'annals.db'}") as api:
        yield api


@pytest.fixture
def fresh(store_url: str) -> Iterator[Api]:
    """A registry of the test's own, on each database."""
    with grown(store_url) as api:
        yield api


def event_json(interaction: str, index: int, what: str, subject: str, *changed: str) -> Json:
    """One complete event."""
    data = {"datacontenttype": "application/json", "data": {"changed": list(changed)}} if changed else {}
    return {
        "specversion": "1.0",
        "id": f"{interaction}.{index}.xregistry.{what}",
        "source": BASE,
        "type": f"io.xregistry.{what}",
        "subject": subject,
        "time": NOW,
        "xregcorrelationid": interaction,
        **data,
    }


EVENTS = [
    event_json("id1", 0, "registry.updated", "/", "dirs", "dirscount", "epoch", "modifiedat"),
    event_json("id1", 1, "group.created", "/dirs/d1"),
    event_json("id1", 2, "resource.created", "/dirs/d1/files/f1"),
    event_json("id1", 3, "version.created", "/dirs/d1/files/f1/versions/1"),
    event_json("id2", 0, "group.updated", "/dirs/d1", "deprecated", "epoch", "modifiedat", "name"),
    event_json("id2", 0, "group.deprecation", "/dirs/d1", "documentation"),
    event_json("id3", 0, "registry.updated", "/", "dirs", "dirscount", "epoch", "modifiedat"),
    event_json("id3", 1, "group.created", "/dirs/d10"),
]
#: The position of each event in the log.
POSITIONS = [4, 5, 6, 7, 8, 8, 9, 10]


def chosen(api: Api, query: str, accept: str = BATCH) -> list[int]:
    """The events that a query returns, as indexes of EVENTS."""
    answer = api.done("GET", f"/-/events?{query}", accept=accept)
    assert answer.headers["content-type"] == accept
    found = answer.json() if accept == BATCH else [json.loads(line) for line in answer.text.splitlines()]
    return [EVENTS.index(each) for each in found]


def onwards(answer: Any) -> str:
    """The path of the link with the relation `next`."""
    [path] = re.findall(rf"<{BASE}([^>]*)>;rel=next", answer.headers["link"])
    return str(path)


def test_all_events_in_the_order_of_the_log(fresh: Api) -> None:
    # EV-23: CloudEvents, batched; EV-77, EV-78: the order of the log within and between interactions
    # EV-136: a repeated request returns the same events with the same ids
    answer = fresh.done("GET", "/-/events")
    assert answer.headers["content-type"] == BATCH
    assert answer.json() == fresh.get("/-/events") == EVENTS
    lines = fresh.done("GET", "/-/events", accept=NDJSON)
    assert [json.loads(line) for line in lines.text.splitlines()] == EVENTS
    assert onwards(answer) == onwards(lines) == "/-/events?after=10"


@pytest.mark.parametrize("accept", [BATCH, NDJSON])
@pytest.mark.parametrize("limit", [1, 2, 3, 5, 8, 100])
def test_pages_leave_nothing_out(api: Api, accept: str, limit: int) -> None:
    # EV-79: by the links a reader gets each event once, and the events of one position together, whatever the limit
    path, found = f"/-/events?limit={limit}", list[Json]()
    while page := (answer := api.done("GET", path, accept=accept)).text.removesuffix("[]"):
        events = json.loads(page) if accept == BATCH else [json.loads(line) for line in page.splitlines()]
        assert len(events) <= max(limit, 2)
        found += events
        path = onwards(answer)
        after = int(path.rpartition("after=")[2])
        assert after == 10 or len(found) == sum(position <= after for position in POSITIONS)
    assert found == EVENTS
    assert onwards(answer) == path  # at the end the link leads to future events


@pytest.mark.parametrize("query", ["sql=FALSE", "sql=type LIKE '%25deleted'", "type=io.xregistry.group.*"])
def test_a_page_ends_in_time(api: Api, query: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """SUB-421: a page ends after a limited time, so that a slow expression holds no thread; its link continues."""
    wanted = api.get(f"/-/events?{query}")
    monkeypatch.setattr("annals.api.feeds.feeds.PAGE_SECONDS", -1.0)
    monkeypatch.setattr("annals.api.feeds.reader.MAX_PIECE_SECONDS", -1.0)
    monkeypatch.setattr("annals.api.feeds.sources.MAX_SILENT_POSITIONS", 1)
    paths, found = [f"/-/events?{query}"], list[Json]()
    while paths[-1] not in paths[:-1]:
        page = api.done("GET", paths[-1])
        found += page.json()
        paths.append(onwards(page))
    assert found == wanted and len(paths) > 3


def test_the_link_holds_the_query_whole(api: Api) -> None:
    # RFC 8288: ">" ends the URL in a Link header, so it is escaped there, although clients send it as it is
    answer = api.done("GET", "/-/events?limit=1&sql=type<>'x'&after=4")
    assert onwards(answer) == "/-/events?limit=1&sql=type%3C%3E'x'&after=5"


@pytest.mark.parametrize(
    ("after", "first"),
    [("0", 0), ("4", 1), ("7", 4), ("8", 6), ("10", 8), ("id1", 4), ("ID2", 6), ("2026-01-02T03:04:05Z", 8)],
)
def test_a_moment_to_go_on_behind(api: Api, after: str, first: int) -> None:
    # FLAG-80: a position, a correlation id in any case, or a time; Last-Event-ID takes precedence over `after`
    assert chosen(api, f"after={after}") == list(range(first, 8))
    resumed = api.done("GET", "/-/events?after=1", last_event_id=after)
    assert resumed.json() == EVENTS[first:]


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("type=io.xregistry.group.created", [1, 7]),
        ("type=io.xregistry.group.*", [1, 4, 5, 7]),
        ("type=io.xregistry.group.c*,io.xregistry.version.created", [1, 3, 7]),
        ("type=io.xregistry.group.created&type=io.xregistry.resource.*", [1, 2, 7]),
        ("type=io.xregistry.nothing", []),
        ("type=io.xregistry.group", []),
        ("type=*", list(range(8))),
        ("subject=/dirs/d1", [1, 2, 3, 4, 5]),
        ("subject=/dirs/d1/", [1, 2, 3, 4, 5]),
        ("subject=/dirs/d1/files", [2, 3]),
        ("subject=/dirs", [1, 2, 3, 4, 5, 7]),
        ("subject=/", list(range(8))),
        ("subject=/dirs/d1&type=io.xregistry.group.*", [1, 4, 5]),
        ("sql=type LIKE '%25.created' AND subject LIKE '/dirs/d1%25'", [1, 2, 3, 7]),
        ("sql=subject = '/dirs/d1' XOR EXISTS datacontenttype", [0, 1, 6]),
        ("sql=subject IN ('/', '/dirs/d10')&type=io.xregistry.group.*", [7]),
        ("sql=absent = 'a' OR TRUE", []),
        ("sql=NOT EXISTS absent", list(range(8))),
        ("sql=xregcorrelationid", []),
        ("sql=LENGTH(subject)", list(range(8))),
        ("sql=10 / (LENGTH(subject) - 1) >= 0", [1, 2, 3, 4, 5, 7]),
        ("sql=data = 'x'", []),
        ("xregcorrelationid=ID2", [4, 5]),
        ("xregcorrelationid=id2&after=8", []),
        ("xregcorrelationid=unknown", []),
        ("from=2026-01-02T03:04:05Z", list(range(8))),
        ("from=2026-01-02T03:04:05.000001Z", []),
        ("until=2026-01-02T03:04:05Z", list(range(8))),
        ("until=2026-01-02T03:04:04.999999Z", []),
        ("from=2026-01-02T04:04:05%2B01:00&until=2030-01-01T00:00:00Z", list(range(8))),
        ("from=0001-01-01T00:00:00Z", list(range(8))),
    ],
)
def test_filters(api: Api, query: str, wanted: list[int]) -> None:
    # SUB-421: an event passes if the expression casts to true without an error
    assert chosen(api, query) == chosen(api, query, NDJSON) == wanted
    assert chosen(api, f"{query}&limit=1") == ([4, 5] if wanted[:1] == [4] else wanted[:1])


@pytest.mark.parametrize(
    ("accept", "form"),
    [
        (None, BATCH),
        ("*/*", BATCH),
        ("application/*", BATCH),
        ("text/html, */*;q=0.1", BATCH),
        (NDJSON, NDJSON),
        ("application/*;q=0.5, application/X-NDJSON", NDJSON),
        (f"{BATCH};q=0, */*", NDJSON),
        ("text/html", None),
        (JSON, "application/json; charset=utf-8"),
        (f"{JSON}, {BATCH};q=0.9", "application/json; charset=utf-8"),
        (f"{JSON}, {BATCH}", BATCH),
        (f"{NDJSON};q=0", None),
    ],
)
def test_forms(api: Api, accept: str | None, form: str | None) -> None:
    # the media type that the client prefers; a refusal lists the available ones
    answer = api.send("GET", "/-/events", **({"accept": accept} if accept else {}))
    assert answer.headers["content-type"] == (form or "application/problem+json")
    if form is None:
        assert answer.json() == {
            "type": f"{BASE}/-/docs#not_acceptable",
            "status": 406,
            "title": 'For "/-/events", the HTTP header "Accept" names none of the available media types: '
            f"{BATCH}, {NDJSON}, {EVENT_STREAM}, {JSON}.",
            "subject": "/-/events",
            "args": {"list": f"{BATCH}, {NDJSON}, {EVENT_STREAM}, {JSON}"},
        }


def test_a_correlation_id_of_many_digits_is_not_a_position(sqlite_url: str) -> None:
    # FLAG-80: a position has at most 19 digits; a longer number is the id of an interaction, after which a page begins
    create(sqlite_url)
    digits = "9" * 20
    with serving(sqlite_url, ids=digits) as api:
        api.done("PUT", "/dirs/d1", {})
        api.done("PUT", "/dirs/d2", {})
        by_query = api.done("GET", f"/-/events?after={digits}1").json()
        by_header = api.done("GET", "/-/events", last_event_id=f"{digits}1").json()
        assert by_query == by_header
        assert {each["xregcorrelationid"] for each in by_query} == {f"{digits}2"}


def test_the_json_form_is_the_batch_under_another_name(api: Api) -> None:
    # EV-23: the same array, with the same pages and links, for clients that accept JSON
    for query in ("", "?limit=2", "?subject=/dirs/d1&limit=1"):
        batch, plain = (api.done("GET", f"/-/events{query}", accept=accept) for accept in (BATCH, JSON))
        assert (plain.content, plain.headers["link"]) == (batch.content, batch.headers["link"])


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("after=11", '"after=11" names no moment of this registry: the log ends at position 10'),
        ("after=-1", '"after=-1" names no moment'),
        ("after=nobody", '"after=nobody" names no moment'),
        ("after=1&after=2", 'the parameter "after": it may appear only once'),
        ("limit=0", "the parameter \"limit\": '0' is not a number from 1 on"),
        ("limit=many", "the parameter \"limit\": 'many' is not a number from 1 on"),
        ("wait=61", "the parameter \"wait\": '61' is not a number of seconds from 0 to 60"),
        ("wait=x", 'the parameter "wait"'),
        ("from=yesterday", "the parameter \"from\": 'yesterday' is not a time"),
        ("until=4", "the parameter \"until\": '4' is not a time"),
        ("subject=dirs", "the parameter \"subject\": 'dirs' is not an xid"),
        ("type=", 'the parameter "type": it takes types'),
        ("type=*.created", 'the parameter "type": it takes types'),
        # SUB-422: bad expressions are refused with the place of the error
        ("sql=", 'the parameter "sql": line 1, column 1: a value is expected, not the end'),
        ("sql=type LIKE", 'the parameter "sql": line 1, column 10: a string literal is expected, not the end'),
        ("sql=TRUE OR NOSUCH()", 'the parameter "sql": line 1, column 9: no function NOSUCH'),
        ("sql=TRUE&sql=TRUE", 'the parameter "sql": it may appear only once'),
        ("filter=x", 'the parameter "filter": it is unknown; this path takes'),
    ],
)
def test_bad_parameters(api: Api, query: str, reason: str) -> None:
    # FLAG-80: malformed, unknown or beyond the head; each refusal names the parameter
    answer = api.send("GET", f"/-/events?{query}")
    assert (answer.status_code, answer.headers["content-type"]) == (400, "application/problem+json")
    assert answer.json()["args"]["error_detail"].startswith(reason)


def test_text_that_no_database_holds(fresh: Api) -> None:
    # FLAG-80: a text that cannot be a correlation id is unknown, on each database
    assert fresh.get("/-/events?xregcorrelationid=%00") == []
    for path in ("events?after=%00", "log?after=%00", "log/head?asof=%00"):
        assert fresh.send("GET", f"/-/{path}").status_code == 400


def test_methods(api: Api) -> None:
    # HEAD is GET without the body; nothing here can be written
    for accept in (BATCH, NDJSON, EVENT_STREAM):
        head = api.done("HEAD", "/-/events", accept=accept)
        assert (head.headers["content-type"], head.content) == (accept, b"")
    for path in ("/-/events", "/-/log", "/-/log/head", f"/-/documents/{'0' * 64}"):
        assert api.done("OPTIONS", path).headers["allow"] == "GET, HEAD, OPTIONS"
        refused = api.send("POST", path, {})
        assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD, OPTIONS")
    for path in ("/-/events/1", "/-/log/tail", "/-/log/head/1", "/-/documents", "/-/documents/a/b"):
        assert api.send("GET", path).status_code == 404


def test_a_long_poll_is_answered_by_the_next_commit(fresh: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    # EV-79: a commit wakes waiting requests at once, not only at the next poll of the log
    monkeypatch.setattr("annals.api.registry.log_head_watcher.POLL_SECONDS", 60)

    async def poll(query: str, late: Any) -> Json:
        pending = asyncio.create_task(fresh.client.get(f"/-/events?{query}", timeout=30))
        await asyncio.sleep(0.05)
        assert not pending.done()
        await fresh.client.put(late, json={})
        return [event["subject"] for event in (await asyncio.wait_for(pending, 60)).json()]

    assert fresh.runner.run(poll("after=10&wait=20", "/dirs/d2")) == ["/", "/dirs/d2"]
    assert fresh.runner.run(poll("after=10&wait=20&subject=/dirs/d3", "/dirs/d3")) == ["/dirs/d3"]


def test_a_long_poll_without_news_is_empty(api: Api) -> None:
    answer = api.done("GET", "/-/events?after=10&wait=0.05")
    assert (answer.json(), onwards(answer)) == ([], "/-/events?wait=0.05&after=10")


TOKENS = {
    "read": {"name": "rita", "role": "reader"},
    "group": {"name": "gina", "groups": {"/dirs/d1": "reader"}},
    "none": {"name": "nemo"},
}


@pytest.mark.parametrize(("token", "wanted"), [("read", list(range(8))), ("group", [1, 2, 3, 4, 5]), ("none", None)])
def test_callers(store_url: str, token: str, wanted: list[int] | None) -> None:
    # a caller that may read some Groups gets only their events; a caller that may read nothing is refused
    with grown(store_url):
        pass
    with serving(store_url, tokens=json.dumps(TOKENS)) as api:
        answer = api.send("GET", "/-/events", authorization=f"Bearer {token}")
        found = [EVENTS.index(event) for event in answer.json()] if answer.status_code == 200 else None
        assert (answer.status_code, found) == (403 if wanted is None else 200, wanted)
        for path in ("/-/log", "/-/log/head"):
            status = api.send("GET", path, authorization=f"Bearer {token}").status_code
            assert status == (403 if token == "none" else 200)


def test_events_can_leave_out_what_changed(sqlite_url: str) -> None:
    """EV-49: a setting of the server leaves out the names of changed attributes; the events then have no data."""
    create(sqlite_url)
    with serving(sqlite_url, event_changes=False) as api:
        api.done("PATCH", "/", {"name": "n"})
        events = api.get("/-/events")
    assert [event["type"] for event in events] == ["io.xregistry.registry.updated"]
    assert not any({"data", "datacontenttype"} & event.keys() for event in events)
