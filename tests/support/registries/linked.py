"""Two registries in one process, and a link between them that a test moves on by hand.

Each is served in process under a root URL, a clock and ids of its own. What the other one has comes as the bytes of
its `/-/log?documents`, as far as the test lets it.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

import pytest
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from sqlalchemy import create_engine, select

from annals.api.app import create_app
from annals.api.settings.settings import Settings
from annals.commands.command_bus import handle
from annals.commands.pending_command import PendingCommand
from annals.commands.store import tables
from annals.commands.store.hashes import Interaction, LogRow
from annals.commands.store.log import Recorded, Store
from annals.commands.store.mapper import EventMapper
from annals.domain.access.roles import Caller, Role
from annals.domain.decisions.commands import Command
from annals.domain.registry.events import EntityEvent
from annals.domain.replication.foreign_interaction import ForeignInteraction
from annals.domain.replication.link import Link
from annals.domain.values import xid as xids
from annals.projections.entities.apply import EntityProjection
from annals.projections.entities.publications import SqlPublications
from annals.projections.entities.query import ViewPool
from annals.projections.entities.tables import tables as read_model
from annals.projections.outgoing.destination_guard import DestinationGuard
from annals.projections.replication.link_state import LinkStates
from annals.projections.replication.link_worker import LinkWorkerContext
from annals.projections.replication.log.ingest import LogIngester
from annals.projections.replication.log.log_lines import parse_interactions
from tests.support.histories import Step, asked
from tests.support.registries.requests import MIDNIGHT, Answer, Moment, Registry, Request
from tests.support.stores import schema_of

Json = Any

ROOT: Final = Caller("root", Role.ADMIN)
LINES: Final = {"accept": "application/x-ndjson"}
_NEXT: Final = re.compile(r"<([^>]*)>;rel=next")
#: Where an entity was created in this log.
_SHORT: Final = re.compile(r"/-/s/[0-9a-z]+")
_CANONICAL: Final = re.compile(r", <[^>]*>;rel=canonical")
_CURSOR: Final = re.compile(r"cursor=[^&>]*")


@dataclass(frozen=True, slots=True)
class Turn:
    """What happens between two looks: steps of the source, then something of the target's own, then lines come in.

    lines: of the feed. back: how many interactions of those that were taken in come again.
    """

    steps: int
    beside: Step | None
    lines: int
    back: int


#: Gives the URLs of two empty stores.
Empty = Callable[[], AbstractContextManager[list[str]]]


class Apart(Moment):
    """Times and ids that no other registry has."""

    def __init__(self, name: str, days: int) -> None:
        super().__init__()
        self._name = name
        self._days = days
        self._issued = 0

    def clock(self) -> datetime:
        return MIDNIGHT + timedelta(days=self._days, seconds=self.number)

    def new_id(self) -> str:
        self._issued += 1
        return f"{self._name}-{self._issued}"


class Party:
    """A registry with a name, which is its host. store: the same one again, for what is done without HTTP."""

    def __init__(self, name: str, database: str, registry: Registry, store: Store) -> None:
        self.name = name
        self.url = f"http://{name}"
        self.database = database
        self.store = store
        self._registry = registry

    async def ask(self, method: str, path: str, body: Json = None, headers: dict[str, str] | None = None) -> Answer:
        """The answer to a request, which has a second of its own; no request may break the server."""
        answer = await self._registry.ask(Request(method, path, body, headers or {}))
        assert answer.status < 500, (path, answer)
        return answer

    async def write(self, method: str, path: str, body: Json = None) -> Json:
        """What a write that has to succeed answers with."""
        answer = await self.ask(method, path, body)
        assert answer.status < 300, (path, answer)
        return json.loads(answer.content) if answer.content else None

    async def live(self, history: Sequence[Step]) -> None:
        """Carries out a history; what it asks for may be refused."""
        for step in history:
            request = asked(step)
            await self.ask(request.method, request.path, request.body)

    async def read(self, path: str) -> tuple[int, dict[str, str], str]:
        """The answer to a GET, all of its pages, as it would be of whichever host and log: without positions."""
        answer = await self.ask("GET", path)
        whole = answer
        while following := _NEXT.search(answer.headers.get("link", "")):
            answer = await self.ask("GET", following[1].removeprefix(self.url))
            whole = replace(whole, content=whole.content + b"\n" + answer.content)
        told = {name: value for name, value in whole.headers.items() if name not in ("etag", "content-length")}
        told["link"] = _CANONICAL.sub("", _CURSOR.sub("cursor", told["link"]))
        headers = {name: self._anywhere(value) for name, value in told.items()}
        return whole.status, headers, self._anywhere(whole.content.decode("latin-1"))

    async def feed(self, after: int = 0) -> list[bytes]:
        """The lines of the log from a position on, with documents."""
        answer = await self.ask("GET", f"/-/log?after={after}&documents", None, LINES)
        return answer.content.splitlines()

    async def told(self) -> list[Json]:
        """All xRegistry events, without what belongs to a log."""
        lines = (await self.ask("GET", "/-/events", None, LINES)).content.splitlines()
        return [{name: value for name, value in json.loads(line).items() if name != "sequence"} for line in lines]

    def recorded(self) -> Iterator[tuple[Interaction, list[EntityEvent]]]:
        """The interactions of the log with their events."""
        log, mapper = tables.log.c, EventMapper()
        with self.store.engine.connect() as connection:
            for row in connection.execute(select(tables.interaction).order_by(tables.interaction.c.last)).all():
                facts = Interaction(**row._mapping)
                found = connection.execute(
                    select(*(log[name] for name in LogRow._fields))
                    .where(log.position.between(facts.first, facts.last))
                    .order_by(log.position)
                )
                yield facts, [mapper.event_of_row(LogRow(*each)) for each in found]

    def documents(self) -> dict[str, bytes]:
        """All documents by their hash."""
        with self.store.engine.connect() as connection:
            return {row.sha256: bytes(row.bytes) for row in connection.execute(select(tables.document))}

    def rows(self) -> list[list[Any]]:
        """All of the read model, table by table, in an order that is the same for equal ones."""
        with self.store.engine.connect() as connection:
            return [sorted(map(tuple, connection.execute(select(each))), key=str) for each in read_model()]

    def _anywhere(self, text: str) -> str:
        return _SHORT.sub("/-/s/it", text.replace(self.url, "http://anywhere"))


class Inflow:
    """A link of a registry, moved on by hand."""

    def __init__(self, target: Party, source: Party, id: str) -> None:
        self._target = target
        self._source = source
        self.id = id
        self.states = LinkStates(target.database)
        self._readers = ViewPool(target.database)

    def close(self) -> None:
        self.states.close()
        self._readers.close()

    @property
    def link(self) -> Link:
        """As it is now."""
        found = self._readers.quick_view().links.get(self.id)
        assert found is not None
        return found

    async def take(self, after: int | None = None, lines: int | None = None) -> None:
        """Takes in what the source has. after: where to begin, unless where the last one ended; lines: of the feed, at
        most, wherever that cuts it. Raises: what the intake raises.
        """
        intake = LogIngester(self.link, self._tools())
        intake.cursor = intake.cursor if after is None else after
        intake.ingest(await self.coming(intake.cursor, lines))

    async def coming(self, after: int, lines: int | None = None) -> list[ForeignInteraction]:
        """Interactions of the source beyond a position. lines: see `take`."""
        return list(parse_interactions((await self._source.feed(after))[:lines]))

    @property
    def cursor(self) -> int:
        return self.states.read(self.id).cursor or 0

    def do(self, command: Command) -> Recorded:
        """What a command comes to that the link asks for."""
        return self._tools().execute(self.link, command)

    def _tools(self) -> LinkWorkerContext:
        return LinkWorkerContext(self._submit, self._readers, self.states, lambda link: {}, DestinationGuard())

    def _submit(self, command: Command, caller: Caller) -> Future[Recorded]:
        future: Future[Recorded] = Future()
        (outcome,) = handle([PendingCommand(command, caller)], self._target.store, [EntityProjection()])
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
        return future


@asynccontextmanager
async def party(name: str, database: str, days: int = 0) -> AsyncIterator[Party]:
    """An open registry. name: its host; days: how late its clock is."""
    moment = Apart(name, days)
    settings = Settings(database=database, public_url=f"http://{name}", registryid=name)
    app = create_app(settings, clock=moment.clock, new_id=moment.new_id, caller=ROOT)
    engine = create_engine(database.replace("postgresql:", "postgresql+psycopg:", 1))
    async with app.router.lifespan_context(app):
        again = Store(
            database,
            clock=moment.clock,
            new_id=moment.new_id,
            public_url=f"http://{name}",
            open_publications=SqlPublications,
        )
        with closing(again) as store:
            try:
                yield Party(name, database, Registry(app, engine, moment), store)
            finally:
                engine.dispose()


@asynccontextmanager
async def linked(target: Party, source: Party, scope: Json = None) -> AsyncIterator[Inflow]:
    """A new link to the source's log, called as the source is."""
    body = {"url": source.url, **({"scope": scope} if scope else {})}
    await target.write("PUT", f"/-/links/{source.name}", body)
    with closing(Inflow(target, source, source.name)) as found:
        yield found


