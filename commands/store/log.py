"""The store and the only way to write its log: under one lock, with the events of many commands together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from threading import Lock
from typing import Any, Final, NamedTuple, Protocol, TypeVar

from sqlalchemy import Connection

from annals.commands.store import hashes, registry_url, sql, tables
from annals.commands.store.append import (
    NewSalt,
    SaltGenerator,
    UnwrittenEvents,
    add_salts,
    encode_event,
    replaced_hash,
)
from annals.commands.store.clock import Clock, format_time, parse_time, utc_now
from annals.commands.store.correlation_ids import NewId, UlidGenerator, adapt_new_id
from annals.commands.store.damage import DamageMonitor
from annals.commands.store.driver_errors import driver_errors
from annals.commands.store.engine import WRITING, WriterConnection, open_engine
from annals.commands.store.hashes import Interaction
from annals.commands.store.mapper import EventMapper, UnreadableEvent, require_bytes
from annals.commands.store.migrations import UpgradeStep, require_readable, upgrade
from annals.commands.store.recorder import LogRecorder
from annals.commands.store.secrets import Vault
from annals.commands.store.sql_world import START_COLUMNS, HeadCache, LinkCache, ModelCache, SqlWorld, StreamHead
from annals.commands.store.write_turns import WriteTurns
from annals.domain.access.roles import Role
from annals.domain.compat.publications import Publications
from annals.domain.decisions.commands import Command, describe
from annals.domain.decisions.phases import PhaseCounter, ReportPhase
from annals.domain.decisions.world import Context, Decision, DomainValidation, can_read_everything
from annals.domain.model import Model
from annals.domain.registry.events import EntityEvent

T = TypeVar("T")

_SELECT_LOG_END: Final = (
    "SELECT last, time, chain, state, xregcorrelationid FROM interaction ORDER BY last DESC LIMIT 1"
)
#: The end of the log, and the columns that `SqlWorld.preload` needs.
_SELECT_START: Final = _SELECT_LOG_END.replace(" FROM", f", {START_COLUMNS} FROM", 1)
#: The number of columns of `_SELECT_LOG_END`.
_LOG_END_WIDTH: Final = 5


class LogEnd(NamedTuple):
    """The end of the log; time is None when it is empty. id: correlation id of its last interaction."""

    position: int = 0
    time: datetime | None = None
    chain: bytes = hashes.EMPTY_HASH
    state: bytes = hashes.EMPTY_HASH
    id: str = ""


@dataclass(frozen=True, slots=True)
class Recorded:
    """The result of one command.

    events: with their positions, in log order; empty when nothing changed, and then there is no correlation id.
    processed: xids that the request named, in its order. position: the end of the log after the command.
    answer: the response that the caller built inside the transaction. findings, number: see Decision.
    """

    events: tuple[tuple[int, EntityEvent], ...]
    processed: tuple[str, ...]
    xregcorrelationid: str | None
    position: int
    time: datetime
    answer: Any = None
    findings: int = 0
    number: int | None = None


#: Opens the lookup of publications for decisions, on the connection of a write transaction.
OpenPublications = Callable[[Connection, EventMapper], Publications]


class Store:
    """A log with its heads, interactions and documents, in a SQLite file or a PostgreSQL database.

    public_url: recorded with each interaction as the registry's URL at that time. domainvalidation: the effect of rules
    beyond the model. vault: encrypts and decrypts secret values; one without keys does neither. open_publications:
    opens the lookup of publications for decisions; a store without it has none. write_turns: those of the processes
    that write to one SQLite file.
    """

    def __init__(
        self,
        url: str,
        *,
        clock: Clock = utc_now,
        new_id: NewId | None = None,
        new_salt: NewSalt | None = None,
        public_url: str = "",
        durable: bool = True,
        domainvalidation: DomainValidation = "warn",
        vault: Vault | None = None,
        open_publications: OpenPublications | None = None,
        write_turns: WriteTurns | None = None,
    ) -> None:
        self.engine = open_engine(url, durable=durable)
        self.recorder = LogRecorder(self.engine)
        #: The damage that any part of the process has found.
        self.damage = DamageMonitor()
        self.mapper = EventMapper()
        self.clock = clock
        self.new_id = adapt_new_id(new_id) if new_id else UlidGenerator()
        self.new_salt = new_salt or SaltGenerator()
        self.vault = vault or Vault()
        self._open_publications = open_publications
        self.public_url = public_url
        self.domainvalidation: DomainValidation = domainvalidation
        self._writer = WriterConnection(self.engine, write_turns)
        self._models = ModelCache()
        self._links = LinkCache()
        self.heads = HeadCache()
        # Threads of this process queue here, in order; with the database's own lock, waiters poll or pay a round trip.
        self._lock = Lock()

    def create(self) -> Sequence[UpgradeStep]:
        """Creates the tables that do not exist yet, and upgrades those of an older program; returns the steps of that.

        Raises: UnusableSchema, and changes nothing, when no steps lead from the store's schema to this program's.
        """
        with self.engine.execution_options(**{WRITING: True}).begin() as connection:
            if connection.dialect.name == "postgresql":
                sql.run(connection, "SELECT pg_advisory_xact_lock(hashtext('annals'))")
            tables.METADATA.create_all(connection)
            sql.insert(connection, tables.store, [("schema", tables.SCHEMA)], "ON CONFLICT DO NOTHING")
            return upgrade(connection)

    def require_readable(self) -> None:
        """Raises: UnusableSchema unless this program can read the log, for callers that do not `create` the store."""
        with self.engine.begin() as connection:
            require_readable(connection)

    def ensure_public_url(self, url: str) -> None:
        """Sets the URL recorded with interactions unless one is configured: the stored one, or else `url`.

        A store without a URL then keeps `url`, or the default if it has interactions without one (`ensure_url`).
        """
        if not self.public_url:
            with self.engine.begin() as connection:
                stored_url = registry_url.load_url(connection)
            if stored_url is None:
                with self._lock, self._writer.transaction() as connection:
                    stored_url = registry_url.ensure_url(connection, url)
            self.public_url = stored_url

    @contextmanager
    def writing(self, inline: Sequence[InlineProjection] = ()) -> Iterator[WriteTransaction]:
        """A transaction that holds the write lock; it is durable when the context ends, undone when it raises.

        inline: the projections of what it appends.
        """
        with self._lock:
            with self._writer.transaction() as connection:
                transaction = WriteTransaction(self, connection, self._world(connection), inline)
                try:
                    yield transaction
                    transaction.flush()
                finally:
                    transaction.world.detach()
            self.heads.put(transaction.log_end.chain, transaction.world.heads)

    @property
    def last_model(self) -> Model | None:
        """The model that was compiled last; another one may be in force by now. None before the first write."""
        return self._models.last

    def load_model(self) -> None:
        """Compiles the model in force, so that `last_model` knows it before the first write."""
        with self.engine.begin() as connection:
            _ = self._world(connection).model

    def log_end(self) -> LogEnd:
        """The end of the committed log."""
        with self.engine.begin() as connection:
            return _read_log_end(connection)

    def events(self, after: int, limit: int) -> list[tuple[int, EntityEvent]]:
        """Committed events after a position, each with its own position."""
        notifications = self.recorder.select_notifications(after, limit, inclusive_of_start=False)
        return [(notification.id, self.mapper.to_domain_event(notification)) for notification in notifications]

    def close(self) -> None:
        """Closes the connections."""
        self._writer.close()
        self.engine.dispose()

    def _world(self, connection: Connection) -> SqlWorld:
        published = self._open_publications(connection, self.mapper) if self._open_publications else None
        return SqlWorld(connection, self.mapper, self._models, self.vault, published, self._links)


class InlineProjection(Protocol):
    """A projection that is updated in the same transaction as the events it follows."""

    def apply(
        self,
        connection: Connection,
        recorded: Sequence[tuple[int, EntityEvent]],
        report_phase: ReportPhase | None = None,
        replaced: Mapping[str, StreamHead] | None = None,
    ) -> None:
        """Applies events, in log order; each comes with its position.

        replaced: the ends of their streams before the events, by tree key, if known.
        """

    def catch_up(self, connection: Connection) -> None:
        """Does what `apply` has left to do later."""


class WriteTransaction:
    """One write transaction, for any number of commands.

    Nothing is written before something has to be read by a query, or the transaction ends: then one statement for each
    table writes what all commands have appended. world: the registry as this transaction sees it.
    """

    def __init__(
        self, store: Store, connection: Connection, world: SqlWorld, inline: Sequence[InlineProjection] = ()
    ) -> None:
        self.store = store
        self.world = world
        self._connection = connection
        self._inline = inline
        self._earlier = UnwrittenEvents()  # of commands that cannot be undone any more
        self._current = UnwrittenEvents()
        self._is_attempt = self._has_savepoint = False
        self._failure: Exception | None = None
        row = sql.run(connection, _SELECT_START).fetchone()
        self.log_end = _log_end_of(row and row[:_LOG_END_WIDTH])
        world.attach(self.flush, self._unwritten_document)
        world.add_heads(store.heads.find(self.log_end.chain))
        if row:
            world.preload(*row[_LOG_END_WIDTH:])

    @property
    def connection(self) -> Connection:
        """The transaction's connection, once everything is written that was appended."""
        self.flush()
        return self._connection

    def context(
        self,
        caller: str = "anonymous",
        role: Role = Role.WRITER,
        *,
        dryrun: bool = False,
        may_read: Callable[[str], bool] = can_read_everything,
        link: str = "",
    ) -> Context:
        """A new interaction's time, never before the last one's, and its correlation id; a dry run uses no id."""
        now = self.store.clock()
        now = max(now, self.log_end.time or now)
        id = "" if dryrun else self.store.new_id(self.log_end.id, now)
        return Context(now, id, caller, role, self.store.domainvalidation, may_read, self.log_end.position, link)

    def attempt(self, operation: Callable[[], T], *, dryrun: bool = False) -> T | Exception:
        """The result of `operation`, or the exception that undid it; other commands of the transaction are unaffected.

        What `operation` has appended is usually not written yet, and then undoing it takes no statement.
        dryrun: `operation` is undone in any case, after it returned its result.
        Raises: the database's error when it cannot undo `operation`; then the whole transaction is rolled back.
        """
        self._keep()  # what was appended outside an attempt
        previous_end, self._is_attempt = self.log_end, True
        result: T | Exception
        try:
            result = operation()
        except Exception as error:
            if isinstance(error, driver_errors()) and not self._has_savepoint:
                self._failure = self._failure or error
            result = error
        if dryrun or isinstance(result, Exception):
            self._undo(previous_end)
        else:
            self._keep()
        self._is_attempt = self._has_savepoint = False
        return result

    def append(self, decision: Decision, context: Context, command: Command) -> Recorded:
        """Appends a decision as one interaction: documents, events, heads and hashes.

        Raises: IntegrityError when an event does not follow the last one of its stream.
        """
        if not decision.events:
            return _build_recorded((), decision, None, self.log_end.position, context)
        events = add_salts(decision.events, self.store.new_salt)
        if decision.secrets:
            self._start_writing()
            self.store.vault.apply(self._connection, decision.secrets)
        self.world.prefetch(event.xid for event in events)
        interaction = self._interaction(context, command, len(events))
        self.append_interaction(interaction, events, decision.documents, context.report_phase)
        if context.report_phase:
            self.flush(context.report_phase)
        recorded = tuple(enumerate(events, interaction.first))
        return _build_recorded(recorded, decision, context.xregcorrelationid or None, interaction.last, context)

    def append_interaction(
        self,
        interaction: Interaction,
        events: Sequence[EntityEvent],
        documents: Mapping[str, bytes],
        report_phase: ReportPhase | None = None,
    ) -> None:
        """Appends a whole interaction, which follows the log's end. interaction: without hashes.

        Raises: IntegrityError when an event does not follow the last one of its stream.
        """
        self._current.add_documents(documents)
        chain = hashes.ChainHasher(self.log_end.chain, interaction)
        counter = PhaseCounter(report_phase, "recorded", len(events))
        removed_hashes, added_hashes = [], []
        for position, event in enumerate(events, interaction.first):
            replaced = self.world.stream_head(event.xid)
            removed_hashes.append(replaced_hash(event, replaced))
            encoded = encode_event(event)
            chain.add(encoded.row(position), encoded.hash)
            added_hashes.append(encoded.counted_hash)
            self.world.add_event(event, position, encoded.hash)
            self._current.add_event(encoded, position, replaced)
            if self._current.count >= sql.CHUNK or self._current.size > sql.MAX_BLOB_BYTES:
                # The stored bytes of a whole import would not fit into memory next to its events.
                self._start_writing()
                self._current.write_log(self._connection, self.store.recorder)
            counter.add()
        state = hashes.update_state_hash(self.log_end.state, removed_hashes, added_hashes)
        interaction = interaction._replace(chain=chain.digest(state), state=state)
        self._current.add_interaction(interaction)
        time = parse_time(interaction.time)
        self.log_end = LogEnd(interaction.last, time, interaction.chain, state, interaction.xregcorrelationid)

    def flush(self, report_phase: ReportPhase | None = None) -> None:
        """Writes and projects everything that was appended.

        Raises: the database's error; then nothing of the transaction can be kept.
        """
        self._write(self._earlier)
        if self._current.recorded:
            self._start_writing()
            self._write(self._current, report_phase)

    def _write(self, unwritten: UnwrittenEvents, report_phase: ReportPhase | None = None) -> None:
        if self._failure:
            raise self._failure
        if not unwritten.recorded:
            return
        try:
            with sql.combining_writes(self._connection):
                unwritten.write_log(self._connection, self.store.recorder)
                for projection in self._inline:
                    projection.apply(self._connection, unwritten.recorded, report_phase, unwritten.replaced)
        except Exception as error:
            if unwritten is self._earlier or not self._has_savepoint:
                self._failure = error
            raise
        unwritten.clear_recorded()
        if not self._earlier.recorded and not self._current.recorded:
            self.world.set_written()

    def _start_writing(self) -> None:
        """Prepares for statements that belong to the current command, which may have to be undone."""
        if self._is_attempt and not self._has_savepoint:
            self._write(self._earlier)
            sql.run(self._connection, "SAVEPOINT attempt")
            self._has_savepoint = True

    def _keep(self) -> None:
        """Makes the current command one of the earlier ones."""
        if self._has_savepoint:
            sql.run(self._connection, "RELEASE SAVEPOINT attempt")
        self._earlier.extend(self._current)
        self._current = UnwrittenEvents()
        self.world.release()
        if self._earlier.count >= sql.CHUNK or self._earlier.size > sql.MAX_BLOB_BYTES:
            self._write(self._earlier)

    def _undo(self, previous_end: LogEnd) -> None:
        """Restores the state before the current command."""
        if self._has_savepoint:
            sql.run(self._connection, "ROLLBACK TO SAVEPOINT attempt")
            sql.run(self._connection, "RELEASE SAVEPOINT attempt")
        self._current = UnwrittenEvents()
        self.log_end = previous_end
        self.world.roll_back()

    def _unwritten_document(self, sha256: str) -> bytes | None:
        current = self._current.document(sha256)
        return self._earlier.document(sha256) if current is None else current

    def _interaction(self, context: Context, command: Command, events: int) -> Interaction:
        return Interaction(
            last=self.log_end.position + events,
            first=self.log_end.position + 1,
            xregcorrelationid=context.xregcorrelationid,
            folded=context.xregcorrelationid.casefold(),
            time=format_time(context.now),
            caller=storable_text(context.caller),
            command=storable_text(describe(command)),
            registry_url=self.store.public_url,
            chain=hashes.EMPTY_HASH,
            state=hashes.EMPTY_HASH,
            salt=self.store.new_salt(),
        )


def _build_recorded(
    events: tuple[tuple[int, EntityEvent], ...],
    decision: Decision,
    correlation_id: str | None,
    position: int,
    context: Context,
) -> Recorded:
    findings, number = decision.findings, decision.number
    return Recorded(events, decision.processed, correlation_id, position, context.now, findings=findings, number=number)


def _read_log_end(connection: Connection) -> LogEnd:
    return _log_end_of(sql.run(connection, _SELECT_LOG_END).fetchone())


def _log_end_of(row: Any) -> LogEnd:
    if row is None:
        return LogEnd()
    position, time, chain, state, id = row
    try:
        return LogEnd(position, parse_time(time), require_bytes(chain), require_bytes(state), str(id))
    except (TypeError, ValueError) as error:
        raise UnreadableEvent(f"the interaction that ends at position {position} cannot be read: {error}") from error


def storable_text(text: str) -> str:
    """The text in a form that both databases can store."""
    # PostgreSQL's text cannot hold NUL, and half a surrogate pair has no UTF-8 form.
    return text.replace("\0", "\\u0000").encode(errors="backslashreplace").decode()
