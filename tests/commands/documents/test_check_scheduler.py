"""Commands whose documents are checked while others are written: each gets an outcome, whatever happens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future, wait
from contextlib import closing
from threading import Event, Thread
from time import sleep
from typing import Any

import pytest

from annals.commands.command_bus import CommandBus
from annals.commands.documents.check_scheduler import MAX_ATTEMPTS
from annals.commands.documents.document_checker import DocumentChecker
from annals.commands.documents.resource_queues import PATIENT_ATTEMPTS
from annals.commands.store.log import Store
from annals.commands.store.write_transaction import Recorded
from annals.commands.verify.verify_log import verify_log
from annals.domain.decisions.changes.documents import digest
from annals.domain.decisions.checks.document_checks import (
    CheckResult,
    ChecksRequired,
    DocumentCheck,
    FormatCheck,
    documents_of,
)
from annals.domain.decisions.commands import Command, CreateRegistry, WriteMethod, WriteTree
from annals.domain.decisions.decide import decide
from annals.domain.decisions.world import Context, Decision, World
from annals.domain.errors.problems import ServerBusy
from annals.domain.model.builtin import default_source
from annals.domain.values.json_text import dumps

SCHEMA = "/schemagroups/g/schemas/s"
WRITERS = 30


def avro(number: int, **attributes: Any) -> dict[str, Any]:
    """A Version whose schema has one optional field of its own."""
    fields = [{"name": "id", "type": "string"}, {"name": f"f{number}", "type": "string", "default": ""}]
    return {"format": "Avro/1.11", "schema": {"type": "record", "name": "R", "fields": fields}, **attributes}


@pytest.fixture
def registry(store: Store) -> Store:
    """A registry of schemas."""
    with closing(CommandBus(store, [])) as command_bus:
        command_bus.submit(CreateRegistry("reg", default_source())).result()
    return store


def lone_surrogate(number: int) -> WriteTree:
    tree = {"format": "Protobuf/3", "contenttype": "text/plain", "schema": "\ud800"}
    return WriteTree(f"/schemagroups/g/schemas/s{number}", tree, WriteMethod.PUT)


def test_all_concurrent_writers_of_one_schema_succeed(registry: Store) -> None:
    # ENT-112: each new Version is compared with the one before it; no command is refused because others were faster
    decisions: Counter[str] = Counter()

    def counted(command: Command, world: World, context: Context) -> Decision:
        decisions[str(getattr(command, "xid", ""))] += 1
        return decide(command, world, context)

    with closing(CommandBus(registry, [], counted)) as command_bus:
        command_bus.submit(WriteTree(SCHEMA, avro(0, meta={"compatibility": "backward"}), WriteMethod.PUT)).result()
        some = [WriteTree(f"{SCHEMA}/versions/v{number}", avro(number), WriteMethod.PUT) for number in range(WRITERS)]
        futures = [command_bus.submit(command) for command in some]
        recorded = [future.result(60) for future in futures]
    assert len({one.position for one in recorded}) == WRITERS
    assert max(decisions.values()) <= 5
    ancestors = {
        event.xid: event.attributes["ancestorid"]
        for one in recorded
        for _, event in one.events
        if "versions" in event.xid
    }
    assert len(set(ancestors.values())) == WRITERS, "one line"
    assert list(verify_log(registry)) == []


def test_a_slow_check_is_not_overtaken_for_ever(registry: Store) -> None:
    # ENT-112, LEG-534: quick Versions, each of which a slow one has to be compared with, let it go first at some time
    small: list[Future[Recorded]] = []
    slow = avro(0)
    slow["schema"]["doc"] = "slow"
    slow_hash, is_written = digest(dumps(slow["schema"])), Event()

    class Overtaken(DocumentChecker):
        def check(self, document_checks: Any, *arguments: Any) -> dict[DocumentCheck, CheckResult]:
            is_slow = slow_hash in {one.sha256 for check in document_checks for one in documents_of(check)}
            if is_slow and not is_written.is_set():
                small.append(command_bus.submit(version(f"v{len(small)}", len(small) + 1)))
                wait(small[-1:], timeout=1)
            return super().check(document_checks, *arguments)

    def version(id: str, number: int, **attributes: Any) -> WriteTree:
        return WriteTree(f"{SCHEMA}/versions/{id}", avro(number, **attributes), WriteMethod.PUT)

    with closing(CommandBus(registry, [], checker=Overtaken())) as command_bus:
        command_bus.submit(WriteTree(SCHEMA, avro(0, meta={"compatibility": "backward"}), WriteMethod.PUT)).result()
        assert command_bus.submit(WriteTree(f"{SCHEMA}/versions/slow", slow, WriteMethod.PUT)).result(60).events
        is_written.set()
        assert PATIENT_ATTEMPTS <= len(small) < MAX_ATTEMPTS
        assert all(one.result(60).events for one in small)
    assert list(verify_log(registry)) == []


def test_a_command_with_endless_checks_is_refused(registry: Store) -> None:
    contents: list[bytes] = []

    def require_another_check(command: Command, world: World, context: Context) -> Decision:
        content = f'"int{len(contents)}"'.encode()
        contents.append(content)
        document_check = FormatCheck("avro/1.11", digest(content))
        raise ChecksRequired(frozenset({document_check}), {str(document_check.sha256): content})

    with closing(CommandBus(registry, [], require_another_check)) as command_bus:
        outcome = command_bus.submit(WriteTree(SCHEMA, {}, WriteMethod.PUT))
        with pytest.raises(ServerBusy):
            outcome.result(60)
    assert len(contents) == MAX_ATTEMPTS + 1


def test_a_command_that_cannot_be_checked_does_not_stop_the_next(registry: Store) -> None:
    with closing(CommandBus(registry, [])) as command_bus:
        with pytest.raises(UnicodeEncodeError):
            command_bus.submit(lone_surrogate(1)).result(60)
        assert command_bus.submit(WriteTree(SCHEMA, avro(1), WriteMethod.PUT)).result(60).events


def test_cancelled_commands_are_skipped_during_checks(registry: Store) -> None:
    class Slow(DocumentChecker):
        def check(self, document_checks: Any, content: Any, report: Any = None) -> dict[DocumentCheck, CheckResult]:
            started.set()
            go.wait(60)
            return super().check(document_checks, content, report)

    started, go = Event(), Event()
    graphql = {"format": "GraphQL/October2021", "schema": "type Query { a: Int }"}
    with closing(CommandBus(registry, [], checker=Slow())) as command_bus:
        command_bus.submit(WriteTree("/schemagroups/g", {}, WriteMethod.PUT)).result()
        before = registry.log_end()
        withdrawn = command_bus.submit(WriteTree(SCHEMA, graphql, WriteMethod.PUT))
        assert started.wait(60)
        assert withdrawn.cancel()
        go.set()
    assert registry.log_end() == before


@pytest.fixture
def paused() -> Iterator[Event]:
    """An event that a decision waits for; it is set at the end in any case."""
    go = Event()
    yield go
    go.set()


def test_closing_refuses_new_commands_and_answers_waiting_ones(registry: Store, paused: Event) -> None:
    deciding = Event()

    def slow(command: Command, world: World, context: Context) -> Decision:
        deciding.set()
        paused.wait(60)
        return decide(command, world, context)

    command_bus = CommandBus(registry, [], slow)
    futures = [
        command_bus.submit(
            WriteTree(f"{SCHEMA}{number % 2}", avro(number, meta={"compatibility": "full"}), WriteMethod.PUT)
        )
        for number in range(8)
    ]
    assert deciding.wait(60)
    closer = Thread(target=command_bus.close)
    closer.start()
    with pytest.raises(RuntimeError):
        for number in range(1000):  # until the other thread has begun to close the bus
            futures.append(command_bus.submit(WriteTree(f"{SCHEMA}{number}", avro(number), WriteMethod.PUT)))
            sleep(0.01)
    paused.set()
    closer.join(60)
    assert not closer.is_alive()
    assert all(future.done() and future.exception() is None for future in futures)