def of_tree(recorded: Iterator[tuple[Interaction, list[EntityEvent]]]) -> dict[str, tuple[Json, ...]]:
    """What interactions of the tree say wherever they are recorded, by id, in order: without what belongs to a log."""
    return {
        facts.xregcorrelationid: (
            (facts.time, facts.caller, facts.command, facts.registry_url, facts.state),
            [event.model_dump(exclude={"revision", "born"}) for event in events],
        )
        for facts, events in recorded
        if not all(xids.is_outside_tree(event.stream) for event in events)
    }


async def lived(source: Party, target: Party, inflow: Inflow, history: Sequence[Step], looks: Sequence[Turn]) -> None:
    """Carries out a history at the source while it comes in at the target, and takes in the rest in the end."""
    rest = list(history)
    for turn in looks:
        now, rest = rest[: turn.steps], rest[turn.steps :]
        await source.live(now)
        if turn.beside:
            await target.live([turn.beside])
        ends = [0, *(facts.last for facts, _ in source.recorded() if facts.last <= inflow.cursor)]
        await inflow.take(ends[-min(turn.back, len(ends))] if turn.back else None, turn.lines)
    await source.live(rest)
    await inflow.take()


def turns(beside: Sequence[Step | None]) -> SearchStrategy[list[Turn]]:
    """Some looks. beside: what the target may do of its own."""
    doing = st.none() | st.sampled_from(beside)
    again = st.sampled_from((0, 0, 1, 2, 5, 99))
    return st.lists(st.builds(Turn, st.integers(0, 6), doing, st.integers(0, 60), again), max_size=6)


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_ones(request: pytest.FixtureRequest) -> tuple[str, Empty]:
    """The kind of a database, and a context that gives the URLs of two empty ones."""
    if request.param == "sqlite":
        return request.param, _sqlite
    server: str = request.getfixturevalue("postgres_server")
    return request.param, partial(_postgresql, server)


@contextmanager
def _sqlite() -> Iterator[list[str]]:
    with tempfile.TemporaryDirectory() as folder:
        yield [f"sqlite:///{folder}/{name}.db" for name in ("one", "other")]


@contextmanager
def _postgresql(server: str) -> Iterator[list[str]]:
    with schema_of(server) as one, schema_of(server) as other:
        yield [one, other]
