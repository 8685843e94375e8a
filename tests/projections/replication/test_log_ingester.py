"""The ingester of a followed log: refusals, atomicity and limits (LEG-910)."""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from annals.commands.command_bus import CommandOutcome, handle
from annals.commands.pending_command import PendingCommand
from annals.commands.store.database.engine import WriterConnection
from annals.commands.store.write_transaction import Recorded
from annals.commands.verify.verify_log import verify_log, verify_row_hashes
from annals.domain.decisions.commands import (
    ControlLink,
    DeleteLink,
    Follow,
    SubmittedCommand,
    WriteLink,
    WriteMethod,
    WriteTree,
)
from annals.domain.errors.http_errors import Diverged, NotReceiving
from annals.domain.errors.problems import NotFound, Readonly
from annals.domain.replication.foreign_interaction import ForeignInteraction
from annals.domain.replication.link_document import parse_link
from annals.projections.entities.apply import EntityProjection
from annals.projections.replication.log.ingest import LogIngester
from tests.support.registries.linked import ROOT, ManualLink, NamedRegistry, manual_link, named_registry

Json = Any
LINK = "/-/links/primary1"


@pytest.fixture
def databases(tmp_path: Path) -> list[str]:
    return [f"sqlite:///{tmp_path}/{name}.db" for name in ("one", "other", "third")]


@asynccontextmanager
async def pair(
    databases: list[str], scope: Json = None
) -> AsyncIterator[tuple[NamedRegistry, NamedRegistry, ManualLink]]:
    """A source with two interactions after its creation, a replica, and a link that has ingested nothing yet."""
    async with named_registry("primary1", databases[0]) as there, named_registry("replica1", databases[1], 1) as here:
        await there.write("PUT", "/schemagroups/a", {"name": "a"})
        await there.write("PUT", "/schemagroups/b", {"name": "b"})
        async with manual_link(here, there, scope) as pull:
            yield there, here, pull


def done(registry: NamedRegistry, *commands: SubmittedCommand) -> Sequence[CommandOutcome]:
    """The outcomes of commands that are handled in one transaction."""
    return handle([PendingCommand(command, ROOT) for command in commands], registry.store, [EntityProjection()])


@contextmanager
def failing() -> Iterator[None]:
    """Makes every commit fail."""

    def fail(*_: object) -> None:
        raise OSError("the disk is full")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WriterConnection, "_commit", fail)
        yield


def stored_state(registry: NamedRegistry) -> list[Any]:
    """Everything that a refused command must not change."""
    return [registry.store.log_end(), registry.rows(), registry.documents(), [*registry.interactions()]]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("PUT", LINK, {"url": "http://primary1", "enabled": False}), NotReceiving),
        (("POST", f"{LINK}/actions/promote", None), NotReceiving),
        (("DELETE", LINK, None), NotFound),
    ],
)
def test_a_link_that_rests_or_is_over_takes_nothing_in(
    databases: list[str], change: tuple[str, str, Json], problem: type[Exception]
) -> None:
    # LEG-901, LEG-909: interactions that are in flight when the link is changed are refused under the write lock
    async def run() -> None:
        async with pair(databases) as (_, here, pull):
            link, coming = pull.link, await pull.incoming(0)
            await here.write(*change)
            before = stored_state(here)
            (outcome,) = done(here, Follow(link.xid, tuple(coming)))
            assert type(outcome) is problem
            assert stored_state(here) == before

    asyncio.run(run())


@pytest.mark.parametrize("alone", [True, False])
def test_what_is_refused_half_way_leaves_nothing(databases: list[str], alone: bool) -> None:
    # LEG-910: either all interactions of a batch are ingested or none, also with other commands in the transaction
    async def run() -> None:
        async with pair(databases) as (_, here, pull):
            coming = await pull.incoming(0)
            wrong = Follow(LINK, (*coming[:-1], replace(coming[-1], state=bytes(32))))
            one = WriteLink("/-/links/x", True, parse_link({"url": "http://x", "mode": "push"}).attributes, {})
            before = stored_state(here)
            found = done(here, wrong) if alone else done(here, one, wrong)
            assert type(found[-1]) is Diverged
            assert not alone or stored_state(here) == before
            assert [type(each) for each in done(here, wrong, Follow(LINK, tuple(coming)))] == [Diverged, Recorded]
            assert here.store.log_end().state == coming[-1].state
            assert [*verify_log(here.store), *verify_row_hashes(here.store)] == []

    asyncio.run(run())


def test_what_precedes_a_refused_interaction_is_recorded(databases: list[str]) -> None:
    # LEG-910: interactions are copied whole and in order, up to the one that does not continue this registry
    async def run() -> None:
        async with pair(databases) as (there, here, pull):
            *before, last = await pull.incoming(0)
            with pytest.raises(Diverged):
                LogIngester(pull.link, pull._tools()).ingest([*before, replace(last, state=bytes(32))])
            assert pull.cursor == before[-1].last
            assert here.store.log_end().state == before[-1].state
            await pull.ingest()
            assert here.store.log_end().state == there.store.log_end().state

    asyncio.run(run())


def test_a_link_that_goes_in_the_same_transaction_is_gone(databases: list[str]) -> None:
    # LEG-909: copies become writable with the deletion of their link, also within one transaction
    async def run() -> None:
        async with pair(databases) as (_, here, pull):
            await pull.ingest()
            write = WriteTree("/schemagroups/a", {"name": "mine"}, WriteMethod.PATCH)
            again = WriteTree("/schemagroups/a", {"name": "mine"}, WriteMethod.PATCH)
            found = done(here, write, DeleteLink(LINK), Follow(LINK, tuple(await pull.incoming(0))), again)
            assert [type(each) for each in found[:3:2]] == [Readonly, NotFound]
            assert isinstance(found[3], Recorded)

    asyncio.run(run())


