"""`/-/events` from and until a time, in a log that contains replicated interactions."""

from __future__ import annotations

import pytest

from annals.commands.store.log import Store
from tests.projections.log.test_replicated_times import record_history
from tests.support.registries.in_process import create, serving

#: The time in minutes after noon of 2026-01-01, and the xid of an event; the registry was made on the next day.
HISTORY = [(2000, "/-/links/l"), (10, "/dirs/a"), (20, "/dirs/b"), (2100, "/subscriptions/s"), (30, "/dirs/c")]


@pytest.mark.parametrize(
    ("query", "subjects"),
    [
        ("from=2026-01-01T12:20:00Z&until=2026-01-01T12:30:00Z", ["/dirs/b", "/dirs/c"]),
        ("until=2026-01-01T12:15:00Z", ["/dirs/a"]),
        ("from=2026-01-01T12:25:00Z", ["/dirs/c"]),
        ("from=2026-01-01T12:20:00Z&limit=2", ["/dirs/b", "/dirs/c"]),
        ("from=2026-01-02T00:00:00Z", []),
        ("until=0001-01-01T00:00:00Z", []),
        ("from=0001-01-01T00:00:00Z", ["/dirs/a", "/dirs/b", "/dirs/c"]),
    ],
)
def test_times_are_those_of_the_interactions(store_url: str, query: str, subjects: list[str]) -> None:
    # EV-79: the events of the requested times, wherever they are in the log, and no others
    create(store_url)
    store = Store(store_url)
    record_history(store, HISTORY)
    store.close()
    with serving(store_url) as api:
        found = api.get(f"/-/events?{query}")
        assert [each["subject"] for each in found] == subjects
