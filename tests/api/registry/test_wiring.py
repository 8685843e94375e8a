"""Opening a registry: the read model is disposable, the log is not."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from annals.api.registry.open_registry import Registry, open_registry
from annals.api.settings.settings import Settings
from annals.commands.store.log import Store
from annals.domain.decisions.commands import WriteMethod, WriteTree
from tests.support.serving import serving


def lose(registry: Registry, *tables: str) -> None:
    with registry.store.writing() as transaction:
        for table in tables:
            transaction.connection.exec_driver_sql(f"DROP TABLE {table}")


@pytest.mark.parametrize("lost", [("entity", "entity_history", "attribute", "projection"), ("entity",), ("attribute",)])
def test_a_lost_read_model_is_rebuilt(store_url: str, lost: tuple[str, ...]) -> None:
    """P-14: a registry that has lost its read model, or a part of it, rebuilds the same rows from the log.

    If only a part is lost, the position of the read model is still there, although tables are missing.
    """
    settings = Settings(database=store_url, public_url="http://registry")
    registry = open_registry(settings)
    registry.command_bus.submit(WriteTree("/schemagroups/g1", {"name": "kept"}, WriteMethod.PUT)).result()
    before = registry.readers.quick_view().entity("/schemagroups/g1")
    lose(registry, *lost)
    registry.close()

    again = open_registry(settings)
    try:
        assert before is not None
        assert again.readers.quick_view().entity("/schemagroups/g1") == before
        assert again.readers.quick_view().position() == again.store.log_end().position
    finally:
        again.close()


def test_processes_that_start_together_make_it_once(postgres_url: str) -> None:
    """P-14: several processes that start without a read model neither disturb each other's rebuild nor fail."""
    settings = Settings(database=postgres_url, public_url="http://registry")
    registry = open_registry(settings)
    for number in range(20):
        registry.command_bus.submit(WriteTree(f"/schemagroups/g{number}", {}, WriteMethod.PUT)).result()
    lose(registry, "entity", "entity_history", "attribute", "projection")
    registry.close()

    with ThreadPoolExecutor(4) as pool:
        opened = list(pool.map(open_registry, [settings] * 4))
    try:
        seen = [[row.xid for row in one.readers.quick_view().subtree("/schemagroups")] for one in opened]
        assert seen == [sorted(f"/schemagroups/g{number}" for number in range(20))] * 4
    finally:
        for one in opened:
            one.close()


def test_unreadable_data_is_an_error(store_url: str, tmp_path: Path) -> None:
    """ENT-7: if a part of its data is missing, a response is an error, never a partial response."""
    schema = "/schemagroups/g1/schemas/s1"
    with serving(store_url, tmp_path) as served, httpx.Client(base_url=served.url) as client:
        client.put(schema, content=b"{}", headers={"xRegistry-format": "x"}).raise_for_status()
        with closing(Store(store_url)) as store, store.writing() as transaction:
            transaction.connection.exec_driver_sql("DELETE FROM document")
        for path in (schema, f"{schema}$details?inline=schema", f"{schema}/versions/1"):
            answer = client.get(path)
            assert answer.status_code == 500
            assert answer.json()["type"].endswith("#data_retrieval_error")
        assert client.get(f"{schema}$details").status_code == 200
