"""Two registries in one process, and a replication link between them that a test runs step by step.

Each registry has its own URL, clock and ids. The link reads the bytes of the other registry's `/-/log?documents`, up to
the line that the test chooses.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, asynccontextmanager, closing, contextmanager, nullcontext, suppress
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
from annals.commands.store.compression.state_compression import decompress_state
from annals.commands.store.database import tables
from annals.commands.store.hashes import Interaction
from annals.commands.store.log import Store
from annals.commands.store.mapper import EventMapper
from annals.commands.store.write_transaction import Recorded
from annals.domain.access.roles import Caller, Role
from annals.domain.decisions.commands import SubmittedCommand
from annals.domain.registry.events import EntityEvent
from annals.domain.replication.foreign_interaction import ForeignInteraction
from annals.domain.replication.link import Link
from annals.domain.values import xid as xids
from annals.projections.entities.apply import EntityProjection
from annals.projections.entities.publications import SqlPublications
from annals.projections.entities.schema_versions import open_schemas
from annals.projections.entities.view_pool import ViewPool
from annals.projections.outgoing.destination_guard import DestinationGuard
from annals.projections.replication.link_state import LinkStates
from annals.projections.replication.link_worker import LinkWorkerContext
from annals.projections.replication.log.ingest import LogIngester
from annals.projections.replication.log.log_lines import BrokenFeed, parse_interactions
from tests.support.histories import Step, as_request
from tests.support.read_model import read_model_rows
from tests.support.registries.requests import MIDNIGHT, Answer, Registry, Request, RequestClock
from tests.support.segment_logs import stored_documents
from tests.support.stores import schema_of

Json = Any

ROOT: Final = Caller("root", Role.ADMIN, authenticator="keys", keyid="b2c4d6f8h2j4")
LINES: Final = {"accept": "application/x-ndjson"}
_NEXT: Final = re.compile(r"<([^>]*)>;rel=next")
#: Short URLs. They depend on the position in the log at which an entity was created.
_SHORT: Final = re.compile(r"/-/s/[0-9a-z]+")
_CANONICAL: Final = re.compile(r", <[^>]*>;rel=canonical")
_CURSOR: Final = re.compile(r"cursor=[^&>]*")


@dataclass(frozen=True, slots=True)
class SyncRound:
    """One round of replication: the source executes steps, the target at most one of its own, then ingests lines.

    own_step: of the target. lines: of the feed. back: how many ingested interactions are ingested again.
    """

    steps: int
    own_step: Step | None
    lines: int
    back: int


#: Yields the URLs of two empty stores.
EmptyDatabases = Callable[[], AbstractContextManager[list[str]]]


class DistinctClock(RequestClock):
    """A clock and ids that differ from those of all other registries."""

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


class NamedRegistry:
    """A registry with a name, which is its host. store: a second connection to its store, for tests without HTTP."""

    def __init__(self, name: str, database: str, registry: Registry, store: Store) -> None:
        self.name = name
        self.url = f"http://{name}"
        self.database = database
        self.store = store
        self._registry = registry

    async def ask(self, method: str, path: str, body: Json = None, headers: dict[str, str] | None = None) -> Answer:
        """The response to a request. The clock advances one second per request; a 5xx status fails the test."""
        answer = await self._registry.ask(Request(method, path, body, headers or {}))
        assert answer.status < 500, (path, answer)
        return answer

    async def write(self, method: str, path: str, body: Json = None) -> Json:
        """The JSON of the response to a write, which must succeed."""
        answer = await self.ask(method, path, body)
        assert answer.status < 300, (path, answer)
        return json.loads(answer.content) if answer.content else None

    async def execute(self, history: Sequence[Step]) -> None:
        """Sends the requests of a history; the registry may refuse some."""
        for step in history:
            request = as_request(step)
            await self.ask(request.method, request.path, request.body)

    async def read(self, path: str) -> tuple[int, dict[str, str], str]:
        """The response to a GET with all its pages, without the host and the positions in the log."""
        answer = await self.ask("GET", path)
        whole = answer
        while following := _NEXT.search(answer.headers.get("link", "")):
            answer = await self.ask("GET", following[1].removeprefix(self.url))
            whole = replace(whole, content=whole.content + b"\n" + answer.content)
        shown = {
            name: value
            for name, value in whole.headers.items()
            if name not in ("etag", "content-length", "annals-position")
        }
        shown["link"] = _CANONICAL.sub("", _CURSOR.sub("cursor", shown["link"]))
        headers = {name: self._anywhere(value) for name, value in shown.items()}
        return whole.status, headers, self._anywhere(whole.content.decode("latin-1"))

    async def feed(self, after: int = 0) -> list[bytes]:
        """The lines of the log from a position on, with documents."""
        answer = await self.ask("GET", f"/-/log?after={after}&documents", None, LINES)
        return answer.content.splitlines()

    async def events(self) -> list[Json]:
        """All xRegistry events, without their positions."""
        lines = (await self.ask("GET", "/-/events", None, LINES)).content.splitlines()
        return [{name: value for name, value in json.loads(line).items() if name != "sequence"} for line in lines]

    def interactions(self) -> Iterator[tuple[Interaction, list[EntityEvent]]]:
        """The interactions of the log with their events."""
        log, mapper = tables.log.c, EventMapper()
        with self.store.engine.connect() as connection:
            for row in connection.execute(select(tables.interaction).order_by(tables.interaction.c.last)).all():
                facts = Interaction(**row._mapping)
                found = connection.execute(
                    select(log.topic, log.revision, log.state)
                    .where(log.position.between(facts.first, facts.last))
                    .order_by(log.position)
                )
                yield (
                    facts,
                    [mapper.event(topic, revision, decompress_state(state)) for topic, revision, state in found],
                )

    def documents(self) -> dict[str, bytes]:
        """All documents by their hash."""
        return stored_documents(self.store.engine)

    def rows(self) -> dict[str, list[Any]]:
        """All rows of the read model by table, sorted."""
        with self.store.writing() as transaction:
            EntityProjection().catch_up(transaction.connection)
        with self.store.engine.connect() as connection:
            return read_model_rows(connection)

    def _anywhere(self, text: str) -> str:
        return _SHORT.sub("/-/s/it", text.replace(self.url, "http://anywhere"))


class ManualLink:
    """A replication link that a test runs step by step."""

    def __init__(self, target: NamedRegistry, source: NamedRegistry, id: str) -> None:
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
        """The current state of the link."""
        found = self._readers.quick_view().links.get(self.id)
        assert found is not None
        return found

    async def ingest(self, after: int | None = None, lines: int | None = None) -> None:
        """Ingests the log of the source. Raises: what LogIngester raises.

        after: the position to begin after, instead of the cursor. lines: the number of lines of the feed to ingest,
        which may end inside an interaction.
        """
        ingester = LogIngester(self.link, self._tools())
        ingester.cursor = ingester.cursor if after is None else after
        ingester.ingest(await self.incoming(ingester.cursor, lines))

    async def incoming(self, after: int, lines: int | None = None) -> list[ForeignInteraction]:
        """The interactions of the source after a position. lines: see `ingest`."""
        found: list[ForeignInteraction] = []
        with suppress(BrokenFeed) if lines is not None else nullcontext():  # it ends inside an interaction
            found.extend(parse_interactions((await self._source.feed(after))[:lines]))
        return found

    @property
    def cursor(self) -> int:
        return self.states.read(self.id).cursor or 0

    def do(self, command: SubmittedCommand) -> Recorded:
        """The result of a command that the link submits."""
        return self._tools().execute(self.link, command)

    def _tools(self) -> LinkWorkerContext:
        return LinkWorkerContext(self._submit, self._readers, self.states, lambda link: {}, DestinationGuard())

    def _submit(self, command: SubmittedCommand, caller: Caller) -> Future[Recorded]:
        future: Future[Recorded] = Future()
        (outcome,) = handle([PendingCommand(command, caller)], self._target.store, [EntityProjection()])
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)
        return future


@asynccontextmanager
async def named_registry(name: str, database: str, days: int = 0) -> AsyncIterator[NamedRegistry]:
    """An open registry. name: its host. days: the offset of its clock."""
    moment = DistinctClock(name, days)
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
            open_schemas=open_schemas,
        )
        with closing(again) as store:
            try:
                yield NamedRegistry(name, database, Registry(app, engine, moment), store)
            finally:
                engine.dispose()


@asynccontextmanager
async def manual_link(target: NamedRegistry, source: NamedRegistry, scope: Json = None) -> AsyncIterator[ManualLink]:
    """A new link to the log of the source, with the name of the source."""
    body = {"url": source.url, **({"scope": scope} if scope else {})}
    await target.write("PUT", f"/-/links/{source.name}", body)
    with closing(ManualLink(target, source, source.name)) as found:
        yield found


def tree_interactions(recorded: Iterator[tuple[Interaction, list[EntityEvent]]]) -> dict[str, tuple[Json, ...]]:
    """The interactions of the tree by id, in order, without the values that differ between logs."""
    return {
        facts.xregcorrelationid: (
            (facts.time, facts.caller, facts.credential, facts.command, facts.registry_url, facts.state),
            [event.model_dump(exclude={"revision", "born"}) for event in events],
        )
        for facts, events in recorded
        if not all(xids.is_outside_tree(event.stream) for event in events)
    }


async def replicate_history(
    source: NamedRegistry,
    target: NamedRegistry,
    pull: ManualLink,
    history: Sequence[Step],
    rounds: Sequence[SyncRound],
) -> None:
    """Sends a history to the source while the target replicates it, and replicates the rest at the end."""
    rest = list(history)
    for turn in rounds:
        now, rest = rest[: turn.steps], rest[turn.steps :]
        await source.execute(now)
        if turn.own_step:
            await target.execute([turn.own_step])
        ends = [0, *(facts.last for facts, _ in source.interactions() if facts.last <= pull.cursor)]
        await pull.ingest(ends[-min(turn.back, len(ends))] if turn.back else None, turn.lines)
    await source.execute(rest)
    await pull.ingest()


def sync_rounds(own_steps: Sequence[Step | None]) -> SearchStrategy[list[SyncRound]]:
    """Rounds of replication. own_steps: the steps of the target to choose from."""
    doing = st.none() | st.sampled_from(own_steps)
    again = st.sampled_from((0, 0, 1, 2, 5, 99))
    return st.lists(st.builds(SyncRound, st.integers(0, 6), doing, st.integers(0, 60), again), max_size=6)


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_databases(request: pytest.FixtureRequest) -> tuple[str, EmptyDatabases]:
    """The kind of database, and a context manager that yields the URLs of two empty ones."""
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
