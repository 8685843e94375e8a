"""The command bus: waiting commands share a commit, and each has its own outcome."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import Future, wait
from threading import Event, Thread

import pytest
from sqlalchemy import Connection, text

from annals.commands.command_bus import CommandBus, handle
from annals.commands.pending_command import BuildAnswer, PendingCommand
from annals.commands.store.damage import UnreadableRow
from annals.commands.store.database.driver_errors import driver_errors
from annals.commands.store.database.engine import WriterConnection
from annals.commands.store.log import Store
from annals.commands.store.write_transaction import Recorded, WriteTransaction
from annals.commands.verify.verify_log import verify_log
from annals.domain.decisions.commands import Command
from annals.domain.decisions.world import Context, Decision, World
from annals.domain.errors.problems import ServerBusy
from annals.domain.registry.events import EntityEvent
from tests.support.small_decider import Refused, decide, refuse, write


class PositionProjection:
    """An inline projection that notes positions in a table of its own."""

    def apply(self, connection: Connection, recorded: Sequence[tuple[int, EntityEvent]], *_: object) -> None:
        for position, event in recorded:
            if event.attributes.get("poison"):
                raise Refused
            connection.execute(text("INSERT INTO seen VALUES (:position)"), {"position": position})

    def catch_up(self, connection: Connection) -> None: ...

    @staticmethod
    def positions(store: Store) -> list[int]:
        with store.engine.connect() as connection:
            return list(connection.execute(text("SELECT position FROM seen ORDER BY position")).scalars())


@pytest.fixture
def projection(store: Store) -> PositionProjection:
    with store.engine.begin() as connection:
        connection.execute(text("CREATE TABLE seen (position BIGINT)"))
    return PositionProjection()


def waiting(started: Event, go: Event) -> BuildAnswer:
    """An answer that sets `started` when it is built, and then waits for `go`."""

    def answer(tx: WriteTransaction, recorded: Recorded) -> None:
        started.set()
        go.wait()

    return answer


def test_projections_move_with_the_log(store: Store, projection: PositionProjection) -> None:
    """ENT-4: a projection that fails undoes its command, and only that one."""
    commands = [write("/dirs/a", "/dirs/b"), write("/dirs/c", poison=True), refuse(), write("/dirs/c")]
    outcomes = handle([PendingCommand(command) for command in commands], store, [projection], decide)
    assert [type(outcome) for outcome in outcomes] == [Recorded, Refused, Refused, Recorded]
    assert projection.positions(store) == [1, 2, 3]
    assert list(verify_log(store)) == []


def test_an_answer_sees_its_own_write(store: Store, projection: PositionProjection) -> None:
    def answer(tx: WriteTransaction, recorded: Recorded) -> tuple[int, object]:
        return tx.connection.execute(text("SELECT max(position) FROM seen")).scalar_one(), tx.world.get("/dirs/b")

    commands = [write("/dirs/a"), write("/dirs/b"), write("/dirs/c")]
    outcomes = handle(
        [PendingCommand(command, build_answer=answer) for command in commands], store, [projection], decide
    )
    assert [outcome.answer[0] for outcome in outcomes] == [1, 2, 3]  # type: ignore[union-attr]
    assert [outcome.answer[1] is None for outcome in outcomes] == [True, False, False]  # type: ignore[union-attr]


def test_the_caller_is_recorded(store: Store) -> None:
    command_bus = CommandBus(store, [], decide)
    command_bus.submit(write("/dirs/a"), caller="eve").result()
    command_bus.close()
    with store.engine.connect() as connection:
        assert connection.execute(text("SELECT caller FROM interaction")).scalars().all() == ["eve"]


def test_waiting_commands_share_a_commit(store: Store) -> None:
    """Waiting commands are taken in one transaction; a refused one does not affect the others."""
    started, go, worlds = Event(), Event(), set()

    def decide_later(command: Command, world: World, context: Context) -> Decision:
        started.set()
        go.wait()
        worlds.add(world)
        return decide(command, world, context)

    command_bus = CommandBus(store, [], decide_later)
    first = command_bus.submit(write("/dirs/first"))
    started.wait()
    crowd = [command_bus.submit(refuse() if number % 3 == 0 else write(f"/dirs/d{number}")) for number in range(30)]
    go.set()
    wait([first, *crowd])
    assert len(worlds) == 2, "the first transaction, then one for all that waited meanwhile"
    assert [isinstance(one.exception(), Refused) for one in crowd] == [number % 3 == 0 for number in range(30)]
    assert [one.result().position for one in crowd if not one.exception()] == list(range(2, 22))
    command_bus.close()
    assert list(verify_log(store)) == []


def test_an_outcome_is_returned_after_the_commit(store: Store) -> None:
    """EV-79: once a caller gets the result, any reader finds the events in the log."""
    command_bus = CommandBus(store, [], decide)
    found: list[bool] = []

    def check(future: Future[Recorded]) -> None:
        found.append((store.recorder.max_notification_id() or 0) >= future.result().position)

    for number in range(20):
        command_bus.submit(write(f"/dirs/d{number}")).add_done_callback(check)
    command_bus.close()
    assert found == [True] * 20


def test_a_failed_commit_fails_all_its_commands(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """When a commit fails, each command of the transaction fails with its error, and none is recorded."""
    command_bus = CommandBus(store, [], decide)
    command_bus.submit(write("/dirs/a")).result()

    def fail(*_: object) -> None:
        raise OSError("the disk is full")

    started, go = Event(), Event()
    held = command_bus.submit(write("/dirs/b"), build_answer=waiting(started, go))
    started.wait()
    failing = [command_bus.submit(write("/dirs/c")), command_bus.submit(write("/dirs/d"))]
    with monkeypatch.context() as patch:
        patch.setattr(WriterConnection, "_commit", fail)
        go.set()
        assert all(isinstance(future.exception(), OSError) for future in (held, *failing))
    assert store.log_end().position == 1
    assert command_bus.submit(write("/dirs/e")).result().position == 2
    command_bus.close()


def test_a_lost_transaction_fails_only_what_lost_it(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    """If commands cannot be written together, each is carried out alone, and the debug log has the reason."""
    caplog.set_level(logging.DEBUG, "annals.store")

    def breaks(tx: WriteTransaction, recorded: Recorded) -> None:
        driver = tx.connection.connection.driver_connection
        assert driver is not None
        driver.rollback()

    outcomes = handle(
        [
            PendingCommand(write("/dirs/a")),
            PendingCommand(write("/dirs/b"), build_answer=breaks),
            PendingCommand(write("/dirs/c")),
        ],
        store,
        [],
        decide,
    )
    assert [isinstance(outcome, Recorded) for outcome in outcomes] == [True, False, True]
    assert [event.xid for _, event in store.events(0, 10)] == ["/dirs/a", "/dirs/c"]
    assert list(verify_log(store)) == []
    [record] = caplog.records
    assert record.levelname == "DEBUG" and record.getMessage().startswith("3 commands could not be written together")
    assert record.exc_info and isinstance(record.exc_info[1], driver_errors())


def test_many_callers(store: Store) -> None:
    command_bus = CommandBus(store, [], decide)
    futures: list[Future[Recorded]] = []

    def call(number: int) -> None:
        for turn in range(10):
            future = command_bus.submit(write("/dirs/shared", f"/dirs/d{number}", turn=turn))
            futures.append(future)
            future.result()

    callers = [Thread(target=call, args=(number,)) for number in range(16)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    command_bus.close()
    positions = sorted(position for future in futures for position, _ in future.result().events)
    assert positions == list(range(1, 321))
    # EV-24: different between any two interactions
    assert len({future.result().xregcorrelationid for future in futures}) == 160
    assert list(verify_log(store)) == []


def test_a_withdrawn_command_is_left_out(store: Store) -> None:
    started, go = Event(), Event()
    command_bus = CommandBus(store, [], decide)
    held = command_bus.submit(write("/dirs/a"), build_answer=waiting(started, go))
    started.wait()
    withdrawn = command_bus.submit(write("/dirs/b"))
    assert withdrawn.cancel()
    go.set()
    held.result()
    command_bus.close()
    assert store.log_end().position == 1


def test_a_listener_that_fails_does_not_end_the_writer(store: Store, caplog: pytest.LogCaptureFixture) -> None:
    class Failing:
        def committed(self, commands: int, refused: int, seconds: float) -> None:
            raise RuntimeError("the loop is closed")

    command_bus = CommandBus(store, [], decide, Failing())
    assert [command_bus.submit(write(f"/dirs/{id}")).result(timeout=30).position for id in "ab"] == [1, 2]
    command_bus.close()
    assert [record.message for record in caplog.records] == ["a listener of commits failed"] * 2


def test_failures_to_catch_up_are_logged(
    store: Store, projection: PositionProjection, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    failures: list[Exception | None] = [OSError("the disk is full"), OSError("still full"), None, OSError("full again")]
    caught_up = Event()

    def catch_up(_: Connection) -> None:
        failure = failures.pop(0)
        caught_up.set()
        if failure:
            raise failure

    monkeypatch.setattr(projection, "catch_up", catch_up)
    command_bus = CommandBus(store, [projection], decide)
    for number in range(len(failures)):
        caught_up.clear()
        command_bus.submit(write(f"/dirs/d{number}")).result()
        assert caught_up.wait(60)
    command_bus.close()
    assert [str(record.exc_info and record.exc_info[1]) for record in caplog.records] == [
        "the disk is full",
        "full again",
    ]
    assert store.damage.first_damage is None


def test_damage_that_catching_up_finds_is_noted(
    store: Store, projection: PositionProjection, monkeypatch: pytest.MonkeyPatch
) -> None:
    def catch_up(_: Connection) -> None:
        raise UnreadableRow("a row cannot be read")

    monkeypatch.setattr(projection, "catch_up", catch_up)
    command_bus = CommandBus(store, [projection], decide)
    command_bus.submit(write("/dirs/a")).result()
    command_bus.close()
    assert store.damage.first_damage == "its read model is damaged"


def test_closing_drains(store: Store) -> None:
    command_bus = CommandBus(store, [], decide)
    futures = [command_bus.submit(write(f"/dirs/d{number}")) for number in range(300)]
    command_bus.close()
    command_bus.close()
    assert [future.result().position for future in futures] == list(range(1, 301))
    with pytest.raises(RuntimeError):
        command_bus.submit(write("/dirs/late"))


def test_a_queue_that_is_full_refuses_more(store: Store) -> None:
    # ERR-8: when the queue is full, another command is refused at once, and the waiting ones are carried out
    go = Event()

    def slow(command: Command, world: World, context: Context) -> Decision:
        go.wait(60)
        return decide(command, world, context)

    command_bus = CommandBus(store, [], slow, max_waiting=2)
    try:
        running = command_bus.submit(write("a"))
        while not running.running():
            pass
        waiting = [command_bus.submit(write("b")), command_bus.submit(write("c"))]
        with pytest.raises(ServerBusy):
            command_bus.submit(write("d"))
        go.set()
        assert [done.result().xregcorrelationid is not None for done in (running, *waiting)] == [True] * 3
    finally:
        go.set()
        command_bus.close()
