"""Two registries with the same requests have equal hashes and rows, although events have different positions.

One of them, on SQLite, gets no other requests. The other one also gets requests that create subscriptions, so that its
log has further events in between.
"""

from __future__ import annotations

import asyncio
import json
from bisect import bisect
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from annals.commands.store.log import Store
from annals.commands.verify.verify_log import verify_log, verify_row_hashes
from annals.domain.registry.events import EntityCreated
from annals.projections.database import drivers as databases
from annals.projections.entities.verify.verify_history import verify_history
from tests.spec.properties.test_http import entities
from tests.support.examples import examples
from tests.support.histories import RESOURCES, UNHURRIED, as_request, database, histories
from tests.support.registries.requests import BASE, MIDNIGHT, Registry, Request, serving
from tests.support.subscribing import BODY

__all__ = ["database"]

EXAMPLES: Final = {"sqlite": 15, "postgresql": 4}
#: Seconds between two requests of a history. Requests in between have their own times.
PACE: Final = 10
_SHOW: Final = Request("PATCH", "/capabilities", {"shortself": True})
_POINTER: Final = "/dirs/b/files/f1"
_PLACES: Final = ("/", "/dirs", "/dirs/a", "/dirs/b", *RESOURCES, "/dirs/a/files/f1/versions/1.0.0")
_ROWS: Final = (
    "SELECT xid, type, epoch, compressed_attributes, private, document, meta, born, since FROM {}"
    " ORDER BY tree_key, since"
)
_CREATIONS: Final = "SELECT stream, position FROM log WHERE topic = ?"


class Turn(NamedTuple):
    """A request to both registries. before: number of requests to only one of them, before this request."""

    request: Request
    before: int


@st.composite
def turns(draw: DrawFn) -> list[Turn]:
    """Histories with restores and pointers."""
    requests = [_SHOW, *map(as_request, draw(histories(documents=True, most=14)))]
    for target in draw(st.lists(st.sampled_from((RESOURCES[0], None)), max_size=2)):
        requests.insert(draw(st.integers(2, len(requests))), Request("PATCH", f"{_POINTER}/meta", {"xref": target}))
    for path in draw(st.lists(st.sampled_from(_PLACES), max_size=4)):
        at = draw(st.integers(2, len(requests)))
        then = MIDNIGHT + timedelta(seconds=PACE * draw(st.integers(1, at)))
        moment = then.isoformat().replace("+00:00", "Z")
        requests.insert(at, Request("POST", f"/-/restore{path}?asof={moment}"))
    return [Turn(request, draw(st.integers(0, 2))) for request in requests]


def test_hashes_do_not_depend_on_positions(database: tuple[str, Callable[[], Any]]) -> None:
    # SUB-112, ENT-42: equal entities have equal hashes at any positions of the log, and short URLs redirect to them
    kind, empty = database

    @settings(max_examples=examples(EXAMPLES[kind]), **UNHURRIED)
    @given(turns())
    def run(history: list[Turn]) -> None:
        with TemporaryDirectory() as folder, empty() as other:
            one = f"sqlite:///{folder}/one.db"
            asyncio.run(compare_registries(one, other, history))
            assert verified_rows(one) == verified_rows(other)

    run()


async def compare_registries(one: str, other: str, history: list[Turn]) -> None:
    async with serving(one) as alone, serving(other) as among:
        for number, turn in enumerate(history, 1):
            for count in range(turn.before):
                among.moment.number = PACE * number - PACE + 1 + count
                assert (await among.send(Request("POST", "/subscriptions", BODY))).status == 201
            answers = [await at(PACE * number, registry, turn.request) for registry in (alone, among)]
            assert answers[0] == answers[1], turn
        for registry in (alone, among):
            await check_short_urls(registry)


async def at(seconds: int, registry: Registry, request: Request) -> tuple[int, bytes]:
    """The status of the response to a request at a moment, and the state hash after it."""
    registry.moment.number = seconds
    status = (await registry.send(request)).status
    assert status < 500, request
    return status, json.loads((await registry.send(Request("GET", "/-/log/head"))).content)["state"]


async def check_short_urls(registry: Registry) -> None:
    for entity in entities(json.loads((await registry.send(Request("GET", "/?inline=*"))).content)):
        answer = await registry.send(Request("GET", entity["shortself"].removeprefix(BASE)))
        assert (answer.status, answer.headers.get("location")) == (308, entity["self"].removesuffix("$details")), entity


def verified_rows(url: str) -> list[tuple[Any, ...]]:
    """The rows of the present and the past without positions. Verifies the log, the rows and their positions."""
    with closing(Store(url)) as store, store.engine.connect() as connection:
        assert [*verify_log(store), *verify_row_hashes(store), *verify_history(store)] == []
        db = databases.database_of(connection)
        creations = sorted(map(tuple, db.all(_CREATIONS, (EntityCreated.TOPIC,))))
        rows = [row for table in ("entity", "entity_history") for row in db.all(_ROWS.format(table))]
    for xid, *_, born, since in rows:
        assert (xid.lower(), born) == creations[bisect(creations, (xid.lower(), since)) - 1]
    return [tuple(row[:-2]) for row in rows]
