"""Several processes write one index: none brings back what another one has replaced. A damaged index is rewritten."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from typing import Any, Final

import pytest
from sqlalchemy import create_engine

from annals.domain.model.builtin import default_source
from annals.domain.search.query import parse_query
from annals.projections.database.drivers import Database
from annals.projections.search import segments, tables
from annals.projections.search.blocks import encode_rows
from annals.projections.search.index_reader import IndexReader
from annals.projections.search.index_writer import PAGE_SIZE, IndexWriter
from annals.projections.search.search import search
from tests.support.registries.in_process import Api, create, serving
from tests.support.search_index import index_writer, scan, write_pending

QUERY: Final = parse_query("number")
SCHEMA: Final = {"format": "Avro/1.11", "schema": {"type": "record", "name": "R", "fields": []}}


def _make_groups(api: Api, count: int) -> None:
    api.done("POST", "/schemagroups", {f"g{number:04}": {"description": "Number"} for number in range(count)})


def _assert_equals_scan(writer: IndexWriter) -> None:
    write_pending(writer)
    with writer.readers.view() as view:
        expected, index = scan(view, QUERY), IndexReader(view.database)
        found, after = list[Any](), None
        while True:
            page = search(index, QUERY, 100, after)
            found += [result.key for result in page.results]
            if (after := page.next) is None:
                break
        assert found == expected
        assert index.position() == view.position()


@pytest.mark.parametrize("is_cleared", [False, True], ids=["start", "clear"])
def test_another_process_during_the_first_fill(store_url: str, is_cleared: bool) -> None:
    """UI-105: a server that starts during a fill drops nothing; if a process clears the index, the fill restarts."""
    create(store_url, default_source())
    engine = create_engine(store_url.replace("postgresql:", "postgresql+psycopg:", 1))
    with serving(store_url) as api, index_writer(store_url) as writer:
        _make_groups(api, 2 * PAGE_SIZE + 1)
        progress: list[int] = []

        def interrupt(done: int, total: int) -> None:
            progress.append(done)
            if len(progress) == 1:
                with engine.begin() as connection:
                    tables.create(connection)
                if is_cleared:
                    with writer.store.writing() as db:
                        tables.clear(db)

        writer.write_all(interrupt)
        is_restarted = progress[1] <= progress[0]
        assert is_restarted == is_cleared
        _assert_equals_scan(writer)
    engine.dispose()


def test_another_process_during_changes(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """UI-105: an entity is not in the index twice, although two processes write the same change of it."""
    create(store_url, default_source())
    with serving(store_url) as api, index_writer(store_url) as writer, index_writer(store_url) as other:
        _make_groups(api, 3)
        write_pending(writer)
        api.done("PUT", "/schemagroups/g0001", {"description": "Number, changed"})

        def write_after_another() -> AbstractContextManager[Database]:
            monkeypatch.undo()
            other.write_all()
            return writer.store.writing()

        # `catch_up` begins its only transaction after it has read the index.
        monkeypatch.setattr(writer.store, "writing", write_after_another)
        assert writer.catch_up()
        _assert_equals_scan(writer)


def test_what_stays_the_same_is_not_written_again(store_url: str) -> None:
    """UI-105: a Group gets an epoch with each Resource, and a Version its successor; a search finds them by texts."""
    create(store_url, default_source())
    with serving(store_url) as api, index_writer(store_url) as writer:
        _make_groups(api, 10)
        api.done("PUT", "/schemagroups/g/schemas/s$details", SCHEMA)
        write_pending(writer)
        api.done("PUT", "/schemagroups/g/schemas/t$details", SCHEMA)
        api.done("POST", "/schemagroups/g/schemas/s$details", SCHEMA)
        write_pending(writer)
        assert _size(writer) == (14, 0)  # the first Groups, g, s, t and the first Version of s
        api.done("PATCH", "/schemagroups/g", {"name": "Number"})
        _assert_equals_scan(writer)
        assert _size(writer) == (15, 1)


def _size(writer: IndexWriter) -> tuple[int, int]:
    """How many entities have been written, and how many of these have changed since."""
    with writer.readers.view() as view:
        found = segments.all_segments(view.database)
    return sum(segment.size for segment in found), sum(segment.gone for segment in found)


def test_a_merge_that_another_process_has_made(store_url: str) -> None:
    """A merge does not replace a segment of the same range that another process has merged in between."""
    create(store_url, default_source())
    with serving(store_url) as api, index_writer(store_url) as writer:
        _make_groups(api, 10)
        write_pending(writer)
        api.done("DELETE", "/schemagroups", {f"g{number:04}": {} for number in range(6)})
        assert not writer.catch_up()
        with writer.readers.view() as view:
            merged = segments.merge_segments(view.database, segments.all_segments(view.database))
        api.done("DELETE", "/schemagroups/g0006")
        write_pending(writer)
        with writer.store.writing() as db:
            assert not segments.replace(db, merged)
        _assert_equals_scan(writer)


def test_a_killed_rebuild_leaves_nothing_stale(store_url: str) -> None:
    """UI-105: if another process writes during a rebuild that is killed, the rebuild leaves no outdated entities."""
    create(store_url, default_source())
    with serving(store_url) as api, index_writer(store_url) as writer:
        _make_groups(api, 3)
        api.done("PUT", "/schemagroups/g0000/schemas/s$details", SCHEMA)
        write_pending(writer)

        def check(checks: Iterable[Any], load: Any) -> Mapping[Any, Any]:
            api.done("DELETE", "/schemagroups/g0001")
            write_pending(writer)
            return writer.check(checks, load)

        def kill(done: int, total: int) -> None:
            raise KeyboardInterrupt

        with suppress(KeyboardInterrupt):
            replace(writer, check=check).write_all(kill)
        _assert_equals_scan(writer)


#: Damage of the index: a table, and the new data of its blocks.
DAMAGE: Final = [
    ("search_block", b"x"),
    ("search_gone", b"x"),
    ("search_key", b"x"),
    ("search_key", encode_rows([(0, b"\xff")])),
    ("search_text", b"x"),
    ("search_text", encode_rows([])[:-1] + b"x"),
]


@pytest.mark.parametrize(("table", "data"), DAMAGE)
def test_a_damaged_index_is_written_again(store_url: str, table: str, data: bytes) -> None:
    create(store_url, default_source())
    with serving(store_url) as api, index_writer(store_url) as writer:
        _make_groups(api, 3)
        write_pending(writer)
        api.done("PUT", "/schemagroups/g0001", {"description": "Numbers"})
        write_pending(writer)
        with writer.store.writing() as db:
            db.run(f"UPDATE {table} SET data = ?", (data,))
        writer.write_all()
        _assert_equals_scan(writer)


def test_keys_that_are_no_text(sqlite_url: str) -> None:
    create(sqlite_url, default_source())
    with serving(sqlite_url) as api, index_writer(sqlite_url) as writer:
        _make_groups(api, 1)
        write_pending(writer)
        with writer.store.writing() as db:
            db.run("UPDATE search_key SET data = ?", (encode_rows([(0, b"\xff")]),))
        with writer.readers.view() as view, pytest.raises(tables.UnreadableIndex, match="keys"):
            search(IndexReader(view.database), QUERY, 1)


def test_a_position_that_is_no_number(sqlite_url: str) -> None:
    create(sqlite_url, default_source())
    with serving(sqlite_url) as api, index_writer(sqlite_url) as writer:
        _make_groups(api, 3)
        write_pending(writer)
        with writer.store.writing() as db:
            db.run("UPDATE projection SET position = 'x' WHERE name = 'search'")
        writer.write_all()
        _assert_equals_scan(writer)
