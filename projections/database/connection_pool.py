"""Read connections that the threads of a process share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from threading import BoundedSemaphore, Lock, Timer
from typing import Any, Final, TypeVar

from annals.projections.database.connections import ReadConnection, connect
from annals.projections.database.drivers import PostgresDatabase, ReadOnlyDatabase, SqliteDatabase, Values

T = TypeVar("T")
#: Number of unused connections that stay open.
KEPT: Final = 2
#: Seconds after which further unused ones are closed, because other clients of the server may need them.
SURPLUS_SECONDS: Final = 10.0


class ConnectionPool:
    """A limited number of connections to one database. A thread that finds all of them in use waits for one."""

    def __init__(self, url: str, limit: int) -> None:
        self._url = url
        self._free = BoundedSemaphore(limit)
        self._lock = Lock()
        self._idle: list[ReadConnection] = []
        self._is_closed = False
        self._surplus_timer: Timer | None = None

    def run(self, read: Callable[[ReadConnection], T]) -> T:
        """The result of reading with a connection. May read twice, see `use`."""
        with self._free:
            reader, result = self._begin(read)
            self._give_back(reader)
            return result

    @contextmanager
    def use(self, begin: Callable[[ReadConnection], AbstractContextManager[T]]) -> Iterator[T]:
        """What `begin` yields with a connection, which nothing else uses in the block.

        If the server has closed the connection since its last use, `begin` is called again with a new one.
        """

        def enter(reader: ReadConnection) -> tuple[AbstractContextManager[T], T]:
            manager = begin(reader)
            return manager, manager.__enter__()

        with self._free:
            reader, (manager, value) = self._begin(enter)
            with ExitStack() as stack:
                stack.callback(self._give_back, reader)
                stack.push(manager)
                yield value

    def close(self) -> None:
        """Closes the connections, those in use as soon as they are not."""
        self._is_closed = True
        self._close_idle(0)

    def _begin(self, read: Callable[[ReadConnection], T]) -> tuple[ReadConnection, T]:
        """A connection with the result of the first read on it."""
        with self._lock:
            reused = self._idle.pop() if self._idle else None
        reader = reused or connect(self._url)
        try:
            return reader, read(reader)
        except Exception:
            self._give_back(reader)
            if reused is None or reader.is_open:
                raise
        # A server that is restarted, or a proxy, has probably closed the other connections too.
        self._close_idle(0)
        return self._begin(read)

    def _give_back(self, reader: ReadConnection) -> None:
        if not reader.is_open:
            return
        with self._lock:
            self._idle.append(reader)
            if not self._is_closed and len(self._idle) > KEPT and self._surplus_timer is None:
                self._surplus_timer = Timer(SURPLUS_SECONDS, self._close_idle, (KEPT,))
                self._surplus_timer.daemon = True
                self._surplus_timer.start()
        if self._is_closed:
            self._close_idle(0)

    def _close_idle(self, kept: int) -> None:
        """Closes unused connections except those that were used last."""
        with self._lock:
            if self._surplus_timer is not None:
                self._surplus_timer.cancel()
                self._surplus_timer = None
            surplus = self._idle[: max(0, len(self._idle) - kept)]
            del self._idle[: len(surplus)]
        for reader in surplus:
            reader.close()


class LatestDatabase(ReadOnlyDatabase):
    """A `Database` for reading that uses a connection of a pool for each statement, so each sees the latest commit."""

    def __init__(self, pool: ConnectionPool, driver: type[PostgresDatabase] | type[SqliteDatabase]) -> None:
        super().__init__(driver)
        self._pool = pool

    def one(self, sql: str, values: Values = ()) -> Any:
        return self._pool.run(lambda reader: reader.one(sql, values))

    def look_up(self, sql: str, values: Sequence[str | int] = ()) -> Any:
        return self._pool.run(lambda reader: reader.look_up(sql, values))

    def all(self, sql: str, values: Values = ()) -> list[Any]:
        return self._pool.run(lambda reader: reader.all(sql, values))

    def stream(self, sql: str, values: Values = ()) -> Iterator[Any]:
        return iter(self.all(sql, values))
