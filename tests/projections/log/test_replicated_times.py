"""Times in a log that records interactions of other registries, which can be earlier than its own (FLAG-80)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

import pytest

from annals.commands.store.log import Store
from annals.commands.verify.verify_log import verify_log
from annals.domain.decisions.commands import Command, WriteMethod, WriteTree
from annals.domain.decisions.world import Context, Decision
from annals.domain.registry.events import EntityCreated, EntityUpdated
from annals.domain.values import xid as xids
from annals.projections.database import drivers
from annals.projections.events.feed import interactions
from annals.projections.log import reader
from annals.projections.log.reader import Log
from tests.support.stores import analyze

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
#: Minutes after noon, and the xid that an interaction writes, in the order of a log that follows another registry: it
#: was created at 60 and has had a link since 61. The link copied three earlier interactions first, then new ones.
FOLLOWING = [
    (60, "/"),
    (61, "/-/links/l"),
    (10, "/dirs/a"),
    (20, "/dirs/b"),
    (30, "/dirs/c"),
    (75, "/subscriptions/s"),
    (70, "/dirs/d"),
    (80, "/-/links/l"),
    (81, "/subscriptions/s"),
    (78, "/dirs/e"),
    (90, "/subscriptions/s"),
]
#: A log without a link: its times increase.
OWN = [(10, "/"), (20, "/dirs/a"), (30, "/subscriptions/s"), (40, "/subscriptions/s"), (50, "/dirs/b")]
#: A registry with its own Groups and those of two others. Its links, created at 66 and 92, copied earlier interactions.
PARTS = [
    (10, "/"),
    (62, "/dirs/own"),
    (64, "/dirs/own"),
    (66, "/-/links/l"),
    (90, "/dirs/own"),
    (20, "/dirs/a"),
    (63, "/dirs/a"),
    (70, "/dirs/a"),
    (92, "/-/links/k"),
    (30, "/dirs/b"),
    (91, "/dirs/b"),
    (80, "/dirs/a"),
    (95, "/dirs/own"),
]


def record_history(store: Store, history: Sequence[tuple[int, str]]) -> None:
    """Records interactions of one event each, at the given times, even if the log ends with a later time."""
    revisions: dict[str, int] = {}
    for number, (minute, xid) in enumerate(history, 1):
        revisions[xid] = revisions.get(xid, 0) + 1
        time = NOON + timedelta(minutes=minute)
        with store.writing() as tx:
            context = Context(time, f"id{number}")
            kind = EntityCreated if revisions[xid] == 1 else EntityUpdated
            event = kind(
                xid=xid,
                type=xids.type_of(xid),
                revision=revisions[xid],
                epoch=revisions[xid],
                attributes={},
                xregcorrelationid=context.xregcorrelationid,
                time=time,
            )
            command: Command = WriteTree(xid, {}, WriteMethod.PUT)
            tx.append(Decision((event,), {}), context, command)


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    store = Store(store_url)
    store.create()
    yield store
    store.close()


def minute(number: int) -> str:
    return (NOON + timedelta(minutes=number)).isoformat()


@pytest.mark.parametrize(
    ("history", "moments"),
    [
        # before the first foreign interaction nothing; after it the last interaction in the log that is not later
        (FOLLOWING, {9: 0, 10: 3, 19: 3, 20: 4, 29: 4, 30: 5, 60: 5, 65: 5, 70: 7, 76: 7, 78: 10, 85: 10, 90: 11}),
        # after the last foreign interaction: the creation of this registry, at 60, does not matter
        (FOLLOWING[:5], {30: 5, 45: 5, 60: 5, 61: 5, 99: 5}),
        # an earlier foreign interaction does not count if it was recorded after a later change
        (PARTS, {9: 0, 10: 1, 25: 1, 62: 2, 63: 2, 64: 3, 70: 4, 89: 4, 90: 10, 91: 12, 94: 12, 95: 13, 99: 13}),
        # without a link: interactions of subscriptions count like all others
        (OWN, {9: 0, 10: 1, 20: 2, 30: 3, 45: 4, 50: 5}),
    ],
)
def test_a_time_is_that_of_the_tree(store: Store, history: Sequence[tuple[int, str]], moments: dict[int, int]) -> None:
    # FLAG-80: a time gives the last interaction before the first later change of the tree
    record_history(store, history)
    with store.engine.begin() as connection:
        read = Log(drivers.database_of(connection))
        now = NOON + timedelta(days=1)
        assert {each: read.as_of(minute(each), now).last for each in moments} == moments


def test_only_times_after_the_whole_log_are_in_the_future(store: Store) -> None:
    # FLAG-80: a time is not in the future if any interaction has it, even if the last one is earlier
    record_history(store, FOLLOWING[:5])
    with store.engine.begin() as connection:
        assert Log(drivers.database_of(connection)).as_of(minute(61), NOON).last == 5


@pytest.mark.parametrize(
    ("history", "since", "until", "found"),
    [
        (FOLLOWING, 20, 75, [4, 5, 1, 2, 6, 7]),
        (FOLLOWING, 82, 89, []),
        (FOLLOWING, 79, 99, [8, 9, 11]),
        (OWN, 20, 30, [2, 3]),
        (OWN, 60, 99, []),
    ],
)
def test_all_that_happened_during_a_time(
    store: Store, history: Sequence[tuple[int, str]], since: int, until: int, found: list[int]
) -> None:
    # EV-79: the range of positions contains at least all interactions of these times
    record_history(store, history)
    with store.engine.begin() as connection:
        read = Log(drivers.database_of(connection))
        span = [
            (NOON + timedelta(minutes=each)).isoformat(timespec="microseconds")[:-6] + "Z" for each in (since, until)
        ]
        after, end = read.positions_between(*span)
        inside = [each for each, _ in interactions(lambda: read, after, end)]
        wanted = [each.last for each in inside if span[0] <= each.time <= span[1]]
        assert wanted == sorted(found)
        assert history is FOLLOWING or len(inside) == len(found)


@pytest.mark.parametrize(
    ("history", "said"),
    [(FOLLOWING, []), (OWN, []), ([(20, "/"), (10, "/dirs/a")], ["time runs backwards"])],
)
def test_links_bring_earlier_times(store: Store, history: Sequence[tuple[int, str]], said: list[str]) -> None:
    # a log with a link may record interactions that are earlier than its end; without a link, that is an error
    record_history(store, history)
    assert [each.text for each in verify_log(store)] == said


def test_a_time_needs_one_lookup(store: Store) -> None:
    # a search in the index of times, then one step back in the log: neither is scanned or sorted
    record_history(
        store, [(number, "/subscriptions/s" if number % 10 == 0 else f"/dirs/d{number}") for number in range(400)]
    )
    sqlite = store.engine.dialect.name == "sqlite"
    with store.writing() as tx:
        analyze(tx.connection)
    with store.engine.begin() as connection:
        explain = "EXPLAIN QUERY PLAN " if sqlite else "EXPLAIN "
        then = "2026-01-01T14:00:00.000000Z"
        steps = [row[-1] for row in drivers.database_of(connection).all(explain + reader.LAST_BY_TIME, (then, then))]
    plan = "; ".join(steps)
    assert "SCAN" not in plan.replace("Index Scan", "") and "Seq Scan" not in plan
    assert not any(step.strip().startswith(("Sort", "USE TEMP")) for step in steps)
    assert "time>?" in plan if sqlite else "ix_interaction_time" in plan
    assert "rowid<?" in plan if sqlite else "Index Scan Backward using interaction_pkey" in plan


@pytest.mark.parametrize("history", [FOLLOWING, PARTS, OWN])
def test_what_a_time_names_grows_with_it_and_holds_nothing_later(
    store: Store, history: Sequence[tuple[int, str]]
) -> None:
    # FLAG-80: the longest prefix of the log without later changes of the tree; the registry's creation does not count
    record_history(store, history)
    tree = [(number, each) for number, (each, xid) in enumerate(history, 1) if not xids.is_outside_tree(xid)]
    with store.engine.begin() as connection:
        read = Log(drivers.database_of(connection))
        named = [read.as_of(minute(each), NOON + timedelta(days=1)).last for each in range(100)]
    assert named == sorted(named)
    for then, last in enumerate(named):
        assert all(each <= then for number, each in tree if 1 < number <= last)
        following = next((each for number, each in tree if number > max(last, 1)), None)
        assert following is None or following > then
