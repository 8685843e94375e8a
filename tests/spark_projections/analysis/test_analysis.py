"""The tables for analysts: they contain the same as the log, the read model and the audit trail."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from annals.commands.store.clock import format_time
from annals.commands.store.hashes import NO_INTERACTION, LogRow
from annals.commands.store.mapper import EventMapper, after_image, stored_state
from annals.domain.registry.events import EntityEvent
from annals.projections.audit.entity_diff import diff_entity, unless_deleted
from annals.projections.entities.rows import EntityRow
from annals.projections.log.table_rows import LogTableRow, log_row, table_rows
from annals.spark_projections.analysis import TABLES
from annals.spark_projections.analysis.changes import changes
from annals.spark_projections.analysis.deprecations import deprecations
from annals.spark_projections.analysis.entity_rows import live_events, rows_of_events
from annals.spark_projections.analysis.events import events, interactions
from annals.spark_projections.analysis.states import entities, entities_history
from annals.spark_projections.analysis.versions import versions
from annals.spark_projections.log_schema import LOG_SCHEMA
from tests.spark_projections.served_registry import log_rows
from tests.support.registries.history import History
from tests.support.registries.recorded import Registry

Row = tuple[Any, ...]

BIG = "9" * 1500


VERSION_TIMES = {"createdat": "2025-01-01T00:00:00Z", "modifiedat": "2025-01-02T00:00:00Z"}
META_TIMES = {"createdat": "2024-01-01T00:00:00Z", "modifiedat": "2025-01-03T00:00:00.5Z"}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterable[Registry]:
    """Entities of every type, also outside the tree, deletions, and an id that is created again in another case."""
    with Registry(f"sqlite:///{tmp_path_factory.mktemp('filled') / 'annals.db'}") as registry:
        registry.record(("/", {"registryid": "r"}), ("/model", {"model": {}}), ("/subscriptions/s", {"id": "s"}))
        registry.record(
            ("/dirs/a", {"dirid": "a", "labels": {"a.b": "é\x00", "n": "1"}}),
            ("/dirs/a/files/f", {"fileid": "f", **VERSION_TIMES, "meta": {"epoch": 1, **META_TIMES}}),
            ("/dirs/a/files/f/versions/v", {"versionid": "v", "tags": [1, 2.50], "doc": "0" * 64}),
        )
        registry.record(("/dirs/a", {"dirid": "a", "labels": {"n": "2", "a.b": "é\x00"}}))
        registry.record(
            ("/dirs/a/files/f/versions/v", {"versionid": "v", "tags": [2, 1], "doc": "1" * 64}), refresh=True
        )
        registry.record(("/dirs/a", None), ("/dirs/a/files/f", None), ("/dirs/a/files/f/versions/v", None))
        registry.record(("/dirs/A", {"dirid": "A"}), ("/subscriptions/s", {"id": "s", "paused": True}))
        yield registry


@pytest.fixture(scope="module")
def log(spark: SparkSession, filled: Registry) -> DataFrame:
    """The log of `filled`."""
    return table(spark, log_rows(filled.url))


def table(spark: SparkSession, rows: Iterable[LogTableRow]) -> DataFrame:
    return spark.createDataFrame([tuple(row) for row in rows], LOG_SCHEMA)


def sorted_rows(table: DataFrame, *columns: str) -> list[Row]:
    """The rows of some columns, sorted."""
    return sorted((tuple(row) for row in table.select(*columns).collect()), key=str)


def table_of(history: History) -> list[LogTableRow]:
    """A log built by hand, as a table."""
    rows, first = list[LogTableRow](), 1
    for last in history.ends:
        events = history.recorded[first - 1 : last]
        facts = NO_INTERACTION._replace(first=first, last=last, time=format_time(events[0][1].time), caller="ann")
        stored = (
            LogRow(at, each.stream, each.revision, each.TOPIC, stored_state(each, after_image(each)))
            for at, each in events
        )
        rows += table_rows(facts, stored)
        first = last + 1
    return rows


# --- states ----------------------------------------------------------------------------------------------------------

_STATE = ("xid", "type", "parent", "id", "epoch", "attributes", "document", "since", "until")


def states(registry: Registry) -> list[Row]:
    """Every row that the read model itself has, present and past."""
    living, past, _ = registry.tables()
    width = len(EntityRow._fields)
    whole = [(EntityRow._make(row[:width]), *(row[width:] or (None,))) for row in (*living, *past)]
    return sorted(((*(getattr(row, name) for name in _STATE[:-1]), until) for row, until in whole), key=str)


# P-14: Spark computes the same rows as the projection that each request updates
def test_states_are_those_of_the_read_model(log: DataFrame, filled: Registry) -> None:
    assert sorted_rows(entities_history(log), *_STATE) == states(filled)


# ENT-60: the read model has the times only in the attributes
def test_states_have_their_own_times(log: DataFrame, filled: Registry) -> None:
    living, past, _ = filled.tables()
    rows = [EntityRow._make(row[: len(EntityRow._fields)]) for row in (*living, *past)]
    found = sorted_rows(rows_of_events(live_events(log)), "xid", "since", "createdat", "modifiedat")
    assert found == sorted(((row.xid, row.since, *row.times) for row in rows), key=str)
    assert {tuple(times) for xid, _, *times in found if xid == "/dirs/a/files/f"} == {tuple(META_TIMES.values())}


# FLAG-80: at a position within an interaction, entities are as they were before the interaction
@pytest.mark.parametrize("asof", [None, 0, 7, 10])
def test_entities_as_of_a_position(log: DataFrame, filled: Registry, asof: int | None) -> None:
    ends = filled.history.ends
    then = max((end for end in ends if end <= (ends[-1] if asof is None else asof)), default=0)
    expected = [row[:-1] for row in states(filled) if row[-2] <= then and (row[-1] is None or row[-1] > then)]
    assert sorted_rows(entities(log, asof), *_STATE[:-1]) == sorted(expected, key=str)


# --- facts -----------------------------------------------------------------------------------------------------------


def decoded(rows: Iterable[LogTableRow]) -> list[tuple[LogTableRow, EntityEvent]]:
    return [(row, EventMapper().event_of_row(log_row(row))) for row in rows]


def test_events_are_those_of_the_log(log: DataFrame, filled: Registry) -> None:
    expected = [
        (row.position, event.xid, event.type, type(event).__name__[6:].lower(), event.epoch, event.revision)
        for row, event in decoded(log_rows(filled.url))
    ]
    assert sorted_rows(events(log), "position", "xid", "type", "kind", "epoch", "revision") == sorted(expected, key=str)


def test_interactions_are_those_of_the_log(log: DataFrame, filled: Registry) -> None:
    expected = {(row.first, row.last, row.last - row.first + 1, row.command, row.chain) for row in log_rows(filled.url)}
    rows = sorted_rows(interactions(log), "first", "last", "events", "command", "chain")
    assert rows == sorted(expected, key=str)


@pytest.mark.parametrize(
    ("xid", "owners"),
    [
        ("/", (None, None)),
        ("/model", (None, None)),
        ("/subscriptions/s", (None, None)),
        ("/dirs/A", ("/dirs/A", None)),
        ("/dirs/a/files/f", ("/dirs/a", "/dirs/a/files/f")),
        ("/dirs/a/files/f/versions/v", ("/dirs/a", "/dirs/a/files/f")),
    ],
)
def test_whose_an_entity_is(log: DataFrame, xid: str, owners: Row) -> None:
    rows = events(log).where(f"xid = '{xid}'").select("groupxid", "resourcexid").distinct()
    assert [tuple(row) for row in rows.collect()] == [owners]


def test_an_event_of_a_newer_program_is_not_passed_over(spark: SparkSession, filled: Registry) -> None:
    newer = [row._replace(topic="EntityMoved:1") if row.position == 4 else row for row in log_rows(filled.url)]
    with pytest.raises(Exception, match="EntityMoved:1 is unknown"):
        events(table(spark, newer)).collect()


def test_a_damaged_event_is_not_passed_over(spark: SparkSession, filled: Registry) -> None:
    damaged = [row._replace(state=row.state[:-9]) if row.position == 4 else row for row in log_rows(filled.url)]
    with pytest.raises(Exception, match="MALFORMED_RECORD"):
        events(table(spark, damaged)).collect()


# SER-13: the log may have numbers of any length
def test_values_that_spark_would_stumble_over(spark: SparkSession) -> None:
    history = History()
    history.record(("/dirs/a", {"dirid": "a", "deprecated": {"x": BIG}, "deep": deep(200)}))
    rows = [row._replace(state=row.state.replace(f'"{BIG}"', BIG)) for row in table_of(history)]
    log = table(spark, rows)
    assert sorted_rows(events(log), "xid") == [("/dirs/a",)]
    assert sorted_rows(deprecations(log), "xid") == [("/dirs/a",)]
    assert ("deprecated", None, f'{{"x":{BIG}}}') in sorted_rows(changes(log), "path", "before", "after")


def deep(levels: int) -> Any:
    return [deep(levels - 1)] if levels else []


# --- changes ---------------------------------------------------------------------------------------------------------


# FLAG-84: the same differences as between the moments before and after each event
def test_changes_are_those_of_the_audit_trail(log: DataFrame, filled: Registry) -> None:
    expected, last = [], dict[str, EntityEvent]()
    for row, event in decoded(log_rows(filled.url)):
        for each in diff_entity(unless_deleted(last.get(row.stream)), unless_deleted(event)):
            expected += [(row.position, "attribute", value.path) for value in each.values]
            expected += [(row.position, "document", "")] * (each.documents[0] != each.documents[1])
        last[row.stream] = event
    assert sorted_rows(changes(log), "position", "of", "path") == sorted(expected, key=str)


def test_a_change_has_its_values_as_json(log: DataFrame) -> None:
    rows = changes(log).where("position IN (7, 8)")
    assert sorted_rows(rows, "position", "kind", "of", "path", "before", "after", "caller") == [
        (7, "updated", "attribute", "labels.n", '"1"', '"2"', "anonymous"),
        (8, "refreshed", "attribute", "doc", f'"{"0" * 64}"', f'"{"1" * 64}"', "anonymous"),
        (8, "refreshed", "attribute", "tags", "[1,2.5]", "[2,1]", "anonymous"),
        (8, "refreshed", "document", "", f'"{"0" * 64}"', f'"{"1" * 64}"', "anonymous"),
    ]


# --- lives -----------------------------------------------------------------------------------------------------------


def version(**attributes: Any) -> dict[str, Any]:
    return {"versionid": "v", "isdefault": True, "deprecated": "never", **attributes}


def test_each_life_of_a_version_has_its_last_attributes(spark: SparkSession) -> None:
    v, history = "/dirs/a/files/f/versions/v", History()
    history.record(
        (v, version(format="x/1")), ("/dirs/a/files/f/versions/w", version(createdat="2020-06-30T23:59:60Z"))
    )
    history.record((v, version(format="x/2", compatibilityvalidated=False, createdat="2020-01-01T00:00:00Z")))
    history.record((v, None))
    history.record((f"{v[:-1]}V", version(format="x/3")))
    rows = versions(table(spark, table_of(history)))
    columns = ("born", "gone", "xid", "versionid", "format", "compatibilityvalidated", "year(createdat)", "reason")
    assert sorted(map(tuple, rows.selectExpr(*columns).collect())) == [
        (1, 4, v, "v", "x/2", False, 2020, "deleted"),
        (2, None, "/dirs/a/files/f/versions/w", "w", None, None, None, None),
        (5, None, f"{v[:-1]}V", "V", "x/3", None, None, None),
    ]


_FILE = "/dirs/a/files/f"


def file(**meta: Any) -> dict[str, Any]:
    return {"fileid": "f", "meta": {"fileid": "f", **meta}}


# ENT-65: `{}` deprecates as well; EV-68: a deprecation may start with the entity's creation, and ends with its deletion
def test_each_deprecation_has_its_start_and_end(spark: SparkSession) -> None:
    history = History()
    history.record(("/", {"deprecated": {"removal": "x"}}), ("/dirs/a", {"dirid": "a", "deprecated": {}}))
    history.record((_FILE, file()), (f"{_FILE}/versions/v", version()))
    history.record((_FILE, file(deprecated={"removal": "2030-01-01T00:00:00Z", "more": 1})))
    history.record((_FILE, file(deprecated={"removal": "2031-01-01T00:00:00Z", "alternative": "http://b"})))
    history.record(
        (_FILE, file(labels={"a": "b"}, deprecated={"removal": "2031-01-01T00:00:00Z", "alternative": "http://b"}))
    )
    history.record((_FILE, file()))
    history.record((_FILE, file(deprecated={})))
    history.record((_FILE, None), ("/dirs/a", {"dirid": "a", "deprecated": {}, "name": "A"}))
    history.record((_FILE, file(deprecated={"removal": "9999-12-31T23:59:60Z"})))
    rows = deprecations(table(spark, table_of(history)))
    columns = ("deprecated", "withdrawn", "removed", "xid", "year(removal)", "alternative", "deprecated_caller")
    assert sorted(map(tuple, rows.selectExpr(*columns).collect())) == [
        (2, None, None, "/dirs/a", None, None, "ann"),
        (5, 8, None, _FILE, 2031, "http://b", "ann"),
        (9, None, 10, _FILE, None, None, "ann"),
        (12, None, None, _FILE, None, None, "ann"),
    ]


# --- cost ------------------------------------------------------------------------------------------------------------


# The registry's own stream changes with each Group, so no table may gather the states of one stream in one place.
@pytest.mark.parametrize("name", TABLES)
def test_no_stream_is_gathered_with_its_states(log: DataFrame, name: str) -> None:
    plan = TABLES[name](log)._jdf.queryExecution().executedPlan().toString()
    gathered = re.findall(r"Exchange hashpartitioning\(stream#\d+, \d+\).*\n(.*)", plan)
    assert bool(gathered) == (name in ("versions", "deprecations"))
    assert not [columns for columns in gathered if re.search(r"\b(state|attributes)#", columns)]
    # Nor may live entities be gathered, of which every `until` is null.
    assert "hashpartitioning(until#" not in plan
