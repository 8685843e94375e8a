"""Reading the log in order, with pages of any size."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from annals.commands.store.log import Store
from annals.projections.database import drivers
from annals.projections.events import feed
from annals.projections.log.reader import Log
from tests.support.small_decider import decide, write

#: The number of events of each interaction.
SIZES = (2, 3, 1, 4, 1, 1)
LAST = sum(SIZES)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Log]:
    """A log of interactions with SIZES events."""
    store = Store(f"sqlite:///{tmp_path_factory.mktemp('feed') / 'annals.db'}")
    store.create()
    for size in SIZES:
        command = write(*(f"/dirs/d{number}" for number in range(size)))
        with store.writing() as tx:
            context = tx.context()
            tx.append(decide(command, tx.world, context), context, command)
    with store.engine.connect() as connection:
        yield Log(drivers.database_of(connection))
    store.close()


@pytest.mark.parametrize("together", [1, 2, 3, 100])
def test_every_stretch_is_whole(log: Log, together: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """EV-78, EV-79: between any two positions, each event is returned once, in order, with its interaction."""
    monkeypatch.setattr(feed, "PAGE_SIZE", together)
    for after in range(LAST + 1):
        for end in range(LAST + 1):
            found = [
                (row.position, interaction.first <= row.position <= interaction.last)
                for interaction, rows in feed.interactions(lambda: log, after, end)
                for row in rows
            ]
            assert found == [(position, True) for position in range(after + 1, end + 1)]


@pytest.mark.parametrize("together", [1, 2, 100])
def test_an_edge_is_the_end_of_interactions(log: Log, together: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """EV-79: a page has as many whole interactions as fit, or a part of one that does not fit."""
    monkeypatch.setattr(feed, "PAGE_SIZE", together)
    ends = [sum(SIZES[: number + 1]) for number in range(len(SIZES))]
    for after in range(LAST + 1):
        for limit in range(1, LAST + 2):
            fitting = [end for end in ends if after < end <= after + limit]
            expected = max(fitting, default=min(after + limit, LAST))
            assert feed.page_end(lambda: log, after, limit) == expected, (after, limit)
