"""Opening a registry: the read model is disposable, the log is not."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import httpx

from api.settings import Settings
from api.wiring import open_registry
from commands.log import Store
from domain.commands import Method, WriteTree
from tests.serving import serving


def test_a_lost_read_model_is_made_anew(store_url: str) -> None:
    """P-14: what readers see comes from the log alone, so a registry that lost its read model shows the same rows."""
    settings = Settings(database=store_url, public_url="http://registry")
    registry = open_registry(settings)
    registry.road.submit(WriteTree("/schemagroups/g1", {"name": "kept"}, Method.PUT)).result()
    before = registry.readers.quick().entity("/schemagroups/g1")
    with registry.store.writing() as transaction:
        for table in ("entity", "entity_history", "attribute", "projection"):
            transaction.connection.exec_driver_sql(f"DROP TABLE {table}")
    registry.close()

    again = open_registry(settings)
    try:
        assert before is not None
        assert again.readers.quick().entity("/schemagroups/g1") == before
        assert again.readers.quick().position() == again.store.tip().position
    finally:
        again.close()


def test_what_cannot_be_read_is_said(store_url: str, tmp_path: Path) -> None:
    """ENT-7: an answer that misses a part of its data is an error, never a part of an answer."""
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
