"""Databases without a store: only `serve` and `import` create one, and not among the tables of another program."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from annals.api.cli.outcome import ExitCode
from tests.support.console import Annals
from tests.support.serving import annals as annals_process

VERBS = {
    "export": "export -o night.json",
    "rebuild": "rebuild",
    "upgrade": "upgrade",
    "segments": "segments write --folder seg",
    "verify": "log verify",
    "archive": "log archive",
    "subscriptions": "subscriptions list",
    "links": "replicate list",
    "keys": "keys list",
    "secrets": "secrets rotate",
}
CREATORS = {"import": "import data.json", "serve": "serve --port 0"}


@pytest.fixture(params=["customers", "store"])
def foreign(request: pytest.FixtureRequest, folder: Path) -> Path:
    """A database of another program; `store` is also the name of a table here."""
    file = folder / "f.db"
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"CREATE TABLE {request.param} (a)")
    return file


@pytest.mark.parametrize("verb", [*VERBS.values(), *CREATORS.values()], ids=[*VERBS, *CREATORS])
def test_a_foreign_database_is_refused_and_stays_as_it_is(
    foreign: Path, folder: Path, annals: Annals, verb: str
) -> None:
    (folder / "night.json").write_text("a good export")
    (folder / "data.json").write_text('{"schemagroups": {"g": {}}}')
    content = foreign.read_bytes()
    ended = annals(*verb.split(), "--database", "sqlite:///f.db")
    assert (ended.code, ended.out, ended.err.count("\n")) == (ExitCode.STORE, "", 1)
    assert ended.err.startswith("annals: f.db has tables of another program, such as ")
    assert foreign.read_bytes() == content
    assert {path.name for path in folder.iterdir()} == {"f.db", "night.json", "data.json"}
    assert (folder / "night.json").read_text() == "a good export"


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_an_empty_file_is_no_store(folder: Path, annals: Annals, verb: str) -> None:
    (folder / "e.db").touch()
    ended = annals(*verb.split(), "--database", "sqlite:///e.db")
    assert (ended.code, ended.out) == (ExitCode.STORE, "")
    assert ended.err == "annals: there is no store in e.db; `annals serve` or `annals import` creates one.\n"
    assert (folder / "e.db").read_bytes() == b""


def test_an_import_creates_a_store_in_an_empty_file(folder: Path, annals: Annals) -> None:
    (folder / "e.db").touch()
    (folder / "data.json").write_text('{"schemagroups": {"g": {}}}')
    assert annals("import", "data.json", "--database", "sqlite:///e.db").code == ExitCode.DONE
    assert annals("log", "verify", "--database", "sqlite:///e.db").code == ExitCode.DONE


def test_a_schema_of_postgresql_without_a_store(postgres_url: str, folder: Path) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE store (id bigint)")
        for verb in ("export -o night.json", "upgrade", "log verify"):
            ended = annals_process(*verb.split(), "--database", postgres_url, cwd=folder)
            assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (ExitCode.STORE, "", 1)
            assert "annals: there is no store in postgresql://" in ended.stderr
        connection.execute("DROP TABLE store")
        tables = "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema()"
        assert connection.execute(tables).fetchone() == (0,)
        # PostgreSQL keeps programs apart in other ways, so a table of another program does not matter
        connection.execute("CREATE TABLE customers (a text)")
    (folder / "data.json").write_text('{"schemagroups": {"g": {}}}')
    assert annals_process("import", "data.json", "--database", postgres_url, cwd=folder).returncode == ExitCode.DONE
    assert annals_process("log", "verify", "--database", postgres_url, cwd=folder).returncode == ExitCode.DONE
