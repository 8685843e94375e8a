"""Which segments are merged, so that few remain."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Final

import psycopg
import pytest
from sqlalchemy import create_engine

from annals.domain.model.builtin import default_source
from annals.domain.search.query import parse_query
from annals.projections.database.drivers import Database
from annals.projections.search import tables
from annals.projections.search.index_reader import IndexReader
from annals.projections.search.search import search
from annals.projections.search.segments import FAN_OUT, IDLE_FAN_OUT, Segment, all_segments, mergeable
from annals.projections.search.tables import METADATA, find_position
from tests.support.registries.in_process import create, serving
from tests.support.search_index import index_writer, scan, write_pending


def _segments(*sizes: int) -> list[Segment]:
    lows = [sum(sizes[:number]) + 1 for number in range(len(sizes))]
    return [Segment(low, low + size - 1, size) for low, size in zip(lows, sizes, strict=True)]


#: Sizes of segments, and the list indexes of those that are merged next.
CASES: Final = [
    ((), ()),
    ((100,), ()),
    ((100, 20, 3), ()),
    ((1,) * FAN_OUT, range(FAN_OUT)),
    ((100, *((1,) * FAN_OUT)), range(1, FAN_OUT + 1)),
    ((1, 100), (0, 1)),
    ((400_000, 200_000, 200_000), ()),
    ((61_440,) * FAN_OUT, range(8)),
    ((400_000, *((200_000,) * FAN_OUT)), (1, 2)),
]


@pytest.mark.parametrize(("sizes", "places"), CASES)
def test_mergeable(sizes: tuple[int, ...], places: tuple[int, ...]) -> None:
    segments = _segments(*sizes)
    assert list(mergeable(segments)) == [segments[place] for place in places]


def test_fewer_are_merged_while_nothing_is_written() -> None:
    segments = _segments(100, *((1,) * IDLE_FAN_OUT))
    assert list(mergeable(segments, IDLE_FAN_OUT)) == segments[1:]
    assert not mergeable(segments[:-1], IDLE_FAN_OUT)


def test_a_segment_is_written_again_when_half_of_it_is_gone() -> None:
    (segment,) = _segments(10)
    assert list(mergeable([segment._replace(gone=5)])) == []
    assert list(mergeable([segment._replace(gone=6)])) == [segment._replace(gone=6)]


def test_changes_leave_few_segments(store_url: str) -> None:
    """An entity that changes many times takes the space of one entity."""
    create(store_url, default_source())
    with serving(store_url) as api, index_writer(store_url) as writer:
        for number in range(40):
            api.done("PUT", "/schemagroups/g", {"name": f"name{number}"})
            api.done("PUT", f"/schemagroups/g{number % 3}", {})
            write_pending(writer)
        api.done("DELETE", "/schemagroups/g2")
        write_pending(writer)
        with writer.readers.view() as view:
            segments = all_segments(view.database)
            assert len(segments) <= 2 * FAN_OUT
            assert sum(segment.size - segment.gone for segment in segments) == 3
            query = parse_query("name39")
            found = search(IndexReader(view.database), query, 10)
            assert [result.key for result in found.results] == scan(view, query) != []


def test_an_index_of_many_segments_is_read(store_url: str) -> None:
    """Those of tens of millions of entities, here without entities but for the first one."""
    create(store_url, default_source())
    with serving(store_url) as api, index_writer(store_url) as writer:
        api.done("PUT", "/schemagroups/g", {"name": "apple"})
        write_pending(writer)
        engine = create_engine(store_url)
        with engine.begin() as connection:
            rows = [{"low": number, "high": number, "size": 1} for number in range(1_000, 1_600)]
            connection.execute(tables.segment.insert(), rows)
        engine.dispose()
        with writer.readers.view() as view:
            found = search(IndexReader(view.database), parse_query("apple"), 10)
            assert [result.key for result in found.results] == scan(view, parse_query("apple")) != []


def test_events_that_arrive_meanwhile_wait(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """UI-105: one `catch_up` writes all events so far and reports no more; events during it wait for the next one."""
    create(store_url, default_source())
    with serving(store_url) as api, index_writer(store_url) as writer:
        write_pending(writer)
        api.done("PUT", "/schemagroups/early", {})
        with writer.readers.view() as view:
            head = view.position()

        def write_after_a_commit() -> AbstractContextManager[Database]:
            monkeypatch.undo()
            api.done("PUT", "/schemagroups/late", {})
            return writer.store.writing()

        # `catch_up` begins its only transaction after it has read the log.
        monkeypatch.setattr(writer.store, "writing", write_after_a_commit)
        assert not writer.catch_up()
        with writer.readers.view() as view:
            assert find_position(view.database) == head < view.position()
        assert not writer.catch_up()
        with writer.readers.view() as view:
            assert find_position(view.database) == view.position()


def test_tables_in_use_are_not_packed(postgres_url: str) -> None:
    create(postgres_url, default_source())
    with (
        serving(postgres_url) as api,
        index_writer(postgres_url) as writer,
        psycopg.connect(postgres_url) as connection,
    ):
        api.done("POST", "/schemagroups", {f"g{number}": {"description": "Number"} for number in range(10)})
        write_pending(writer)
        connection.execute("SELECT FROM search_block")
        writer.write_all()
        with writer.readers.view() as view:
            assert len(search(IndexReader(view.database), parse_query("number"), 100).results) == 10


def test_deleted_entities_are_not_counted(store_url: str) -> None:
    """UI-104: the count is exact, also while segments still contain many deleted entities."""
    create(store_url, default_source())
    with serving(store_url) as api, index_writer(store_url) as writer:
        groups = {f"g{number:04}": {"description": "found" if number % 5 < 3 else "other"} for number in range(4000)}
        api.done("POST", "/schemagroups", groups)
        write_pending(writer)
        api.done("DELETE", "/schemagroups", {f"g{number:04}": {} for number in range(4000) if number % 5 < 2})
        write_pending(writer)
        with writer.readers.view() as view:
            assert sum(segment.gone for segment in all_segments(view.database)) == 1600
            # The index has few rows: on PostgreSQL, a row takes more space than the words of an entity.
            assert sum(view.database.one(f"SELECT count(*) FROM {name}")[0] for name in METADATA.tables) < 400
            found = search(IndexReader(view.database), parse_query("found"), 10)
            assert (found.count, found.more) == (800, False)
