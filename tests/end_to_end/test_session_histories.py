"""`contradictions` finds each kind of violation in the observations of clients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import pytest

from annals.domain.registry.events import EntityEvent, EntityUpdated
from tests.support.session_histories import Seen, contradictions

A, B = "/schemagroups/a", "/schemagroups/b"
History = list[Seen]
Log = list[EntityEvent]


def event(xid: str, epoch: int, name: str) -> EntityEvent:
    return EntityUpdated(
        stream=xid,
        revision=epoch,
        xid=xid,
        type="schemagroups",
        epoch=epoch,
        attributes={"epoch": epoch, "name": name},
        xregcorrelationid=name,
        time=datetime(2026, 1, 1, tzinfo=UTC),
    )


LOG: Log = [event("/", 1, ""), event(A, 1, "x"), event(A, 2, "y"), event(B, 1, "z")]
HISTORY: History = [
    Seen(1, A, True, "x", 1, 0, 2, 0.0, 1.0),
    Seen(2, A, True, "y", 0, 0, 0, 1.1, 1.2, is_acknowledged=False),
    Seen(2, A, False, "x", 1, 0, 2, 1.3, 1.4),
    Seen(1, A, False, "y", 2, 2, 3, 2.0, 3.0),
    Seen(1, B, True, "z", 1, 3, 4, 4.0, 5.0),
    Seen(2, B, False, "z", 1, 2, 4, 6.0, 7.0),
]
#: A change to the history or the log, and words of the expected finding.
BROKEN: dict[str, tuple[Callable[[History, Log], object], str]] = {
    "a write is lost": (lambda history, log: log.pop(), "is lost"),
    "a write is recorded twice": (lambda history, log: log.append(event(A, 3, "x")), "in the log twice"),
    "nobody wrote it": (lambda history, log: log.append(event(A, 3, "?")), "nobody wrote"),
    "an epoch is left out": (lambda history, log: log.append(event(B, 3, "?")), "not counted one by one"),
    "a read shows an older state": (
        lambda history, log: history.append(Seen(2, A, False, "x", 1, 4, 4, 8.0, 9.0)),
        "at position 4, the log has (2, 'y')",
    ),
    "a read does not wait": (
        lambda history, log: history.append(Seen(3, A, False, "y", 2, 4, 3, 0.1, 0.2)),
        "older than the position",
    ),
    "a client goes back": (
        lambda history, log: history.append(Seen(2, A, False, "y", 2, 0, 3, 0.1, 0.2)),
        "after Seen(client=2",
    ),
    "a server has not seen a commit": (
        lambda history, log: history.append(Seen(3, A, False, "y", 2, 0, 3, 8.0, 9.0)),
        "position 4 was acknowledged before",
    ),
}


def found(history: Sequence[Seen], log: Sequence[EntityEvent]) -> list[str]:
    return list(contradictions(history, log))


def test_a_true_history_has_none() -> None:
    assert found(HISTORY, LOG) == []
    assert found(HISTORY[:1] + HISTORY[2:3], LOG[:2]) == []  # the write that was not acknowledged may be missing


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_promise_is_found(kind: str) -> None:
    change, words = BROKEN[kind]
    history, log = list(HISTORY), list(LOG)
    change(history, log)
    assert any(words in finding for finding in found(history, log)), found(history, log)
