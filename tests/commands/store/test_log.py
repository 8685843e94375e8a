"""The log on each database: what one transaction records, and what it leaves when it is refused."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from threading import Thread

import pytest
from eventsourcing.persistence import IntegrityError
from sqlalchemy import text

from annals.commands.command_bus import handle
from annals.commands.pending_command import PendingCommand
from annals.commands.store.log import Store
from annals.commands.store.write_transaction import Recorded
from annals.commands.verify.verify_log import verify_log
from annals.domain.decisions.commands import Command
from tests.support.small_decider import Refused, decide, delete, refuse, write


def run(store: Store, *commands: Command) -> list[Recorded]:
    """The results of commands in one transaction; none may fail."""
    outcomes = handle([PendingCommand(command) for command in commands], store, [], decide)
    assert all(isinstance(outcome, Recorded) for outcome in outcomes), outcomes
    return outcomes  # type: ignore[return-value]


def column(store: Store, query: str) -> list[object]:
    with store.engine.connect() as connection:
        return list(connection.execute(text(query)).scalars())


def test_an_interaction_is_recorded_whole(store: Store) -> None:
    """EV-24, EV-34: all events of an interaction have its correlation id, which is stored with its caller."""
    [recorded] = run(store, write("/dirs/d1", "/dirs/d1/files/f1"))
    assert store.events(0, 10) == list(recorded.events)
    assert {event.xregcorrelationid for _, event in recorded.events} == {recorded.xregcorrelationid}
    # ENT-5: one time for the whole request
    assert {event.time for _, event in recorded.events} == {recorded.time}
    with store.engine.connect() as connection:
        row = connection.execute(text("SELECT * FROM interaction")).one()
    assert (row.first, row.last, row.xregcorrelationid) == (1, 2, recorded.xregcorrelationid)
    assert (row.caller, row.command, row.registry_url) == ("anonymous", "WriteTree PUT /", "http://localhost:8080")


def test_positions_have_no_gaps_after_refusals(store: Store) -> None:
    """ENT-4: a refused command uses up no position and leaves no row."""
    commands = [write("/dirs/a"), refuse(), write("/dirs/b"), refuse(), write("/dirs/a")]
    outcomes = handle([PendingCommand(command) for command in commands], store, [], decide)
    assert [type(outcome) for outcome in outcomes] == [Recorded, Refused, Recorded, Refused, Recorded]
    assert column(store, "SELECT position FROM log ORDER BY position") == [1, 2, 3]
    assert list(verify_log(store)) == []


def test_nothing_recorded_leaves_nothing(store: Store) -> None:
    """EV-30: a write that records no event has no correlation id and no interaction."""
    run(store, write("/dirs/a"))
    [recorded] = run(store, delete("/dirs/unknown"))
    assert (recorded.events, recorded.xregcorrelationid, recorded.position) == ((), None, 1)
    assert column(store, "SELECT count(*) FROM interaction") == [1]


def test_a_refused_command_is_undone_whole(store: Store) -> None:
    """ENT-4: a failure after the append, while the answer is built, undoes log, head, document and proof."""

    def fails(_: object, recorded: Recorded) -> None:
        raise Refused

    broken = PendingCommand(write("/dirs/a", "/dirs/b", document=b"lost"), build_answer=fails)
    seen = PendingCommand(write("/dirs/b"), build_answer=lambda tx, recorded: tx.world.get("/dirs/a"))
    first, second = handle([broken, seen], store, [], decide)
    assert isinstance(first, Refused)
    assert isinstance(second, Recorded)
    # The second command does not see what was undone, and gets the same revision and position.
    assert second.answer is None
    assert [(position, event.xid, event.revision) for position, event in second.events] == [(1, "/dirs/b", 1)]
    assert column(store, "SELECT xid FROM head") == ["/dirs/b"]
    assert column(store, "SELECT sha256 FROM document") == []
    assert list(verify_log(store)) == []


def test_a_failed_transaction_leaves_nothing(store: Store) -> None:
    """EV-79: no event is visible before its commit, or if the transaction fails."""
    with pytest.raises(ZeroDivisionError), store.writing() as tx:
        context = tx.context()
        tx.append(decide(write("/dirs/a"), tx.world, context), context, write("/dirs/a"))
        assert store.recorder.max_notification_id() is None
        raise ZeroDivisionError
    assert store.log_end().position == 0
    assert column(store, "SELECT count(*) FROM head") == [0]


def test_a_revision_is_taken_once(store: Store) -> None:
    """ENT-31: xids that differ only in case share a stream, and no revision of it is used twice."""
    run(store, write("/dirs/d1"))
    with store.writing() as tx:
        context = tx.context()
        stale = decide(write("/dirs/D1"), tx.world, context)
        tx.append(stale, context, write("/dirs/D1"))
        failed = tx.attempt(lambda: tx.append(stale, tx.context(), write("/dirs/D1")))
    assert isinstance(failed, IntegrityError)
    assert [event.revision for _, event in store.events(0, 10)] == [1, 2]
    with pytest.raises(IntegrityError), store.writing() as tx:
        again = [store.mapper.to_stored_event(event) for _, event in store.events(0, 1)]
        store.recorder.insert_events(again, connection=tx.connection, after=tx.log_end.position)


def test_time_never_runs_backwards(store_url: str) -> None:
    """ENT-5: times in the log do not go back when the clock is set back, in one transaction or across a restart."""
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    ticks = iter([noon, noon - timedelta(hours=1), noon + timedelta(microseconds=1), noon - timedelta(days=1)])
    store = Store(store_url, clock=lambda: next(ticks))
    store.create()
    inside = [recorded.time for recorded in run(store, write("/dirs/a"), write("/dirs/a"), write("/dirs/a"))]
    store.close()
    restarted = Store(store_url, clock=lambda: next(ticks))
    after = [recorded.time for recorded in run(restarted, write("/dirs/a"))]
    restarted.close()
    assert inside + after == [noon, noon, noon + timedelta(microseconds=1), noon + timedelta(microseconds=1)]


def test_a_correlation_id_is_used_once_ignoring_case(store_url: str) -> None:
    """EV-25: after `B92` the store itself refuses `b92`, but no other command of the same transaction."""
    ids = iter(["B92", "b92", "c", "d", "b92", "e"])
    with closing(Store(store_url, new_id=lambda: next(ids))) as store:
        store.create()
        run(store, write("/dirs/a"))
        outcomes = handle([PendingCommand(write(xid)) for xid in ("/dirs/b", "/dirs/c")], store, [], decide)
        assert [isinstance(outcome, Recorded) for outcome in outcomes] == [True, False]
        assert column(store, "SELECT xregcorrelationid FROM interaction ORDER BY last") == ["B92", "d"]
        run(store, write("/dirs/c"))
        assert [event.xid for _, event in store.events(0, 10)] == ["/dirs/a", "/dirs/b", "/dirs/c"]


def test_the_state_hash_moves_with_what_lives(store: Store) -> None:
    """The state hash is a sum over all live entities: the same set has the same hash, whatever its history."""
    empty = store.log_end().state
    run(store, write("/dirs/a", name="a"))
    one = store.log_end()
    run(store, write("/dirs/b"), delete("/dirs/b"))
    assert store.log_end().state == one.state != empty
    assert store.log_end().chain != one.chain
    run(store, delete("/dirs/a"))
    assert store.log_end().state == empty


def test_documents_are_kept_once_byte_for_byte(store: Store) -> None:
    content = bytes(range(256)) * 3
    run(store, write("/dirs/a", document=content), write("/dirs/b", document=content), write("/dirs/c", document=b"\0"))
    assert column(store, "SELECT count(*) FROM document") == [2]
    with store.writing() as tx:
        assert tx.world.document(sha256(content).hexdigest()) == content
        with pytest.raises(KeyError):
            tx.world.document("0" * 64)


def test_awkward_text_survives(store: Store) -> None:
    """SER-13: characters and numbers are read back unchanged, and text that no database accepts is escaped."""
    name = 'nul \0 quote " backslash \\ snowman ☃ emoji 🗿 \u2028'
    command = write("/dirs/a", name=name, number=12345678901234567890, tail=',"changed":')
    [outcome] = handle([PendingCommand(command, caller="eve\0\ud800")], store, [], decide)
    assert isinstance(outcome, Recorded), outcome
    [(_, event)] = store.events(0, 1)
    assert event.attributes["name"] == name
    assert event.attributes["number"] == 12345678901234567890
    assert column(store, "SELECT caller FROM interaction") == ["eve\\u0000\\ud800"]
    assert list(verify_log(store)) == []


def test_keys_sort_as_a_tree(store: Store) -> None:
    """Plain string order is tree order: an entity, its descendants, then its next sibling, whatever the locale."""
    names = [
        "/dirs/a",
        "/dirs/a/files/x",
        "/dirs/a-b",
        "/dirs/a.b",
        "/dirs/a/files/x/versions/1",
        "/dirs/A_",
        "/dirs/b~",
    ]
    run(store, write(*names))
    ordered = column(store, "SELECT tree_key FROM head ORDER BY tree_key")
    assert ordered == sorted(name.lower().replace("/", "!") for name in names)
    if store.engine.dialect.name == "postgresql":
        query = (
            "SELECT DISTINCT collation_name FROM information_schema.columns"
            " WHERE table_schema = current_schema() AND data_type = 'text'"
        )
        assert column(store, query) == ["C"]


def test_sixteen_threads_leave_no_gap(store: Store) -> None:
    """Positions are assigned under the lock: without gaps and in commit order, with any number of writers."""

    def work(number: int) -> None:
        for _ in range(5):
            run(store, write("/dirs/shared", f"/dirs/d{number}"))

    threads = [Thread(target=work, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert column(store, "SELECT position FROM log ORDER BY position") == list(range(1, 161))
    assert column(store, "SELECT revision FROM head WHERE xid = '/dirs/shared'") == [80]
    assert list(verify_log(store)) == []


def test_making_a_store_twice_changes_nothing(store: Store) -> None:
    run(store, write("/dirs/a"))
    store.create()
    assert store.log_end().position == 1
