"""Reading the log: moments, interactions and events."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from annals.commands.store.hashes import NO_INTERACTION
from annals.commands.store.log import Store
from annals.domain.errors.problems import BadRequest
from annals.projections.database import drivers
from annals.projections.log.reader import Log
from tests.support.small_decider import decide, write

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def recorded(store: Store, *names: str) -> None:
    with store.writing() as tx:
        context = tx.context()
        tx.append(decide(write(*names), tx.world, context), context, write(*names))


@pytest.fixture
def grown(store_url: str) -> Store:
    """Positions 1 to 2 at noon under id `First`, 3 a second later under `second`."""
    times, ids = iter((NOON, NOON + timedelta(seconds=1))), iter(("First", "second"))
    store = Store(store_url, clock=lambda: next(times), new_id=lambda: next(ids))
    store.create()
    recorded(store, "/dirs/a", "/dirs/b")
    recorded(store, "/dirs/a")
    return store


@pytest.mark.parametrize(
    ("moment", "last"),
    [
        ("0", 0),
        ("1", 0),  # inside the first interaction
        ("2", 2),
        ("3", 3),
        ("2026-01-01T11:59:59.999999Z", 0),
        ("2026-01-01T12:00:00Z", 2),
        ("2026-01-01t13:00:00+01:00", 2),
        ("2026-01-01T13:00:00 01:00", 2),
        ("2026-01-01T12:00:00.9999999Z", 2),
        ("2026-01-01T12:00:01Z", 3),
        ("2026-01-01T12:00:05Z", 3),
        ("First", 2),
        ("FIRST", 2),
        ("second", 3),
    ],
)
def test_a_moment_is_the_last_interaction_that_had_ended(grown: Store, moment: str, last: int) -> None:
    """FLAG-80: a moment is given as a position, a time or a correlation id."""
    with grown.engine.begin() as connection:
        found = Log(drivers.database_of(connection)).as_of(moment, NOON + timedelta(seconds=10))
    assert found.last == last
    assert (found is NO_INTERACTION) == (last == 0)


@pytest.mark.parametrize(
    "moment", ["4", "9" * 19, "1" * 20, "-1", "", "third", "2026-01-01T12:00:11Z", "2026-13-01T00:00:00Z", "2026-01-01"]
)
def test_a_moment_that_is_none_is_refused(grown: Store, moment: str) -> None:
    """FLAG-80: a malformed, unknown or future moment is refused."""
    with grown.engine.begin() as connection, pytest.raises(BadRequest, match="names no moment"):
        Log(drivers.database_of(connection)).as_of(moment, NOON + timedelta(seconds=10))


def test_a_recorded_time_is_not_in_the_future(grown: Store) -> None:
    """FLAG-80: the time of a recorded interaction is not in the future, even if this machine's clock is behind."""
    with grown.engine.begin() as connection:
        log = Log(drivers.database_of(connection))
        assert log.as_of("2026-01-01T12:00:01Z", NOON) == log.head()
        with pytest.raises(BadRequest, match="in the future"):
            log.as_of("2026-01-01T12:00:01.000001Z", NOON)


def test_interactions_and_events_are_read_in_order(grown: Store) -> None:
    with grown.engine.begin() as connection:
        log = Log(drivers.database_of(connection))
        assert [each.xregcorrelationid for each in log.interactions(0, 10)] == ["First", "second"]
        assert [each.first for each in log.interactions(2, 1)] == [3]
        assert [row.position for row in log.events(2, 3)] == [2, 3]
        assert [(row.position, row.revision) for row in log.revisions("/dirs/a", 0, 3, 10)] == [(1, 1), (3, 2)]
        assert [row.position for row in log.revisions("/dirs/a", 0, 2, 10)] == [1]
        assert log.head().last == 3
        assert log.interaction("SECOND") == log.head()
        assert log.interaction("none") is None
