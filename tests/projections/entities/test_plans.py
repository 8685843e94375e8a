"""Query plans: what later becomes a filter, a sorted page or a tree reads index ranges, never the whole table.

Also the SQL that the two partial indexes take: `text` compared, or `text IS NULL` beside `number`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from annals.domain.values.xid import subtree
from annals.projections.database import drivers
from annals.projections.database.connections import PLANNER_SETTINGS
from annals.projections.entities import query
from tests.support.registries.recorded import Registry
from tests.support.stores import analyze

pytestmark = pytest.mark.scale

GROUPS, FILES = 20, 100
OF_FILES = "SELECT tree_key FROM attribute WHERE type = 'dirs.files' AND path = "
LOW, HIGH = subtree("/dirs/d7")


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
    ("index", "sql"),
    [
        ("attribute_by_text", f"{OF_FILES}'name' AND text = 'n7'"),
        ("attribute_by_text", f"{OF_FILES}'name' AND text >= 'n7' AND text < 'n8'"),
        ("attribute_by_text", f"{OF_FILES}'name' AND text = 'n7' AND tree_key > '{LOW}' AND tree_key < '{HIGH}'"),
        ("attribute_by_text", f"{OF_FILES}'name' AND text > 'n97' ORDER BY text, tree_key LIMIT 10"),
        (
            "attribute_by_text",
            f"{OF_FILES}'name' AND text >= 'n7' AND (text, tree_key) > ('n7', '!') ORDER BY text, tree_key LIMIT 10",
        ),
        ("attribute_by_number", f"{OF_FILES}'size' AND text IS NULL AND number = 7"),
        ("attribute_by_number", f"{OF_FILES}'size' AND text IS NULL AND number >= 98"),
        (
            "attribute_by_number",
            f"{OF_FILES}'size' AND text IS NULL AND number = 7 AND remainder = '1' ORDER BY tree_key LIMIT 10",
        ),
        (
            "attribute_by_number",
            f"{OF_FILES}'size' AND text IS NULL AND number > 7 ORDER BY number, remainder, tree_key LIMIT 10",
        ),
        (
            "attribute_by_number",
            f"{OF_FILES}'size' AND text IS NULL AND number >= 7 AND (number, remainder, tree_key) > (7, '1', '!')"
            " ORDER BY number, remainder, tree_key LIMIT 10",
        ),
        ("attribute_", "SELECT text, number FROM attribute WHERE tree_key = '!dirs!d7!files!f7' AND path = 'name'"),
    ],
)
def test_attribute_queries_read_an_index_range(large: Registry, index: str, sql: str) -> None:
    found = plan(large, sql)
    assert index in found or (index == "attribute_" and "PRIMARY KEY" in found)
    assert not any(word in found.lower() for word in ("scan attribute", "seq scan", "temp b-tree", "sort"))


def entity_plan(registry: Registry, xid: str, *types: str) -> str:
    """The plan of `View.subtree`."""
    values = iter([*subtree(xid), *types])
    sql = query._SELECT_SUBTREE.format(query._type_condition(xid, len(types)))
    return plan(registry, "".join(part if part != "?" else f"'{next(values)}'" for part in _split(sql)))


def _split(sql: str) -> list[str]:
    return [piece for part in sql.split("?") for piece in (part, "?")][:-1]


def test_a_subtree_is_a_range_of_tree_keys(large: Registry) -> None:
    for types in ((), ("dirs.files", "dirs.files.versions")):
        found = entity_plan(large, "/dirs/d7", *types)
        assert "entity_pkey" in found or "sqlite_autoindex_entity" in found
        assert "SCAN" not in found and "Seq Scan" not in found
        assert "TEMP B-TREE" not in found


def test_a_collection_is_a_range_of_one_type(large: Registry) -> None:
    found = entity_plan(large, "/dirs/d7/files", "dirs.files")
    assert "entity_by_type" in found or "entity_pkey" in found
    assert "TEMP B-TREE" not in found and "Seq Scan" not in found
