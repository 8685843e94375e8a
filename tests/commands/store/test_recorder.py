"""The eventsourcing library's recorder interface, on each database."""

from __future__ import annotations

from typing import Any

import pytest
from eventsourcing.persistence import ProgrammingError

from annals.commands.command_bus import handle
from annals.commands.pending_command import PendingCommand
from annals.commands.store.log import Store
from annals.domain.registry.events import EntityUpdated
from tests.support.small_decider import decide, write


@pytest.fixture
def filled(store: Store) -> Store:
    commands = [write("/dirs/a", "/dirs/b"), write("/dirs/a"), write("/dirs/a")]
    handle([PendingCommand(command) for command in commands], store, [], decide)
    return store


def test_a_stream_is_read_by_revision(filled: Store) -> None:
    def revisions(**bounds: Any) -> list[int]:
        return [stored.originator_version for stored in filled.recorder.select_events("/dirs/a", **bounds)]

    assert revisions() == [1, 2, 3]
    assert revisions(gt=1) == [2, 3]
    assert revisions(lte=2) == [1, 2]
    assert revisions(desc=True, limit=1) == [3]


def test_the_log_is_read_by_position(filled: Store) -> None:
    """EV-78, EV-79: the order of positions is the order of commits, and within a commit that of the interaction."""
    select = filled.recorder.select_notifications
    everything = [(found.id, found.originator_id) for found in select(None, 10)]
    assert everything == [(1, "/dirs/a"), (2, "/dirs/b"), (3, "/dirs/a"), (4, "/dirs/a")]
    assert [found.id for found in select(2, 2)] == [2, 3]
    assert [found.id for found in select(2, 10, stop=3, inclusive_of_start=False)] == [3]
    assert [found.id for found in select(1, 10, topics=[EntityUpdated.TOPIC])] == [3, 4]
    assert filled.recorder.max_notification_id() == 4


def test_events_enter_through_the_store_only(filled: Store) -> None:
    """Every event belongs to an interaction, which the recorder alone cannot record."""
    with pytest.raises(ProgrammingError):
        filled.recorder.insert_events([])
    with pytest.raises(NotImplementedError):
        filled.recorder.subscribe()