def test_links_that_were_never_committed_are_not_remembered(databases: list[str]) -> None:
    # LEG-909: if a transaction fails, the next event about a link gets the log position that the failed one had
    async def run() -> None:
        async with named_registry("replica1", databases[1]) as here:
            for name in "ab":
                scope = {"groups": [f"/schemagroups/{name}"]}
                await here.write("PUT", f"/-/links/{name}", {"url": f"http://{name}", "scope": scope})
            with failing(), pytest.raises(OSError, match="full"):
                done(here, DeleteLink("/-/links/a"), WriteTree("/schemagroups/a", {}, WriteMethod.PUT))
            (paused,) = done(here, ControlLink("/-/links/b", "pause"))
            (written,) = done(here, WriteTree("/schemagroups/a", {}, WriteMethod.PUT))
            assert (type(paused), type(written)) == (Recorded, Readonly)

    asyncio.run(run())


def test_an_ordinary_write_reads_links_once(databases: list[str]) -> None:
    # LEG-909: the check for read-only copies costs a write no SQL statement, however many links there are
    async def run() -> None:
        async with named_registry("replica1", databases[1]) as here:

            async def statements(path: str) -> list[str]:
                seen: list[str] = []

                def note(conn: Any, cursor: Any, statement: str, *rest: Any) -> None:
                    seen.append(statement)

                event.listen(here.store.engine, "before_cursor_execute", note)
                (outcome,) = done(here, WriteTree(path, {}, WriteMethod.PUT))
                event.remove(here.store.engine, "before_cursor_execute", note)
                assert isinstance(outcome, Recorded)
                return seen

            await statements("/schemagroups/a")
            before = await statements("/schemagroups/b")
            for number in range(5):
                scope = {"groups": [f"/schemagroups/x{number}"]}
                await here.write("PUT", f"/-/links/l{number}", {"url": f"http://x{number}", "scope": scope})
            await statements("/schemagroups/c")
            assert await statements("/schemagroups/d") == before

    asyncio.run(run())


def test_documents_of_what_is_not_wanted_stay_away(databases: list[str]) -> None:
    # LEG-901: of an interaction with two Groups, only the one in the scope is copied, with its documents
    async def run() -> None:
        async with pair(databases, {"groups": ["/schemagroups/a"]}) as (there, here, pull):
            both = {
                id: {"schemas": {"s": {"format": "X/1", "schemabase64": text}}}
                for id, text in (("a", "YQ=="), ("b", "Yg=="))
            }
            await there.write("POST", "/schemagroups", both)
            await pull.ingest()
            assert sorted(there.documents().values()) == [b"a", b"b"]
            assert [*here.documents().values()] == [b"a"]

    asyncio.run(run())


@pytest.mark.parametrize("scope", [None, {"groups": ["/schemagroups/many"]}])
def test_a_large_interaction_is_taken_in_whole(databases: list[str], scope: Json) -> None:
    # LEG-910: an interaction of thousands of events is recorded as one interaction
    async def run() -> None:
        async with pair(databases, scope) as (there, here, pull):
            await there.write(
                "PUT", "/schemagroups/many", {"schemas": {f"s{n}": {"format": "X/1"} for n in range(2500)}}
            )
            await pull.ingest()
            (facts, events) = [*here.interactions()][-1]
            assert len(events) == facts.last - facts.first + 1 > 5000
            assert await sum_of(there) == await sum_of(here)
            assert [*verify_row_hashes(here.store)] == []

    async def sum_of(each: NamedRegistry) -> Json:
        return json.loads((await each.ask("GET", "/-/hash/schemagroups/many")).content)["hash"]

    asyncio.run(run())


def test_a_second_link_does_not_swallow_what_the_first_left(databases: list[str]) -> None:
    # LEG-910: an interaction of which another link recorded a different part does not count as a repetition
    async def run() -> None:
        async with pair(databases, {"groups": ["/schemagroups/a"]}) as (there, here, pull):
            await there.write("POST", "/schemagroups", {"a": {}, "b": {}})
            await pull.ingest()
            await here.write("PUT", "/-/links/hub", {"url": "http://hub", "scope": {"groups": ["/schemagroups/b"]}})
            coming: list[ForeignInteraction] = await pull.incoming(0)
            (outcome,) = done(here, Follow("/-/links/hub", tuple(coming)))
            assert type(outcome) is Diverged

    asyncio.run(run())


@pytest.mark.parametrize(("most", "together"), [(1 << 20, [10]), (3000, [3, 3, 3, 1]), (1, [1] * 10)])
def test_documents_that_wait_are_bounded_in_bytes(
    databases: list[str], most: int, together: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    # LEG-910: interactions are recorded in batches, which are bounded by the size of their documents
    monkeypatch.setattr("annals.projections.replication.log.ingest.BATCH_BYTES", most)
    found: list[int] = []

    async def run() -> None:
        async with pair(databases) as (there, _, pull):
            await pull.ingest()
            for number in range(10):
                body = {"format": "Text/1", "schemabase64": b64encode(bytes([number]) * 1000).decode()}
                await there.write("PUT", f"/schemagroups/a/schemas/s{number}$details", body)
            submit = ManualLink._submit

            def counted(self: ManualLink, command: SubmittedCommand, caller: Any) -> Any:
                assert isinstance(command, Follow)
                found.append(len(command.interactions))
                return submit(self, command, caller)

            monkeypatch.setattr(ManualLink, "_submit", counted)
            await pull.ingest()

    asyncio.run(run())
    assert found == together
