"""Empty stores to measure on: SQLite files, and schemas of the PostgreSQL server that the tests use."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import psycopg

from tests.support import serving as served
from tests.support.postgres import NoPostgres, shared_server

#: A registry in a process that shares nothing with others.
serving = partial(served.serving, within=("env",))


@dataclass(frozen=True, slots=True)
class Place:
    """A kind of store; `fresh()` gives the URL of an empty one and a folder for files."""

    name: str
    fresh: Callable[[], AbstractContextManager[tuple[str, Path]]]


@contextmanager
def places() -> Iterator[tuple[list[Place], str]]:
    """The kinds of store that can be had, and a word about one that cannot."""
    with TemporaryDirectory(prefix="annals-bench-") as folder:
        sqlite = Place("SQLite", _sqlite)
        try:
            with shared_server(Path(folder)) as server:
                yield [sqlite, Place("PostgreSQL", lambda: _postgresql(server))], ""
        except NoPostgres as error:
            yield [sqlite], str(error)


@contextmanager
def _sqlite() -> Iterator[tuple[str, Path]]:
    with TemporaryDirectory(prefix="annals-bench-") as folder:
        yield f"sqlite:///{folder}/annals.db", Path(folder)


@contextmanager
def _postgresql(server: str) -> Iterator[tuple[str, Path]]:
    schema = f"bench{uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection, TemporaryDirectory(prefix="annals-bench-") as folder:
        connection.execute(f"CREATE SCHEMA {schema}")
        yield f"{server}?options=-csearch_path%3D{schema}", Path(folder)
        connection.execute(f"DROP SCHEMA {schema} CASCADE")
