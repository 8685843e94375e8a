"""`/-/log`: the log as a replica reads and verifies it; the head; documents by their hash."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from typing import Any

import pytest

from annals.commands.store.hashes import (
    EMPTY_HASH,
    ChainHasher,
    Interaction,
    LogRow,
    entity_hash,
    extract_image,
    update_state_hash,
)
from annals.commands.store.log import Store
from annals.domain.decisions.commands import WriteMethod, WriteTree
from annals.domain.decisions.world import Context, Decision
from annals.domain.registry.events import EntityCreated, EntityDeleted
from annals.domain.values.json_text import dumps
from tests.support.registries.in_process import BASE, NOW, Api, create, serving

NDJSON = "application/x-ndjson"
Json = Any


@contextmanager
def grown(url: str) -> Iterator[Api]:
    """Positions 1 to 3 make the registry, 4 to 7 a file in a Group (id1), 8 to 10 delete the file (id2), 11 is id3."""
    create(url)
    with serving(url) as api:
        api.done(
            "PUT", "/dirs/d1/files/f1$details", {"file": {"a": 1}, "name": 'ünï "quoted"', "size": 12345678901234567}
        )
        api.done("DELETE", "/dirs/d1/files/f1")
        api.done("PATCH", "/dirs/d1", {"name": "n"})
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


def lines(api: Api, query: str = "", **headers: str) -> list[bytes]:
    """The lines of the log."""
    return api.done("GET", f"/-/log?{query}", accept=NDJSON, **headers).content.splitlines()


def edges(found: list[bytes]) -> list[Any]:
    """Positions of events, and the first and last one of interactions."""
    read = map(json.loads, found)
    return [each["position"] if "position" in each else (each["first"], each["last"]) for each in read]


def stored(line: bytes) -> LogRow:
    """The row of the log that a line shows."""
    found = json.loads(line)
    place = {name: found[name] for name in ("position", "stream", "revision", "topic")}
    return LogRow(**place, state=b"{" + line[len(dumps(place)) :])


def interaction_of(line: bytes) -> Interaction:
    """The interaction that a line shows."""
    found = json.loads(line)
    known = {name: bytes.fromhex(found[name]) for name in ("chain", "state")}
    known |= {"folded": found["xregcorrelationid"].casefold(), "registry_url": found.pop("registryurl")}
    return Interaction(**{**found, **known})


def test_a_replica_can_prove_what_it_got(fresh: Api) -> None:
    # EV-77, EV-79: chain and state hash follow from the lines alone, so every stored byte is there, in order
    chain, state, alive = EMPTY_HASH, EMPTY_HASH, dict[str, bytes]()
    found = lines(fresh)
    while found:
        interaction = interaction_of(found.pop(0))
        working = ChainHasher(chain, interaction)
        for _ in range(interaction.first, interaction.last + 1):
            row = stored(found.pop(0))
            added = b"" if row.topic == EntityDeleted.TOPIC else entity_hash(extract_image(row.state))
            state = update_state_hash(state, [alive.pop(row.stream, b"")], [added])
            alive |= {row.stream: added} if added else {}
            working.add(row)
        chain = working.digest(state)
        assert (interaction.chain, interaction.state) == (chain, state)
    assert fresh.get("/-/log/head") == {
        "position": 11,
        "time": "2026-01-02T03:04:05.000000Z",
        "xregcorrelationid": "id3",
        "chain": chain.hex(),
        "state": state.hex(),
    }


def test_an_interaction_is_marked(api: Api) -> None:
    # EV-79: the line of an interaction has its positions, caller, command and hashes
    line = json.loads(lines(api, "after=10")[0])
    head = api.get("/-/log/head")
    assert line == {
        "first": 11,
        "last": 11,
        "xregcorrelationid": "id3",
        "time": "2026-01-02T03:04:05.000000Z",
        "caller": "anonymous",
        "command": line["command"],
        "registryurl": BASE,
        "chain": head["chain"],
        "state": head["state"],
        "salt": line["salt"],
    }
    assert line["command"].startswith("WriteTree")


def test_the_forms_of_the_log_hold_the_same(api: Api) -> None:
    # an array for people and programs, lines for large amounts
    assert api.get("/-/log") == [json.loads(line) for line in lines(api)]
    last = json.loads(lines(api, "after=10")[1])
    assert (last["position"], last["stream"], last["revision"], last["topic"]) == (11, "/dirs/d1", 3, "EntityUpdated:1")
    assert (last["attributes"]["name"], last["changed"]) == ("n", ["epoch", "modifiedat", "name"])


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("", [(1, 3), 1, 2, 3, (4, 7), 4, 5, 6, 7, (8, 10), 8, 9, 10, (11, 11), 11]),
        ("limit=3", [(1, 3), 1, 2, 3]),
        ("limit=6", [(1, 3), 1, 2, 3]),
        ("limit=7", [(1, 3), 1, 2, 3, (4, 7), 4, 5, 6, 7]),
        ("limit=2", [(1, 3), 1, 2]),
        ("limit=2&after=2", [(1, 3), 3]),
        ("limit=100&after=5", [(4, 7), 6, 7, (8, 10), 8, 9, 10, (11, 11), 11]),
        ("after=id2", [(11, 11), 11]),
        ("after=11", []),
    ],
)
def test_pages_end_where_interactions_do(api: Api, query: str, wanted: list[Any]) -> None:
    # EV-79: a page is whole interactions, each after its line, unless one alone is larger than the limit
    assert edges(lines(api, query)) == wanted
    assert edges([dumps(each) for each in api.get(f"/-/log?{query}")]) == wanted


@pytest.mark.parametrize(("size", "together"), [(1, 1), (1 << 18, 1), (1 << 18, 2), (3000, 1000)])
def test_pieces_do_not_show(api: Api, monkeypatch: pytest.MonkeyPatch, size: int, together: int) -> None:
    # EV-79: a response that is sent in many pieces is the same as in one piece
    requests = [("/-/log", NDJSON), ("/-/log", "application/json"), ("/-/events", NDJSON), ("/-/events", "*/*")]
    whole = [api.done("GET", path, accept=accept).content for path, accept in requests]
    some = "/-/events?subject=/dirs/d1/files&type=*"
    monkeypatch.setattr("annals.api.feeds.reader.MAX_PIECE_BYTES", size)
    monkeypatch.setattr("annals.api.feeds.reader.MAX_PIECE_POSITIONS", together)
    assert [api.done("GET", path, accept=accept).content for path, accept in requests] == whole
    for limit in (1, 2, 3, 4, 100):
        subjects = [event["subject"] for event in api.get(f"{some}&limit={limit}")]
        file = "/dirs/d1/files/f1"
        assert subjects == [file, f"{file}/versions/1", file, f"{file}/versions/1"][:limit]


@pytest.mark.parametrize("limit", [1, 2, 4, 5, 100])
def test_links_lead_along_the_log(api: Api, limit: int) -> None:
    # EV-79: by the links a reader gets each event once
    path, found = f"/-/log?limit={limit}", list[Json]()
    while page := (answer := api.done("GET", path)).json():
        found += [each["position"] for each in page if "position" in each]
        [path] = re.findall(rf"<{BASE}([^>]*)>;rel=next", answer.headers["link"])
    assert found == list(range(1, 12))


@pytest.mark.parametrize(
    ("asof", "position", "interaction"),
    [("11", 11, "id3"), ("10", 10, "id2"), ("9", 7, "id1"), ("ID1", 7, "id1"), (NOW, 11, "id3"), ("2", 0, None)],
)
def test_the_head_at_a_moment(api: Api, asof: str, position: int, interaction: str | None) -> None:
    # FLAG-80: the last interaction that had ended by then
    head = api.get(f"/-/log/head?asof={asof}")
    assert (head["position"], head.get("xregcorrelationid")) == (position, interaction)
    shown = [interaction_of(line) for line in lines(api) if b'"first":' in line]
    hashes = {each.last: (each.chain.hex(), each.state.hex()) for each in shown}
    assert (head["chain"], head["state"]) == hashes.get(position, (EMPTY_HASH.hex(), EMPTY_HASH.hex()))


def test_the_head_is_tagged(fresh: Api) -> None:
    # a reader that polls for new interactions gets 304 until there is one
    tag = fresh.done("GET", "/-/log/head").headers["etag"]
    assert fresh.send("GET", "/-/log/head", if_none_match=tag).status_code == 304
    fresh.done("PUT", "/dirs/d2", {})
    assert fresh.done("GET", "/-/log/head", if_none_match=tag).headers["etag"] != tag


@pytest.mark.parametrize("query", ["asof=12", "asof=x", "asof=1&asof=2", "after=1"])
def test_moments_that_are_none(api: Api, query: str) -> None:
    # FLAG-80: malformed, unknown, beyond the head
    answer = api.send("GET", f"/-/log/head?{query}")
    assert (answer.status_code, answer.headers["content-type"]) == (400, "application/problem+json")


@pytest.mark.parametrize("query", ["type=x", "subject=/", "limit=0", "after=12"])
def test_bad_parameters(api: Api, query: str) -> None:
    # the log cannot be filtered: its hashes would not match
    assert api.send("GET", f"/-/log?{query}").status_code == 400
    assert api.send("GET", "/-/log", accept="application/cloudevents-batch+json").status_code == 406


TOKENS = {
    "read": {"name": "rita", "role": "reader"},
    "admin": {"name": "ada", "role": "admin"},
    "d1": {"name": "gina", "groups": {"/dirs/d1": "reader"}},
    "d2": {"name": "gary", "groups": {"/dirs/d2": "reader"}},
    "none": {"name": "nemo"},
}


def as_caller(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


def test_streams_that_are_kept_from_readers(store_url: str) -> None:
    # subscriptions and links say where events go, so an admin sees them and a reader does not
    create(store_url)
    store = Store(store_url, new_id=lambda: "kept")
    with store.writing() as tx:
        context = tx.context()
        made = tuple(_made(xid, context) for xid in ("/subscriptions/s1", "/-/links/l1"))
        tx.append(Decision(made, {}), context, WriteTree("/", {}, WriteMethod.PUT))
    store.close()
    with serving(store_url, tokens=json.dumps(TOKENS)) as api:
        assert edges(lines(api, "after=3", **as_caller("admin"))) == [(4, 5), 4, 5]
        assert lines(api, "after=3", **as_caller("read")) == []
        assert api.done("GET", "/-/events", **as_caller("admin")).json() == []


def _made(xid: str, context: Context) -> EntityCreated:
    facts = {"xregcorrelationid": context.xregcorrelationid, "time": context.now}
    return EntityCreated(xid=xid, type="subscriptions", revision=1, epoch=1, attributes={}, **facts)


def test_documents_by_their_hash(store_url: str) -> None:
    # the bytes as they were sent, with headers that keep browsers from running them
    # a caller that may read an entity may read the documents that it has or had; other callers get 404
    create(store_url)
    script, gone = b"<script>alert(1)</script>", b"gone"
    with serving(store_url) as api:
        api.done("PUT", "/dirs/d1/files/old", gone)
        api.done("DELETE", "/dirs/d1/files/old")
        api.done("PUT", "/dirs/d1/files/f", script, content_type="text/html")
        api.done("PUT", "/dirs/d2/files/f", b"other")
    paths = [f"/-/documents/{sha256(each).hexdigest()}" for each in (script, gone, b"other")]
    with serving(store_url, tokens=json.dumps(TOKENS)) as api:
        answer = api.done("GET", paths[0], **as_caller("read"))
        assert (answer.content, answer.headers["content-type"]) == (script, "application/octet-stream")
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "private, max-age=31536000, immutable"
        tag = answer.headers["etag"]
        assert tag == f'"{sha256(script).hexdigest()}"'
        known = api.send("GET", paths[0], **as_caller("read"), if_none_match=tag)
        assert (known.status_code, known.headers["etag"], known.content) == (304, tag, b"")
        assert api.done("HEAD", paths[0], **as_caller("read")).headers["content-length"] == str(len(script))
        seen = {token: [api.send("GET", path, **as_caller(token)).status_code for path in paths] for token in TOKENS}
        assert seen == {
            "read": [200, 200, 200],
            "admin": [200, 200, 200],
            "d1": [200, 200, 404],
            "d2": [404, 404, 200],
            "none": [404, 404, 404],
        }
        for name in ("0" * 64, "x", sha256(script).hexdigest().upper()):
            assert api.send("GET", f"/-/documents/{name}", **as_caller("read")).status_code == 404
