"""The store and the only way to write its log: under one lock, with the events of many commands together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock

from sqlalchemy import Connection, event, make_url

from annals.commands.store.append import NewSalt, SaltGenerator
from annals.commands.store.caches import KnownStateCache, LinkCache, ModelCache
from annals.commands.store.clock import Clock, utc_now
from annals.commands.store.correlation_ids import NewId, NextId, UlidGenerator, adapt_new_id
from annals.commands.store.damage import DamageMonitor
from annals.commands.store.database import registry_url, sql, tables
from annals.commands.store.database.engine import WRITING, WriterConnection, open_engine, require_writable
from annals.commands.store.database.known_log_end import known_log_end
from annals.commands.store.database.migrations import (
    SELECT_SCHEMA,
    BeginStep,
    UpgradeStep,
    ignore_step,
    require_current,
    require_no_newer,
    require_readable,
    upgrade,
)
from annals.commands.store.database.write_turns import WriteTurns
from annals.commands.store.log_end import LogEnd, read_log_end
from annals.commands.store.mapper import EventMapper
from annals.commands.store.recorder import LogRecorder
from annals.commands.store.secrets import Vault
from annals.commands.store.sql_world import SqlWorld
from annals.commands.store.write_transaction import InlineProjection, WriteTransaction
from annals.domain.compat.publications import Publications
from annals.domain.confluent.schema_index import SchemaIndex
from annals.domain.confluent.subjects import DEFAULT_CONTEXT_IDS, ContextIds
from annals.domain.decisions.world import DomainValidation
from annals.domain.model import Model
from annals.domain.registry.events import EntityEvent

#: Opens the lookup of publications for decisions, on the connection of a write transaction.
OpenPublications = Callable[[Connection, EventMapper], Publications]
#: Opens the lookup of schemas for decisions, on the connection of a write transaction.
OpenSchemas = Callable[[Connection], SchemaIndex]


class Store:
    """A log with its heads, interactions and documents, in a SQLite file or a PostgreSQL database.

    public_url: recorded with each interaction as the registry's URL at that time. domainvalidation: the effect of rules
    beyond the model. context_ids: which Groups stand for contexts of Confluent's API. vault: encrypts and decrypts
    secret values; one without keys does neither. open_publications: opens the lookup of publications for decisions; a
    store without it has none. open_schemas: the same for the versions that Confluent's API shows. write_turns: those
    of the processes that write to one SQLite file.
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
        context_ids: ContextIds = DEFAULT_CONTEXT_IDS,
        vault: Vault | None = None,
        open_publications: OpenPublications | None = None,
        open_schemas: OpenSchemas | None = None,
        write_turns: WriteTurns | None = None,
    ) -> None:
        self.engine = open_engine(url, durable=durable)
        self._known_end = known_log_end(make_url(url))
        if self.engine.dialect.name == "postgresql":
            event.listen(self.engine, "connect", lambda connection, _: self._known_end.check_new(connection))
        self.recorder = LogRecorder(self.engine)
        #: The damage that any part of the process has found.
        self.damage = DamageMonitor()
        self.mapper = EventMapper()
        self.clock = clock
        self.new_id: NextId = adapt_new_id(new_id) if new_id else UlidGenerator()
        self.new_salt: NewSalt = new_salt or SaltGenerator()
        self.vault = vault or Vault()
        self._open_publications = open_publications
        self._open_schemas = open_schemas
        self.public_url = public_url
        self.domainvalidation: DomainValidation = domainvalidation
        self.context_ids = context_ids
        self._writer = WriterConnection(self.engine, write_turns)
        self._models = ModelCache()
        self._links = LinkCache()
        self.known_state = KnownStateCache()
        # Threads of this process queue here, in order; with the database's own lock, waiters poll or pay a round trip.
        self._lock = Lock()

    def create(self, begin_step: BeginStep = ignore_step) -> Sequence[UpgradeStep]:
        """Creates the tables that do not exist yet, and upgrades those of an older program; returns the steps of that.

        begin_step: called before each step, since a large store keeps one of them busy for a while.
        Raises: UnusableSchema, and changes nothing, when no steps lead from the store's schema to this program's.
        """
        with self.engine.execution_options(**{WRITING: True}).begin() as connection:
            if connection.dialect.name == "postgresql":
                sql.run(connection, "SELECT pg_advisory_xact_lock(hashtext('annals'))")
            tables.METADATA.create_all(connection)
            sql.insert(connection, tables.store, [("schema", tables.SCHEMA)], "ON CONFLICT DO NOTHING")
            return upgrade(connection, begin_step)

    def require_readable(self) -> None:
        """Raises: UnusableSchema unless this program can read the log, for callers that do not `create` the store."""
        with self.engine.begin() as connection:
            require_readable(connection)

    def require_current(self) -> None:
        """Raises: UnusableSchema unless the store has all tables of this program, for callers that write to it."""
        with self.engine.begin() as connection:
            require_current(connection)

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
    def writing(
        self, inline: Sequence[InlineProjection] = (), *, limits_wait: bool = False
    ) -> Iterator[WriteTransaction]:
        """A transaction that holds the write lock; it is durable when the context ends, undone when it raises.

        inline: the projections of what it appends. limits_wait: see `WriterConnection.transaction`.
        """
        with self._lock:
            with self._writer.transaction(limits_wait=limits_wait) as connection:
                transaction = WriteTransaction(self, connection, self._world(connection), inline)
                position, chain = transaction.log_end.position, transaction.log_end.chain
                self._known_end.check_end(connection.connection.driver_connection, position, chain)
                self._known_end.note(position, chain)
                try:
                    yield transaction
                    transaction.flush()
                finally:
                    transaction.world.detach()
            self._known_end.note(transaction.log_end.position, transaction.log_end.chain)
            self.known_state.put(transaction.log_end.chain, transaction.world.known_state)

    @property
    def last_model(self) -> Model | None:
        """The model that was compiled last; another one may be in force by now. None before the first write."""
        return self._models.last

    def load_model(self) -> None:
        """Compiles the model in force, so that `last_model` knows it before the first write."""
        with self.engine.begin() as connection:
            _ = self._world(connection).model

    def log_end(self, *, for_writing: bool = False) -> LogEnd:
        """The end of the committed log.

        for_writing: also checks that the database takes writes of this release. Raises: LogEndLost if the process has
        read more of it; StoreUpgraded; UnwritableDatabase.
        """
        with self.engine.begin() as connection:
            self._known_end.check(connection.connection.driver_connection)
            end = read_log_end(connection)
            if for_writing:
                require_no_newer(sql.scalar(connection, SELECT_SCHEMA))
                require_writable(connection)
        self._known_end.note(end.position, end.chain)
        return end

    def events(self, after: int, limit: int) -> list[tuple[int, EntityEvent]]:
        """Committed events after a position, each with its own position."""
        notifications = self.recorder.select_notifications(after, limit, inclusive_of_start=False)
        return [(notification.id, self.mapper.to_domain_event(notification)) for notification in notifications]

    def close(self) -> None:
        """Closes the connections."""
        self._writer.close()
        self.engine.dispose()
        self._known_end.forget()

    def _world(self, connection: Connection) -> SqlWorld:
        published = self._open_publications(connection, self.mapper) if self._open_publications else None
        schemas = self._open_schemas(connection) if self._open_schemas else None
        return SqlWorld(connection, self.mapper, self._models, self.vault, published, self._links, schemas)
