"""A server finds a write within a second, one of several servers writes the index, and a rebuild creates it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

import httpx
import psycopg
import pytest
from sqlalchemy import create_engine

from annals.projections.search.index_follower import IDLE_SECONDS
from annals.projections.search.segments import FAN_OUT, IDLE_FAN_OUT
from annals.projections.search.tables import METADATA
from tests.support.polling import until
from tests.support.serving import annals, serving

pytestmark = pytest.mark.timeout(300)

#: Seconds for the median of several writes, and for a single one. UI-105 wants one second of a machine that is not busy
#: with other tests.
WITHIN: Final = 5.0
PATIENCE: Final = 60.0
SCHEMA: Final = {
    "format": "Avro/1.11",
    "schema": {"type": "record", "name": "R", "fields": [{"name": "orderTotal", "type": "int"}]},
}


def _found(url: str, query: str) -> list[str]:
    answer = httpx.get(f"{url}/-/search", params={"q": query}).raise_for_status()
    return [result["xid"] for result in answer.json()["results"]]


def _put(url: str, path: str, body: Any) -> int:
    """Writes, and returns the position of the write."""
    answer = httpx.put(f"{url}{path}", json=body, timeout=30).raise_for_status()
    return int(answer.headers["annals-position"])


def test_a_write_is_found_by_each_server(store_url: str, tmp_path: Path) -> None:
    # UI-105
    with ExitStack() as stack:
        urls = []
        for number in range(2):
            (tmp_path / str(number)).mkdir()
            urls.append(stack.enter_context(serving(store_url, tmp_path / str(number))).url)
        for number, url in enumerate(urls):
            seconds = []
            for id in (f"s{number}-{write}" for write in range(5)):
                _put(url, f"/schemagroups/g/schemas/{id}$details", SCHEMA)
                start = time.monotonic()
                until(partial(_is_found_at, urls, f"/schemagroups/g/schemas/{id}"), PATIENCE)
                seconds.append(time.monotonic() - start)
            assert median(seconds) < WITHIN, seconds


def test_another_server_writes_on(store_url: str, tmp_path: Path) -> None:
    """If the server that writes the index is killed, another one continues."""
    for number in range(2):
        (tmp_path / str(number)).mkdir()
    with ExitStack() as stack:
        first = stack.enter_context(serving(store_url, tmp_path / "0"))
        _put(first.url, "/schemagroups/first", {})
        until(lambda: _found(first.url, "first"))
        second = stack.enter_context(serving(store_url, tmp_path / "1"))
        first.process.kill()
        first.process.wait(30)
        _put(second.url, "/schemagroups/second", {})
        until(lambda: _found(second.url, "second"))


def test_an_idle_server_merges_more(store_url: str, tmp_path: Path) -> None:
    """UI-106: a search reads each segment, so a server that has nothing else to write merges more of them."""
    with serving(store_url, tmp_path) as served:
        for number in range(IDLE_FAN_OUT + 2):
            _put(served.url, f"/schemagroups/g{number}", {})
            until(partial(_found, served.url, f"g{number}"))
        until(lambda: _segment_count(store_url) < IDLE_FAN_OUT, IDLE_SECONDS + 60)
        assert len(_found(served.url, "g")) == IDLE_FAN_OUT + 2


def test_an_idle_server_packs(quiet_postgres_url: str, tmp_path: Path) -> None:
    """An idle server frees the space on PostgreSQL of rows that merges have replaced."""
    with (
        serving(quiet_postgres_url, tmp_path) as served,
        psycopg.connect(quiet_postgres_url, autocommit=True) as connection,
    ):
        _write_several_segments(served.url)
        files = _files(connection)
        until(lambda: _files(connection).isdisjoint(files), IDLE_SECONDS + 60)
        time.sleep(1)  # so that all tables are packed
        assert _bytes(connection) == _packed_bytes(connection)


def test_a_rebuild_packs(quiet_postgres_url: str, tmp_path: Path) -> None:
    """A rebuild frees the space of rows that it has replaced, if no server writes the index."""
    with serving(quiet_postgres_url, tmp_path) as served:
        _write_several_segments(served.url)
    with psycopg.connect(quiet_postgres_url, autocommit=True) as connection:
        ended = annals("rebuild", "--database", quiet_postgres_url, cwd=tmp_path)
        assert ended.returncode == 0, ended.stderr
        assert _bytes(connection) == _packed_bytes(connection)


def _write_several_segments(url: str) -> None:
    for part in range(FAN_OUT + 1):
        groups = {f"g{number * 31 % 2003}": {"description": f"Number {number}"} for number in range(60 * part + 60)}
        httpx.post(f"{url}/schemagroups", json=groups, timeout=30).raise_for_status()
        until(partial(_found, url, f"number {60 * part + 59}"))


def _files(connection: psycopg.Connection[Any]) -> set[int]:
    """The files of the tables of the index."""
    select = "SELECT pg_relation_filenode(name::regclass) FROM unnest(%s::text[]) AS name"
    found = connection.execute(select, [[*METADATA.tables]])
    return {file for (file,) in found}


def _bytes(connection: psycopg.Connection[Any]) -> dict[str, int]:
    """The bytes of each table of the index with its indexes."""
    size = "SELECT pg_relation_size('{0}') + pg_indexes_size('{0}')"
    return {name: connection.execute(size.format(name)).fetchall()[0][0] for name in METADATA.tables}


def _packed_bytes(connection: psycopg.Connection[Any]) -> dict[str, int]:
    connection.execute(f"VACUUM FULL {', '.join(METADATA.tables)}")
    return _bytes(connection)


@pytest.mark.parametrize("loss", ["", "UPDATE projection SET position = 1 WHERE substr(name, 1, 6) = 'search'", "DROP"])
def test_an_existing_store_gets_an_index(store_url: str, tmp_path: Path, loss: str) -> None:
    # UI-105
    with serving(store_url, tmp_path) as served:
        _put(served.url, "/schemagroups/g/schemas/s$details", SCHEMA)
        until(lambda: _found(served.url, "ordertotal"))
    engine = create_engine(store_url.replace("postgresql:", "postgresql+psycopg:", 1))
    with engine.begin() as connection:
        drops = [f"DROP TABLE search_{name}" for name in ("segment", "gone", "block", "key", "text")]
        for statement in drops if loss == "DROP" else filter(None, [loss]):
            connection.exec_driver_sql(statement)
    engine.dispose()
    with serving(store_url, tmp_path) as served:
        until(lambda: _found(served.url, "ordertotal") == ["/schemagroups/g/schemas/s"])


def test_rebuild(store_url: str, tmp_path: Path) -> None:
    """`annals rebuild` rewrites a damaged index while a server runs."""
    with serving(store_url, tmp_path) as served:
        _put(served.url, "/schemagroups/g/schemas/s$details", SCHEMA)
        until(lambda: _found(served.url, "ordertotal"))
        until(lambda: _is_lost(store_url, served.url, "ordertotal"))
        ended = annals("rebuild", "--database", store_url, cwd=tmp_path)
        assert ended.returncode == 0, ended.stderr
        until(lambda: _found(served.url, "ordertotal") == ["/schemagroups/g/schemas/s"])


def test_a_server_repairs(store_url: str, tmp_path: Path) -> None:
    """A server rewrites a damaged index as soon as it finds the damage, here at the next write."""
    with serving(store_url, tmp_path) as served:
        _put(served.url, "/schemagroups/g/schemas/s$details", SCHEMA)
        until(lambda: _found(served.url, "ordertotal"))
        _run(store_url, "UPDATE search_block SET data = substr(data, 2)")
        _put(served.url, "/schemagroups/g/schemas/s$details", SCHEMA | {"name": "Second"})
        until(lambda: _finds_again(served.url, "second ordertotal"))


def _finds_again(url: str, query: str) -> bool:
    answer = httpx.get(f"{url}/-/search", params={"q": query})
    return answer.status_code == 200 and answer.json()["count"] == 1


def _segment_count(url: str) -> int:
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:", 1))
    with engine.begin() as connection:
        count: int = connection.exec_driver_sql("SELECT count(*) FROM search_segment").scalar_one()
    engine.dispose()
    return count


def _is_found_at(urls: Sequence[str], xid: str) -> bool:
    return all(xid in _found(url, "ordertotal") for url in urls)


def _is_lost(database: str, url: str, words: str) -> bool:
    """Deletes the words; returns whether a search finds nothing. A merge that has read them may write them again."""
    _lose_words(database)
    return not _found(url, words)


def _lose_words(url: str) -> None:
    _run(url, "DELETE FROM search_block")


def _run(url: str, statement: str) -> None:
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:", 1))
    with engine.begin() as connection:
        connection.exec_driver_sql(statement)
    engine.dispose()
