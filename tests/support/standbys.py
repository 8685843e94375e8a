"""A PostgreSQL primary and its streaming standby, for tests that stop and promote them."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from tests.support.left_out import leave_out
from tests.support.polling import until
from tests.support.ports import free_port
from tests.support.postgres import NoPostgres, run, unprivileged


class Node:
    """One server. Its database is `postgres`, of the user `postgres`."""

    def __init__(self, home: Path, name: str) -> None:
        self.port = free_port()
        self._home, self._data = home, home / name

    @property
    def url(self) -> str:
        """Its own URL."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def create(self) -> None:
        """Makes an empty cluster."""
        run("initdb", "-D", self._data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync", home=self._home)

    def copy(self, primary: Node) -> None:
        """Makes a standby of a running primary."""
        source = f"{primary.url}?application_name=standby"
        run("pg_basebackup", "-D", self._data, "-R", "-c", "fast", "--no-sync", "-d", source, home=self._home)

    def start(self) -> None:
        given = (
            "listen_addresses=127.0.0.1",
            f"port={self.port}",
            f"unix_socket_directories={self._home}",
            "fsync=off",
        )
        options = " ".join(f"-c {setting}" for setting in given)
        self._control("start", "-l", self._home / f"{self._data.name}.log", "-o", options)

    def stop(self) -> None:
        """Ends it and all its connections."""
        self._control("stop", "-m", "immediate")

    def catch_up(self, primary: Node, function: str = "pg_last_wal_replay_lsn") -> None:
        """Waits until this standby has everything that a primary has committed; function: says how far it is."""
        with psycopg.connect(primary.url) as source, psycopg.connect(self.url, autocommit=True) as copy:
            end = source.execute("SELECT pg_current_wal_insert_lsn()").fetchone()
            until(lambda: copy.execute(f"SELECT {function}() >= %s".encode(), end).fetchone() == (True,))

    def promote(self) -> None:
        """Makes a primary of a standby."""
        self._control("promote")

    @property
    def is_running(self) -> bool:
        return (self._data / "postmaster.pid").exists()

    def _control(self, action: str, *options: str | Path) -> None:
        run("pg_ctl", "-D", self._data, "-w", *options, action, home=self._home)


@contextmanager
def primary_and_standby() -> Iterator[tuple[Node, Node]]:
    """Both are running; skips the test without PostgreSQL."""
    home = Path(tempfile.mkdtemp(prefix="annals-postgres-"))  # PostgreSQL does not run as root
    if as_user := unprivileged():
        shutil.chown(home, as_user)
    primary, standby = Node(home, "primary"), Node(home, "standby")
    try:
        try:
            primary.create()
            primary.start()
            standby.copy(primary)
            standby.start()
        except NoPostgres as error:
            leave_out(str(error))
        yield primary, standby
    finally:
        for node in (standby, primary):
            if node.is_running:
                node.stop()
        shutil.rmtree(home, ignore_errors=True)


def url_of(*nodes: Node, options: str = "") -> str:
    """The URL that names all the servers in an order."""
    hosts, ports = ",".join("127.0.0.1" for _ in nodes), ",".join(str(node.port) for node in nodes)
    return f"postgresql://postgres@/postgres?host={hosts}&port={ports}{options}"
