"""Stores for tests: `store_url` runs a test once on SQLite and once on PostgreSQL, each time on a new store.

With `shared_store_url` the tests of a module share one store of each database.

`tests/conftest.py` gives these fixtures to all tests.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import Connection, inspect

from tests.support.postgres import SHORT_LIVED, NoPostgres, shared_server

#: Set where no test may be left out because a server does not start.
WHOLE = "ANNALS_TEST_WHOLE"


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a PostgreSQL server; the test is skipped where none can be had."""
    own = tmp_path_factory.getbasetemp()
    with server_of(own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) as url:
        yield url


@contextmanager
def server_of(meeting: Path, *further: str) -> Iterator[str]:
    """The URL of a server for all who meet in a directory, with further settings; skips the test without one."""
    with ExitStack() as stack:
        try:
            url = stack.enter_context(shared_server(meeting, (*SHORT_LIVED, *further)))
        except NoPostgres as error:
            if os.environ.get(WHOLE):
                raise
            pytest.skip(str(error))
        yield url


@contextmanager
def schema_of(server: str) -> Iterator[str]:
    """An empty schema of its own, which is cheaper than a database and looks the same from inside."""
    schema = f"t{uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
        try:
            yield f"{server}?options=-csearch_path%3D{schema}"
        finally:
            _drop(connection, schema)


def _drop(connection: psycopg.Connection, schema: str) -> None:
    # A statement of a process that was killed goes on for a while, and may want the same tables in another order.
    for chance in reversed(range(10)):
        try:
            connection.execute(f"DROP SCHEMA {schema} CASCADE")
        except psycopg.errors.DeadlockDetected:
            if not chance:
                raise
        else:
            return


def analyze(connection: Connection) -> None:
    """Gives PostgreSQL's planner statistics of a store; SQLite plans without.

    Its own tables by name: without names a server's tables are locked one after another, those of other tests too,
    which are about to be dropped in another order.
    """
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"ANALYZE {', '.join(inspect(connection).get_table_names())}")


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """An empty schema of its own."""
    with schema_of(postgres_server) as url:
        yield url


@pytest.fixture
def quiet_postgres_url(tmp_path: Path) -> Iterator[str]:
    """A server of its own. Tables keep replaced rows as long as a writer, of whatever database, began before they were
    replaced: CLUSTER and VACUUM FULL copy them."""
    meeting = tmp_path / "server"
    meeting.mkdir()
    with server_of(meeting, "autovacuum=off") as url:
        yield url


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """A file that is not there yet."""
    return f"sqlite:///{tmp_path / 'annals.db'}"


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest) -> str:
    """The URL of an empty store, on each database in turn."""
    return str(request.getfixturevalue("sqlite_url" if request.param == "sqlite" else "postgres_url"))


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def shared_store_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The same for all tests of a module."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path_factory.mktemp('shared') / 'annals.db'}"
        return
    with schema_of(request.getfixturevalue("postgres_server")) as url:
        yield url
