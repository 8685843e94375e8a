"""`/-/hash`: hashes of parts of the tree, and the entities in which two registries differ."""

from __future__ import annotations

import json
import math
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annals.commands.store.log import Store
from annals.commands.store.mapper import after_image
from annals.domain.registry.events import EntityEvent
from annals.projections.audit.hash_comparison import HashDifference, HashQuery, differences, first_difference
from tests.support.examples import examples
from tests.support.registries.in_process import NOW, Api, create, serving

Json = Any
TOKENS = {
    "admin": {"name": "ada", "role": "admin"},
    "read": {"name": "rita", "role": "reader"},
    "none": {"name": "nemo"},
    "g1": {"name": "gina", "groups": {"/dirs/D1": "reader"}},
}
D1, F, V = "/dirs/d1", "/dirs/d1/files/f", "/dirs/d1/files/f/versions/1"


def create_registry(url: str) -> str:
    """A store after two requests: `id1` creates two Groups, one with a file; `id2` changes the other with one event."""
    create(url)
    with serving(url) as api:
        api.done("POST", "/dirs", {"d1": {"files": {"f": {"name": "one"}}}, "d2": {}})
        api.done("PATCH", "/dirs/d2", {"name": "two"})
    return url


def part(events: list[EntityEvent]) -> Json:
    """The expected response for some entities, computed independently."""
    total = sum(int.from_bytes(sha256(after_image(event)).digest()) for event in events) % (1 << 256)
    ends = {"from": events[0].xid, "to": events[-1].xid} if events else {}
    return {**ends, "count": len(events), "hash": f"{total:064x}"}


def events(url: str) -> list[EntityEvent]:
    with closing(Store(url)) as store:
        return [event for _, event in store.events(0, 1000)]


@pytest.fixture
def url(store_url: str) -> str:
    return create_registry(store_url)


def last(recorded: list[EntityEvent], *names: str) -> list[EntityEvent]:
    found = {event.xid: event for event in recorded}
    return [found[name] for name in names]


def test_bodies(url: str) -> None:
    # Proof: a sum over live entities; of / it is the state hash. FLAG-80: a position, a time or a correlation id
    recorded = events(url)
    then, now = recorded[:-1], recorded
    ended = {"position": len(recorded), "time": NOW.replace("Z", ".000000Z"), "xregcorrelationid": "id2"}
    before = {**ended, "position": len(then), "xregcorrelationid": "id1"}
    everything = ("/", "/capabilities", D1, F, V, "/dirs/d2", "/model")
    with serving(url) as api:

        def body(path: str, asof: Json, whole: list[EntityEvent], *parts: list[EntityEvent]) -> None:
            xid = path.partition("?")[0].removeprefix("/-/hash").rstrip("/") or "/"
            shown = list(map(part, parts)) or [part(whole)]
            assert api.get(path) == {"xid": xid, "asof": asof, **part(whole), "parts": shown}

        all_now = last(now, *everything)
        body("/-/hash", ended, all_now)
        body("/-/hash/", ended, all_now)
        assert api.get("/-/hash/")["hash"] == api.get("/-/log/head")["state"]
        for moment in (len(then), "id1", "ID1"):
            body(f"/-/hash/?asof={moment}", before, last(then, *everything))
            assert api.get(f"/-/hash/?asof={moment}")["hash"] == api.get(f"/-/log/head?asof={moment}")["state"]
        body(f"/-/hash/dirs?asof={NOW}", ended, last(now, D1, F, V, "/dirs/d2"))
        body("/-/hash/?asof=0", {"position": 0}, [])
        body("/-/hash/dirs/d1", ended, last(now, D1, F, V))
        body("/-/hash/dirs/none", ended, [])
        body("/-/hash/dirs?parts=2", ended, last(now, D1, F, V, "/dirs/d2"), last(now, D1, F), last(now, V, "/dirs/d2"))
        body(
            "/-/hash/dirs?parts=256",
            ended,
            last(now, D1, F, V, "/dirs/d2"),
            *([each] for each in last(now, D1, F, V, "/dirs/d2")),
        )
        body(f"/-/hash/dirs?from={F}&to={V}", ended, last(now, F, V))
        body(f"/-/hash/dirs?from={F}&to={F}", ended, last(now, F))
        body(f"/-/hash/dirs?from={F}/&to=/dirs/d2", ended, last(now, V, "/dirs/d2"))
        body(
            f"/-/hash/dirs?at={F}&at={F}/&at=/dirs/d11",
            ended,
            last(now, D1, F, V, "/dirs/d2"),
            last(now, D1),
            last(now, F),
            last(now, V),
            last(now, "/dirs/d2"),
        )


