"""Query plans: the queries of filters, sorted pages and trees read index ranges, never a whole table."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from annals.projections.database import drivers
from annals.projections.database.connections import PLANNER_SETTINGS
from annals.projections.entities import publications
from annals.projections.entities.index_values import text_value
from annals.projections.entities.view import View
from tests.support.plans import explained
from tests.support.registries.recorded import Registry
from tests.support.stores import analyze

pytestmark = pytest.mark.scale

GROUPS, FILES = 20, 100
#: The leaves of a path whose values meet a condition. Values are hexadecimal literals.
OF_FILES = "SELECT id_key FROM attribute WHERE path = 3 AND "


@pytest.fixture
def large(registry: Registry) -> Iterator[Registry]:
    """Enough entities that scanning them would cost more."""
    for d in range(GROUPS):
        files = ((f"/dirs/d{d}/files/f{f}", {"name": f"n{f}", "size": f, "meta": {}}) for f in range(FILES))
        registry.record((f"/dirs/d{d}", {"name": f"d{d}"}), *files)
    with registry.store.writing() as tx:
        analyze(tx.connection)
    yield registry


def plan(registry: Registry, sql: str) -> str:
    """The plan of a query, in one line."""
    with registry.store.engine.connect() as connection:
        sqlite = connection.dialect.name == "sqlite"
        for setting in () if sqlite else PLANNER_SETTINGS:
            connection.exec_driver_sql(setting)
        rows = drivers.database_of(connection).all(f"EXPLAIN {'QUERY PLAN' if sqlite else ''} {sql}")
    return "; ".join(row[-1] for row in rows)


# FLAG-13, FLAG-14, FLAG-50 to 52, PAG-7: equality, prefix, range and keyset pages are index ranges
@pytest.mark.parametrize(
    "condition",
    [
        "value = {n7}",
        "value IN ({n7}, {n8})",
        "value >= {n7} AND value < {n8}",
        "value = {n7} AND id_key > 'd7!' AND id_key < 'd7\"'",
        "value = {n7} ORDER BY id_key LIMIT 10",
        "value > {n7} ORDER BY value, id_key LIMIT 10",
        "value >= {n7} AND (value, id_key) > ({n7}, 'd7') ORDER BY value, id_key LIMIT 10",
        "value <= {n7} AND (value, id_key) < ({n7}, 'd7') ORDER BY value DESC, id_key DESC LIMIT 10",
        "value = {n7} AND id_key = 'd7!f7'",
    ],
)
def test_attribute_queries_read_an_index_range(large: Registry, condition: str) -> None:
    sqlite = large.url.startswith("sqlite")
    literal = "x'{}'" if sqlite else "'\\x{}'::bytea"
    values = {name: literal.format(text_value(name).hex()) for name in ("n7", "n8")}
    found = plan(large, OF_FILES + condition.format(**values))
    assert ("PRIMARY KEY" if sqlite else "attribute_pkey") in found
    assert not any(word in found.lower() for word in ("scan attribute", "seq scan", "temp b-tree", "sort"))


def subtree_plan(registry: Registry, xid: str, *types: str) -> str:
    """The plan of `View.subtree`."""
    with explained(registry) as db:
        list(View(db).subtree(xid, types or None))
        return db.plans[-1]


def test_a_subtree_is_a_range_of_tree_keys(large: Registry) -> None:
    for types in ((), ("dirs.files", "dirs.files.versions")):
        found = subtree_plan(large, "/dirs/d7", *types)
        assert "entity_pkey" in found or "sqlite_autoindex_entity" in found
        assert "SCAN" not in found and "Seq Scan" not in found
        assert "TEMP B-TREE" not in found


@pytest.mark.parametrize("query", [publications._LIVE_WITH_DOCUMENT, publications._RETAINED_WITH_DOCUMENT])
def test_versions_with_a_document_are_looked_for_in_one_resource(large: Registry, query: str) -> None:
    # LEG-531: a POST of a schema looks through the rows of its versions, and not for the document in all rows
    for value in ("'!dirs!d7!files!f7!versions!'", "'!dirs!d7!files!f7!versions\"'", "'x'"):
        query = query.replace("?", value, 1)
    found = plan(large, query)
    assert "SCAN" not in found and "Seq Scan" not in found


def test_a_collection_is_a_range_of_one_type(large: Registry) -> None:
    found = subtree_plan(large, "/dirs/d7/files", "dirs.files")
    assert "entity_by_type" in found
    assert "TEMP B-TREE" not in found and "Seq Scan" not in found and "Sort" not in found
