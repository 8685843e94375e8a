"""What a PostgreSQL database needs: UTF-8, and sessions of its own for each connection."""

from __future__ import annotations

from pathlib import Path

import httpx
import psycopg
import pytest

from annals.api.cli.outcome import ExitCode
from tests.support.pgbouncer import pgbouncer
from tests.support.serving import annals as annals_process
from tests.support.serving import serving
from tests.support.stores import database_of

NOT_UTF8 = (
    "annals: the database has the encoding {encoding}, and a store needs UTF8; "
    "create a database with ENCODING 'UTF8' for it.\n"
)
NO_SESSIONS = (
    "annals: a connection pooler gives several connections one session of the database, and a store needs a session "
    "for each; set the pooler to session mode, or connect to the database itself.\n"
)


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
@pytest.mark.parametrize("verb", ["serve --port 0", "import data.json"])
def test_another_encoding_than_utf8(postgres_server: str, encoding: str, verb: str, folder: Path) -> None:
    """SER-10: the registry's texts are UTF-8, and the log hashes these bytes."""
    (folder / "data.json").write_text('{"schemagroups": {"g": {}}}')
    with database_of(postgres_server, f"ENCODING '{encoding}' TEMPLATE template0 LOCALE 'C'") as url:
        ended = annals_process(*verb.split(), "--database", url, cwd=folder)
        assert (ended.returncode, ended.stderr) == (ExitCode.STORE, NOT_UTF8.format(encoding=encoding))


def test_clients_that_prefer_another_encoding(postgres_server: str, folder: Path) -> None:
    """SER-10: answers have the texts of requests and the names of callers, and the log stays as it was hashed."""
    with database_of(postgres_server) as url:
        with psycopg.connect(url) as connection:
            connection.execute(f"ALTER DATABASE {connection.info.dbname} SET client_encoding = 'LATIN1'".encode())
        callers = '{"t": {"name": "jürgen", "role": "admin"}}'
        with (
            serving(url, folder, ANNALS_TOKENS=callers, PGCLIENTENCODING="LATIN1") as served,
            httpx.Client(base_url=served.url, headers={"authorization": "Bearer t"}) as client,
        ):
            written = client.post("/compat/confluent/subjects/s%C3%BC/versions", json={"schema": '"string"'})
            assert written.status_code == 200
            assert client.get("/compat/confluent/subjects").json() == ["sü"]
            assert client.get("/-/interactions").json()[-1]["caller"] == "jürgen"
        verified = annals_process("log", "verify", "--database", url, cwd=folder, PGCLIENTENCODING="LATIN1")
        assert (verified.returncode, verified.stderr) == (ExitCode.DONE, "")


@pytest.mark.parametrize(
    ("pool_mode", "expected"), [("session", (ExitCode.DONE, "")), ("transaction", (ExitCode.STORE, NO_SESSIONS))]
)
def test_a_connection_pooler(
    postgres_server: str, pool_mode: str, expected: tuple[ExitCode, str], folder: Path
) -> None:
    """A store has prepared statements, settings and locks of sessions."""
    (folder / "data.json").write_text('{"schemagroups": {"g": {}}}')
    with database_of(postgres_server) as database, pgbouncer(database, pool_mode) as url:
        ended = annals_process("import", "data.json", "--database", url, cwd=folder)
    assert (ended.returncode, ended.stderr) == expected
