"""Connections to a store, set up so that a commit survives a power loss once it has returned."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, Final

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url

from annals.commands.store.database.checkpoints import AUTOCHECKPOINT_PAGES, KEPT_LOG_BYTES, Checkpointer
from annals.commands.store.database.outages import CommitUnconfirmed, UnwritableDatabase
from annals.commands.store.database.postgresql_hosts import names_several_hosts, rendered
from annals.commands.store.database.postgresql_requirements import require_usable
from annals.commands.store.database.store_file import StoreFile, existing_file
from annals.commands.store.database.write_turns import WriteTurns

#: Execution option of connections that write: their transactions start with the write lock.
WRITING: Final = "annals_writing"

_SQLITE_PRAGMAS: Final = (
    "PRAGMA busy_timeout = 60000",
    # Takes effect when the file is created. Keys are long; pages of twice the default size hold enough of them to save
    # a level of the B-tree.
    "PRAGMA page_size = 8192",
    "PRAGMA journal_mode = WAL",
    "PRAGMA foreign_keys = OFF",
    "PRAGMA cache_size = -16384",
    f"PRAGMA wal_autocheckpoint = {AUTOCHECKPOINT_PAGES}",
    f"PRAGMA journal_size_limit = {KEPT_LOG_BYTES}",
)
# LZ4 is four times as fast as PostgreSQL's own compression, and its values take a tenth more space. A large value is
# compressed under the write lock, once for each table. Servers before 14 and some builds do not have LZ4.
_SET_COMPRESSION: Final = (
    "SELECT set_config(name, 'lz4', false) FROM pg_settings"
    " WHERE name = 'default_toast_compression' AND 'lz4' = ANY (enumvals)"
)
# The table's own oid separates the locks of two registries in schemas of one database.
_TAKE_LOCK: Final = "SELECT pg_advisory_xact_lock('log'::regclass::oid::bigint)"
_BEGIN_WITH_LOCK: Final = f"BEGIN ISOLATION LEVEL READ COMMITTED; {_TAKE_LOCK}"
# Waits as long as on SQLite, unless the operator has set a time.
_BEGIN_WITH_LOCK_TIMEOUT: Final = (
    "BEGIN ISOLATION LEVEL READ COMMITTED;"
    " SELECT set_config('lock_timeout', '60s', true) WHERE current_setting('lock_timeout') = '0';"
    f" {_TAKE_LOCK}; SET LOCAL lock_timeout TO DEFAULT"
)
#: For every session. Where `standard_conforming_strings` is off, the driver doubles the backslashes of bytes, and COPY
#: stores both. By the other settings, the server notices a client whose host is gone, and frees its locks, as soon as
#: the client notices such a server (`_POSTGRESQL_OPTIONS`); by default it takes two hours. What the operator has set
#: stays.
_SESSION_SETTINGS: Final = (
    "SET standard_conforming_strings = on;"
    " SELECT set_config(name, value, false) FROM pg_settings JOIN (VALUES ('tcp_keepalives_idle', '30'),"
    " ('tcp_keepalives_interval', '10'), ('tcp_keepalives_count', '3'), ('tcp_user_timeout', '60000'))"
    " AS wanted (name, value) USING (name) WHERE source = 'default'"
)
# Every statement of the writer uses a key, so one plan serves all values: making a plan takes as long as many of the
# statements. Without sequential scans, a plan from the time when a table was empty uses the key too. Without costs of
# pages, the index that finds fewer rows wins over one whose rows lie side by side.
_WRITER_SETTINGS: Final = (
    "SET enable_seqscan = off; SET random_page_cost = 0; SET seq_page_cost = 0;"
    " SET plan_cache_mode = force_generic_plan; SET jit = off"
)
#: Commits that also wait for standbys stay as they are.
_DURABLE_COMMITS: Final = (
    "SELECT set_config('synchronous_commit', 'on', false)"
    " WHERE current_setting('synchronous_commit') IN ('off', 'local')"
)
#: SQLSTATE of a session that was ended because it was idle in a transaction, so before it got a COMMIT.
_SESSION_WAS_IDLE: Final = "25P03"
#: The function of PostgreSQL that makes a COMMIT wait for synchronous standbys. It says nothing but that a cancelled
#: statement or a timeout has ended the wait; the COMMIT then succeeds.
_WAIT_FOR_STANDBYS: Final = "SyncRepWaitForLSN"
_WITHOUT_STANDBYS: Final = (
    "the wait of a commit for the standbys was cancelled, so that what was written may be lost with the primary"
)
#: `PQTRANS_INTRANS` of libpq.
_IN_TRANSACTION: Final = 2
#: The key of a SQLite connection's `info` with a function to call after each commit.
_AFTER_COMMIT: Final = "annals_after_commit"
#: Execution option of the engine of a SQLite file: its `StoreFile`.
_FILE: Final = "annals_file"
_POSTGRESQL_OPTIONS: Final[dict[str, int | str]] = {
    # A server that accepts connections and then says nothing would keep requests waiting for minutes.
    "connect_timeout": 10,
    # A host that is gone would keep them waiting for a quarter of an hour, and for two hours once it has the statement.
    # Only the kernel of the host has to answer, so a statement may take as long as it needs.
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    # In milliseconds. Also how long a server may read nothing of a COPY in progress, for example when its disk is busy.
    "tcp_user_timeout": 60_000,
}


def open_engine(url: str, *, durable: bool = True) -> Engine:
    """The engine of a store at `sqlite:///annals.db` or `postgresql://...`.

    durable: False may lose recent commits when the machine fails; for benchmarks.
    Raises: ValueError for any other kind of database, and for SQLite in memory, which threads cannot share.
    """
    parsed = make_url(url)
    match parsed.get_backend_name():
        case "sqlite" if parsed.database not in (None, "", ":memory:"):
            return _open_sqlite(parsed, durable)
        case "postgresql":
            return _open_postgresql(parsed.set(drivername="postgresql+psycopg"), durable)
        case _:
            raise ValueError(f"a store is a SQLite file or a PostgreSQL database, not {parsed.render_as_string()}")


def postgresql_options(url: URL) -> dict[str, Any]:
    """Keyword arguments for each connection of the driver to PostgreSQL; what the URL has takes precedence.

    Of several hosts, the one that takes writes is used, unless the operator says otherwise: the driver would use the
    first one that answers, and after a failover that may be a standby.

    The encoding does not depend on the URL, nor on the settings of the database, the role or the environment: texts are
    sent as UTF-8 without a look at it, and a server that takes them for another encoding would convert them.
    """
    options = dict(_POSTGRESQL_OPTIONS)
    if names_several_hosts(url) and "PGTARGETSESSIONATTRS" not in os.environ:
        options["target_session_attrs"] = "read-write"
    own_options = {name: value for name, value in options.items() if name not in url.query}
    return {**own_options, "client_encoding": "UTF8"}


def driver_uri(url: URL) -> str:
    """The URI of a PostgreSQL database for the driver itself."""
    return rendered(url.set(drivername="postgresql"))


def set_session(connection: Any) -> None:
    """Gives a new connection of the driver to PostgreSQL the settings that all sessions need."""
    connection.execute(_SESSION_SETTINGS)


def require_writable(connection: Connection) -> None:
    """Checks that the database takes writes, by what PostgreSQL says with each answer; does nothing for SQLite.

    Cost: no statement. Servers before 14 do not say it, and count as writable. Raises: UnwritableDatabase.
    """
    if connection.dialect.name != "postgresql":
        return
    status = _driver(connection).info.parameter_status
    if status("in_hot_standby") == "on":
        raise UnwritableDatabase("the database is a standby")
    if status("default_transaction_read_only") == "on":
        raise UnwritableDatabase("the database is read-only")


def require_same_file(engine: Engine) -> None:
    """Checks that a SQLite file is still the one that was opened; cheap, and does nothing for PostgreSQL.

    Raises: StoreFileChanged.
    """
    file: StoreFile | None = engine.get_execution_options().get(_FILE)
    if file is not None:
        file.require_unchanged()


class WriterConnection:
    """The connection of a store's writer, for one thread at a time.

    It stays open, and its transactions begin and end through the driver, which takes a fraction of the time that a pool
    and SQLAlchemy's events take. SQLAlchemy's own methods work inside a transaction too.
    """

    def __init__(self, engine: Engine, turns: WriteTurns | None = None) -> None:
        """turns: those of the processes that write to one SQLite file."""
        self._engine = engine
        self._turns = turns
        self._connection: Connection | None = None
        self._has_given_up_standbys = False

    @contextmanager
    def transaction(self, *, limits_wait: bool = False) -> Iterator[Connection]:
        """A transaction with the write lock; it is durable when the block ends, undone when the block raises.

        limits_wait: on PostgreSQL, it waits a minute for the lock, and not as long as others hold it.
        Raises: StoreFileChanged; CommitUnconfirmed; the errors of the driver.
        """
        with self._turns.turn() if self._turns else nullcontext():
            require_same_file(self._engine)
            connection = self._begin(limits_wait)
            try:
                yield connection
                self._commit(connection)
            except BaseException:
                self._roll_back(connection)
                raise

    def close(self) -> None:
        """Closes the connection; another transaction would open it again."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.invalidate()
            connection.close()

    def _begin(self, limits_wait: bool) -> Connection:
        is_reused = self._connection is not None
        connection = self._connection or self._open()
        driver = _driver(connection)
        try:
            if connection.dialect.name == "sqlite":
                driver.execute("BEGIN IMMEDIATE")
            else:  # all statements in one round trip
                driver.execute(_BEGIN_WITH_LOCK_TIMEOUT if limits_wait else _BEGIN_WITH_LOCK, prepare=False)
        except Exception:
            is_broken = getattr(driver, "broken", False)
            self.close()
            if is_reused and is_broken:  # the server has closed it since the last transaction
                return self._begin(limits_wait)
            raise
        return connection

    def _open(self) -> Connection:
        connection = self._engine.connect()
        try:
            if connection.dialect.name == "postgresql":
                _driver(connection).autocommit = True  # the driver would begin transactions itself, in a round trip
                _driver(connection).execute(_WRITER_SETTINGS)
                self._has_given_up_standbys = False
                _driver(connection).add_notice_handler(self._note_notice)
        except BaseException:
            connection.invalidate()
            connection.close()
            raise
        self._connection = connection
        return connection

    def _commit(self, connection: Connection) -> None:
        if not _is_in_transaction(connection):
            raise RuntimeError("the database has undone the transaction, because a statement in it failed")
        driver = _driver(connection)
        try:
            if connection.in_transaction():  # by one of SQLAlchemy's methods
                connection.commit()
            else:
                driver.commit()
        except Exception as error:
            is_lost = getattr(driver, "closed", False)  # maybe after the server has committed
            if is_lost and getattr(getattr(error, "orig", error), "sqlstate", None) != _SESSION_WAS_IDLE:
                raise CommitUnconfirmed from error
            raise
        if self._has_given_up_standbys:
            self._has_given_up_standbys = False
            raise CommitUnconfirmed(_WITHOUT_STANDBYS)
        if after_commit := connection.info.get(_AFTER_COMMIT):
            after_commit()

    def _note_notice(self, notice: Any) -> None:
        # The message is translated, and its SQLSTATE is that of any warning. An error here would only be logged.
        if notice.source_function == _WAIT_FOR_STANDBYS:
            self._has_given_up_standbys = True

    def _roll_back(self, connection: Connection) -> None:
        try:
            if connection.in_transaction():
                connection.rollback()
            _driver(connection).rollback()
        except Exception:  # the error to report is the one before
            self.close()


