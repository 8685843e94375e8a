"""A damaged database page: a request that reads it gets 503, the server is not ready, and its log has one line."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest

from tests.support.postgres import stopped_server
from tests.support.registries.in_process import Api, create, serving
from tests.support.serving import annals
from tests.support.stores import server_of

DOCUMENT = b"document " * 100
PATHS = {
    "entity": "/dirs/d/files/f$details",
    "attribute": "/dirs/d/files?filter=name=n",
    "entity_history": "/dirs/d/files/f$details?asof=id1",
    "log": "/-/log",
    "interaction": "/-/interactions",
    "document": "/dirs/d/files/f",
}


def fill(url: str) -> None:
    create(url)
    with serving(url) as api:
        api.done("PUT", "/dirs/d/files/f", DOCUMENT)
        api.done("PATCH", "/dirs/d/files/f$details", {"name": "n"})


def overwrite(url: str, table: str, fault: bytes) -> None:
    """Overwrites the first page of a table or an index in a SQLite file."""
    file = Path(url.removeprefix("sqlite:///"))
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        [(page,)] = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,))
        [(size,)] = connection.execute("PRAGMA page_size")
    with file.open("r+b") as content:
        content.seek((page - 1) * size)
        content.write((fault * size)[:size])


@contextmanager
def one_line(caplog: pytest.LogCaptureFixture, reason: str) -> Iterator[None]:
    """Asserts that the block logs one error: a line about the store, without a traceback."""
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        yield
    [line] = caplog.records
    assert (line.name, line.levelname, line.exc_info) == ("annals.store", "ERROR", None)
    assert line.getMessage().startswith(f"the store cannot be used: {reason} (")
    assert "annals log verify" in line.getMessage()
    is_derived = reason == "its read model is damaged"  # from the log, so that no backup is needed
    assert line.getMessage().endswith(
        "`annals rebuild` makes it again from the log" if is_derived else "restore a backup"
    )


def check_damaged(api: Api, path: str, reason: str) -> None:
    """Asserts that a request that reads the damage gets 503 each time; the server is alive, and not ready."""
    for _ in range(3):
        answer = api.send("GET", path)
        assert (answer.status_code, answer.headers.get("retry-after")) == (503, "1"), answer.text
        assert answer.json()["type"].endswith("#store_unavailable")
        assert answer.json()["args"]["error_detail"] == reason
    ready = api.send("GET", "/-/readyz")
    assert (ready.status_code, ready.json()) == (
        503,
        {"status": "unavailable", "reason": f"the store cannot be used: {reason}"},
    )
    assert api.get("/-/livez") == {"status": "ok"}


@pytest.mark.parametrize("fault", [b"\0", b"garbage "], ids=["zeros", "garbage"])
@pytest.mark.parametrize("table", PATHS)
def test_pages_overwritten_while_the_server_runs(
    sqlite_url: str, table: str, fault: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    # ERR-1: the store is at fault, not the client, so the status is 503
    fill(sqlite_url)
    with serving(sqlite_url) as api:
        assert api.get("/-/readyz")["status"] == "ok"
        overwrite(sqlite_url, table, fault)
        with one_line(caplog, "its file is damaged"):
            check_damaged(api, PATHS[table], "its file is damaged")


@pytest.mark.parametrize("table", ["attribute", "entity_history", "log", "document"])
def test_pages_overwritten_before_the_server_starts(
    sqlite_url: str, table: str, caplog: pytest.LogCaptureFixture
) -> None:
    fill(sqlite_url)
    overwrite(sqlite_url, table, b"garbage ")
    with one_line(caplog, "its file is damaged"), serving(sqlite_url) as api:
        check_damaged(api, PATHS[table], "its file is damaged")


@pytest.mark.parametrize("table", ["entity", "interaction", "head"])
def test_a_failed_start_logs_its_reason(sqlite_url: str, table: str, tmp_path: Path) -> None:
    # the start reads these tables, so damage to them ends it, with one line on stderr
    fill(sqlite_url)
    overwrite(sqlite_url, table, b"garbage ")
    done = annals("serve", "--port", "0", "--database", sqlite_url, cwd=tmp_path)
    assert done.returncode == 3
    [line] = done.stderr.strip().splitlines()
    assert line.startswith("annals: the store cannot be used: its file is damaged (database disk image is malformed).")


def test_a_damaged_page_of_postgresql(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    # ERR-1: PostgreSQL detects changed bytes by its page checksums
    with server_of(tmp_path) as url:
        fill(url)
        with psycopg.connect(url, autocommit=True) as connection:
            [(name,)] = connection.execute("SELECT pg_relation_filepath('document')")
        with stopped_server(tmp_path) as data, (data / str(name)).open("r+b") as content:
            content.seek(8000)
            content.write(b"garbage")
        with one_line(caplog, "its data are damaged"), serving(url) as api:
            check_damaged(api, PATHS["document"], "its data are damaged")
