"""What a PostgreSQL database needs: UTF-8, and sessions of its own for each connection; and TLS, if it is wanted."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx
import psycopg
import pytest

from annals.api.cli.outcome import ExitCode
from tests.support.certificates import Authority
from tests.support.pgbouncer import pgbouncer
from tests.support.polling import until
from tests.support.postgres import SETTING, unprivileged
from tests.support.serving import annals as annals_process
from tests.support.serving import serving
from tests.support.stores import database_of, server_of

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


def test_a_server_with_tls(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parameters of the URL hold for each connection: those of the writer, of readers, and of what follows."""
    monkeypatch.delenv(SETTING, raising=False)
    other = Authority(folder, "other").certificate
    with _tls_server(folder) as (url, authority):
        verified, unknown = (f"{url}?sslmode=verify-full&sslrootcert={root}" for root in (authority, other))
        with serving(verified, folder, PGSSLMODE="disable") as served:
            httpx.put(f"{served.url}/schemagroups/g", json={"name": "Group"}).raise_for_status()
            until(lambda: httpx.get(f"{served.url}/-/search?q=group").raise_for_status().json()["count"])
            assert _connections(url, "ssl") > _connections(url, "NOT ssl") == 0
        ended = annals_process("log", "verify", "--database", unknown, cwd=folder)
        assert (ended.returncode, "certificate verify failed" in ended.stderr) == (ExitCode.STORE, True)


@contextmanager
def _tls_server(folder: Path) -> Iterator[tuple[str, Path]]:
    """The URL of a server with a certificate, and that of its authority."""
    with TemporaryDirectory(prefix="annals-tls-") as shared:  # the server's account cannot read the folders of tests
        authority = Authority(Path(shared))
        issued = authority.issue("server", "/CN=server", "IP:127.0.0.1")
        if account := unprivileged():
            for file in (shared, *issued):
                shutil.chown(file, account)
        settings = ("ssl=on", f"ssl_cert_file={issued.certificate}", f"ssl_key_file={issued.key}")
        with server_of(folder, *settings) as url:
            yield url, authority.certificate


def _connections(url: str, condition: str) -> int:
    """How many other connections a server has, with TLS or without."""
    select = (
        "SELECT count(*) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)"
        f" WHERE {condition} AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
    )
    with psycopg.connect(url) as connection:
        count: int = connection.execute(select.encode()).fetchall()[0][0]
    return count