def _driver(connection: Connection) -> Any:
    return connection.connection.driver_connection


def _is_in_transaction(connection: Connection) -> bool:
    """Whether a transaction is open and can be committed."""
    driver = _driver(connection)
    if connection.dialect.name == "sqlite":
        return bool(driver.in_transaction)
    return bool(driver.pgconn.transaction_status == _IN_TRANSACTION)


# `hide_parameters`: log lines show the errors of both databases, and parameters have documents and names of callers.


def _open_sqlite(url: URL, durable: bool) -> Engine:
    path = str(url.database)
    file = StoreFile(None if path.startswith("file:") else path, lambda: checkpoints.request())
    checkpoints = Checkpointer(lambda: sqlite3.connect(existing_file(path), uri=True, isolation_level=None), file)
    engine = create_engine(url, hide_parameters=True, execution_options={_FILE: file})

    @event.listens_for(engine, "do_connect")
    def connecting(*_: object) -> None:
        file.require_unchanged()

    @event.listens_for(engine, "connect")
    def connected(connection: Any, record: Any) -> None:
        record.info[_AFTER_COMMIT] = checkpoints.request
        # Python's driver would otherwise start transactions by itself, later than requested and without the lock.
        connection.isolation_level = None
        for statement in (*_SQLITE_PRAGMAS, f"PRAGMA synchronous = {'FULL' if durable else 'OFF'}"):
            connection.execute(statement)
        file.note_opened()

    @event.listens_for(engine, "begin")
    def begun(connection: Connection) -> None:
        writing = connection.get_execution_options().get(WRITING)
        if writing:
            file.require_unchanged()
        if not _is_in_transaction(connection):  # otherwise the writer's, which has begun
            connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")

    @event.listens_for(engine, "commit")
    def committing(connection: Connection) -> None:
        if connection.get_execution_options().get(WRITING):
            checkpoints.request()

    @event.listens_for(engine, "engine_disposed")
    def disposed(_: Engine) -> None:
        checkpoints.stop()
        file.forget()

    return engine


def _open_postgresql(url: URL, durable: bool) -> Engine:
    # READ COMMITTED: each statement sees what was committed before it, so a statement after the lock sees the last
    # writer.
    engine = create_engine(
        url,
        connect_args=postgresql_options(url),
        pool_pre_ping=True,
        isolation_level="READ COMMITTED",
        hide_parameters=True,
    )

    @event.listens_for(engine, "first_connect")
    def first_connected(connection: Any, _: object) -> None:
        require_usable(connection)

    @event.listens_for(engine, "connect")
    def connected(connection: Any, _: object) -> None:
        set_session(connection)
        connection.execute(_DURABLE_COMMITS if durable else "SET synchronous_commit = off")
        # A cached plan from the time when a table was empty scans the whole grown table until statistics are gathered.
        connection.execute("SET plan_cache_mode = force_custom_plan")
        connection.execute(_SET_COMPRESSION)
        connection.commit()

    return engine