def test_forms(url: str) -> None:
    with serving(url, ids="later") as api:
        found = api.get("/-/hash/dirs/d1?parts=2")["parts"]
        lines = api.send("GET", "/-/hash/dirs/d1?parts=2&format=ndjson").text.splitlines()
        assert list(map(json.loads, lines)) == found
        table = api.send("GET", "/-/hash/dirs/d1?parts=2", accept="text/csv").text
        rows = [f"{each['from']},{each['to']},{each['count']},{each['hash']}" for each in found]
        assert table == "".join(f"{row}\r\n" for row in ("from,to,count,hash", *rows))
        tag = api.send("GET", "/-/hash/").headers["etag"]
        assert api.send("GET", "/-/hash/", if_none_match=tag).status_code == 304
        api.done("PATCH", "/dirs/d2", {"name": "three"})
        assert api.send("GET", "/-/hash/", if_none_match=tag).status_code == 200


REFUSED = {
    "parts=1": "parts",
    "parts=257": "parts",
    "parts=x": "parts",
    "parts=2&parts=3": "parts",
    "parts=2&at=/dirs/d1": "parts",
    "at=/dirs/d2&at=/dirs/d1": "at",
    "at=/dirs/d1&at=/dirs/D1": "at",
    "at=/zoos/z": "at",
    "at=dirs/d1": "at",
    "from=/": "from",
    "from=/dirs/d%00": "from",
    "to=/zoos": "to",
    "from=/dirs/d2&to=/dirs/d1": "to",
    "from=/dirs/d2&at=/dirs/d1": "at",
    "asof=99": "asof",
    "asof=nobody": "asof",
    "below": "below",
    "format=xml": "format",
    "&".join(f"at=/dirs/d{number:03}" for number in range(256)): "at",
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    url = create_registry(f"sqlite:///{tmp_path_factory.mktemp('hash') / 'annals.db'}")
    with serving(url, tokens=json.dumps(TOKENS)) as api:
        yield api


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


@pytest.mark.parametrize("query", REFUSED, ids=lambda query: query[:40])
def test_what_is_refused_names_its_parameter(served: Api, query: str) -> None:
    answer = served.send("GET", f"/-/hash/dirs?{query}", **bearer("read"))
    assert (answer.status_code, answer.json()["type"].partition("#")[2]) == (400, "bad_request")
    assert f'"{REFUSED[query]}' in answer.json()["title"]


PATHS = {
    "/-/hash": {"admin": 200, "read": 200, "g1": 200, "none": 403},
    "/-/hash/dirs": {"admin": 200, "read": 200, "g1": 200, "none": 403},
    "/-/hash/dirs/d1": {"admin": 200, "read": 200, "g1": 200, "none": 403},
    "/-/hash/dirs/d1/files?parts=4": {"admin": 200, "read": 200, "g1": 200, "none": 403},
    "/-/hash/dirs/d2": {"admin": 200, "read": 200, "g1": 404, "none": 403},
    "/-/hash/dirs/d1?to=/dirs/d2": {"admin": 400, "read": 400, "g1": 400, "none": 403},
    "/-/hash/subscriptions": {"admin": 404, "read": 404, "g1": 404, "none": 403},
    "/-/hash/-/l": {"admin": 404, "read": 404, "g1": 404, "none": 403},
    "/-/hash/dirs//files": {"admin": 404, "read": 404, "g1": 404, "none": 403},
    "/-/hash/dirs/%00": {"admin": 404, "read": 404, "g1": 404, "none": 403},
}


@pytest.mark.parametrize("path", PATHS)
def test_who_may_ask_about_what(served: Api, path: str) -> None:
    # Callers: with a role for a single Group, other Groups are 404; SUB-911: subscriptions and links have no hash
    assert {token: served.send("GET", path, **bearer(token)).status_code for token in PATHS[path]} == PATHS[path]
    assert served.send("GET", path).status_code == 401


def test_subscriptions_are_never_counted(sqlite_url: str) -> None:
    # Proof: entities outside the registry's tree are in no hash
    create(sqlite_url)
    with serving(sqlite_url) as api:
        before = api.get("/-/hash/")
        api.done("POST", "/subscriptions", {"sink": "https://93.184.216.34/", "protocol": "HTTP"})
        after = api.get("/-/hash/")
        assert api.get("/-/log/head")["position"] > before["asof"]["position"]
        assert {**after, "asof": before["asof"]} == before


# ---- two registries


class Side:
    """Reads hashes of a registry over HTTP, and counts the requests."""

    def __init__(self, api: Api, path: str = "") -> None:
        self.api, self.path, self.asked = api, path, 0

    def __call__(self, query: HashQuery) -> Json:
        self.asked += 1
        return self.api.get(f"/-/hash{quote(self.path)}?{urlencode(query, doseq=True)}")


Hashes = dict[str, tuple[str, str]]
ENTITIES = 300


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a store with a few hundred Groups; every tenth has files."""
    file = tmp_path_factory.mktemp("large") / "annals.db"
    create(f"sqlite:///{file}")
    with serving(f"sqlite:///{file}") as api:
        files: Json = {"files": {"f": {}, "f-1": {}}}
        api.done("POST", "/dirs", {f"d{n:03}": files if n % 10 == 0 else {} for n in range(ENTITIES)})
    return file


@pytest.fixture(scope="module")
def pair(large: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Api, Api, Path, Path]]:
    """Two served copies of `large`, and their files."""
    folder = tmp_path_factory.mktemp("pair")
    with ExitStack() as stack:
        files = [Path(shutil.copy(large, folder / name)) for name in ("here.db", "there.db")]
        apis = [stack.enter_context(serving(f"sqlite:///{file}")) for file in files]
        yield apis[0], apis[1], files[0], files[1]


def replace_heads(file: Path, gone: set[int], other: set[int]) -> Hashes:
    """Restores the original rows of `head`, then deletes and changes some. Returns the live entities by tree key."""
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("CREATE TABLE IF NOT EXISTS kept AS SELECT * FROM head")
        connection.execute("DELETE FROM head")
        connection.execute("INSERT INTO head SELECT * FROM kept")
        keys = [row[0] for row in connection.execute("SELECT tree_key FROM head ORDER BY tree_key")]
        for number in gone:
            connection.execute("UPDATE head SET live = 0, hash = x'' WHERE tree_key = ?", (keys[number % len(keys)],))
        for number in other - gone:
            key = keys[number % len(keys)]
            connection.execute(
                "UPDATE head SET hash = ? WHERE tree_key = ? AND live", (sha256(key.encode()).digest(), key)
            )
        rows = connection.execute("SELECT tree_key, xid, hash FROM head WHERE live").fetchall()
    return {key: (xid, bytes(hash).hex()) for key, xid, hash in rows}


def expected(here: Hashes, there: Hashes) -> list[HashDifference]:
    """All differences, by comparing every entity."""
    found = []
    for key in sorted(here.keys() | there.keys()):
        mine, theirs = here.get(key), there.get(key)
        if mine != theirs:
            named = mine or theirs
            assert named
            found.append(HashDifference(named[0], mine and mine[1], theirs and theirs[1]))
    return found


ROWS = st.integers(0, 479)
SOME = st.one_of(st.sets(ROWS, max_size=3), st.sets(ROWS), st.builds(lambda n: set(range(n)), st.integers(0, 480)))


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.tuples(SOME, SOME), st.tuples(SOME, st.just(set())))
def test_the_first_difference_is_found(
    pair: tuple[Api, Api, Path, Path], gone: tuple[set[int], set[int]], other: tuple[set[int], set[int]]
) -> None:
    # for any differences, the first one in tree order is found with ⌈log16 n⌉ + 2 requests to each registry
    here, there = Side(pair[0]), Side(pair[1])
    mine, theirs = replace_heads(pair[2], gone[0], other[0]), replace_heads(pair[3], gone[1], other[1])
    wanted = expected(mine, theirs)
    assert first_difference(here, there) == (wanted[0] if wanted else None)
    bound = math.ceil(math.log(max(len(mine), 1), 16)) + 2
    assert here.asked <= bound and there.asked <= bound, (len(mine), len(theirs))


@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(st.tuples(SOME, SOME), st.tuples(SOME, st.just(set())))
def test_all_differences_are_found(
    pair: tuple[Api, Api, Path, Path], gone: tuple[set[int], set[int]], other: tuple[set[int], set[int]]
) -> None:
    # LEG-913: any differences are found, each once and in tree order
    mine, theirs = replace_heads(pair[2], gone[0], other[0]), replace_heads(pair[3], gone[1], other[1])
    assert list(differences(Side(pair[0]), Side(pair[1]))) == expected(mine, theirs)


@pytest.mark.parametrize("row", [0, 1, 2, 3, 4, 7, 100, 250, 479])
def test_one_changed_row_differs_exactly_there(pair: tuple[Api, Api, Path, Path], row: int) -> None:
    mine, theirs = replace_heads(pair[2], set(), set()), replace_heads(pair[3], set(), {row})
    key = sorted(mine)[row % len(mine)]
    found = HashDifference(mine[key][0], mine[key][1], theirs[key][1])
    assert first_difference(Side(pair[0]), Side(pair[1])) == found
    owner = "/".join(found.xid.split("/")[:3])
    assert first_difference(Side(pair[0], owner), Side(pair[1], owner)) == found
    assert first_difference(Side(pair[0], "/dirs/d001"), Side(pair[1], "/dirs/d001")) == (
        found if found.xid == "/dirs/d001" else None
    )
