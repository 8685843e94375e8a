"""Stores for tests: `store_url` runs a test once on SQLite and once on PostgreSQL, each time on a new store.

With `shared_store_url` the tests of a module share one store on each database.

`tests/conftest.py` makes these fixtures available to all tests.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import Connection, inspect, make_url

from tests.support.postgres import SHORT_LIVED, NoPostgres, shared_server

#: The environment variable that forbids to skip tests because a program is missing or a server does not start.
WHOLE = "ANNALS_TEST_WHOLE"


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a PostgreSQL server; skips the test if none is available."""
    own = tmp_path_factory.getbasetemp()
    with server_of(own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) as url:
        yield url


@contextmanager
def server_of(meeting: Path, *further: str) -> Iterator[str]:
    """The URL of the server that processes with a directory share; skips the test without one. further: settings."""
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
    """The URL of a new, empty schema, which is cheaper than a new database and behaves the same."""
    schema = f"t{uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}")
        try:
            yield f"{server}?options=-csearch_path%3D{schema}"
        finally:
            _drop(connection, schema)


@contextmanager
def database_of(server: str, options: str = "") -> Iterator[str]:
    """The URL of a new, empty database. options: of CREATE DATABASE."""
    name = f"t{uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} {options}".encode())
        try:
            yield make_url(server).set(database=name).render_as_string(hide_password=False)
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def _drop(connection: psycopg.Connection, schema: str) -> None:
    # A statement of a killed process runs on for a while, and may lock the same tables in another order.
    for chance in reversed(range(10)):
        try:
            connection.execute(f"DROP SCHEMA {schema} CASCADE")
        except psycopg.errors.DeadlockDetected:
            if not chance:
                raise
        else:
            return


def analyze(connection: Connection) -> None:
    """Updates the statistics of a store for PostgreSQL's planner; SQLite needs none.

    Names the tables of the store: without names, ANALYZE also locks the tables of other tests, which may be dropped at
    the same time in another order.
    """
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"ANALYZE {', '.join(inspect(connection).get_table_names())}")


def lose_commits(connection: Connection) -> None:
    """Makes PostgreSQL close the connection of each transaction during its commit, if it has stored a document."""
    connection.exec_driver_sql(
        "CREATE FUNCTION leave() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END'"
    )
    connection.exec_driver_sql(
        "CREATE CONSTRAINT TRIGGER leave AFTER INSERT ON document DEFERRABLE INITIALLY DEFERRED"
        " FOR EACH ROW EXECUTE FUNCTION leave()"
    )


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """The URL of a new, empty schema."""
    with schema_of(postgres_server) as url:
        yield url


@pytest.fixture
def quiet_postgres_url(tmp_path: Path) -> Iterator[str]:
    """The URL of an empty schema on a server for this test alone. While any transaction on a server is older than the
    replacement of rows, tables keep the replaced rows: CLUSTER and VACUUM FULL copy them."""
    meeting = tmp_path / "server"
    meeting.mkdir()
    with server_of(meeting, "autovacuum=off") as url:
        yield url


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The URL of a SQLite file that does not exist yet."""
    return f"sqlite:///{tmp_path / 'annals.db'}"


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest) -> str:
    """The URL of an empty store, on each database in turn."""
    return str(request.getfixturevalue("sqlite_url" if request.param == "sqlite" else "postgres_url"))


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def shared_store_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a store that all tests of a module share, on each database in turn."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path_factory.mktemp('shared') / 'annals.db'}"
        return
    with schema_of(request.getfixturevalue("postgres_server")) as url:
        yield url
