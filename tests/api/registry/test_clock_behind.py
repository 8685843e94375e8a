"""A clock that goes back while the registry is closed: new interactions still come after the earlier ones.

The log determines the order. Ids, times, pages, moments and feeds follow it, whatever the clock of the machine says.
"""

from __future__ import annotations

import re
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from annals.api.registry.open_registry import open_registry
from annals.api.settings.settings import Settings
from annals.domain.decisions.commands import WriteMethod, WriteTree
from tests.support.registries.in_process import BASE, Api, create, serving

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
NAMES = "abcdefg"


def recorded(url: str, now: datetime, names: str) -> list[str]:
    """Writes each name in a process whose clock starts at a time; the correlation ids of the writes."""
    seconds = count()
    with closing(
        open_registry(Settings(database=url), clock=lambda: now + timedelta(seconds=next(seconds)))
    ) as registry:
        commands = (WriteTree("/dirs/d", {"name": name}, WriteMethod.PUT) for name in names)
        return [str(registry.command_bus.submit(command).result().xregcorrelationid) for command in commands]


def test_the_order_is_that_of_the_log(store_url: str) -> None:
    # EV-25, FLAG-80, PAG-7: restarts with a clock that is one hour behind, two hours behind, and correct again
    create(store_url)
    ids = recorded(store_url, NOON, "abc") + recorded(store_url, NOON - timedelta(hours=1), "de")
    ids += recorded(store_url, NOON - timedelta(hours=2), "f") + recorded(store_url, NOON + timedelta(hours=1), "g")
    assert ids == sorted(ids) and len(set(ids)) == len(NAMES)
    with serving(store_url) as api:
        _interactions_are_in_order(api, ids)
        _moments_are_in_order(api, ids)
        _feeds_are_in_order(api, ids)


def _interactions_are_in_order(api: Api, ids: list[str]) -> None:
    found = _paged(api, "/-/interactions?limit=2")[-len(ids) :]
    assert [each["xregcorrelationid"] for each in found] == ids
    times = [each["time"] for each in found]
    assert times == sorted(times) and times[2:6] == times[2:3] * 4 and times[6] > times[5]


def _moments_are_in_order(api: Api, ids: list[str]) -> None:
    """A moment that is given as a time includes all interactions that were recorded at this time."""
    times = [each["time"] for each in _paged(api, "/-/interactions?limit=2")[-len(ids) :]]
    assert [api.get(f"/dirs/d?asof={id}")["name"] for id in ids] == [*NAMES]
    assert [api.get(f"/dirs/d?asof={time}")["name"] for time in times] == [*"abffffg"]


def _feeds_are_in_order(api: Api, ids: list[str]) -> None:
    published = [event["xregcorrelationid"] for event in _paged(api, "/-/events?limit=2")]
    assert list(dict.fromkeys(published))[-len(ids) :] == ids
    logged = [event["xregcorrelationid"] for event in _paged(api, "/-/log?limit=2") if "xregcorrelationid" in event]
    assert list(dict.fromkeys(logged))[-len(ids) :] == ids


def _paged(api: Api, path: str) -> list[Any]:
    """The items of a page and of all following pages."""
    found: list[Any] = []
    while path:
        answer = api.done("GET", path)
        found += answer.json()
        following = re.search(r"<([^>]*)>;rel=next", answer.headers.get("link", ""))
        path = following[1].removeprefix(BASE) if following and answer.json() else ""
    return found
