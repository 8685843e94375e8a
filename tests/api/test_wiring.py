"""Opening a registry: the read model is disposable, the log is not."""

from __future__ import annotations

from api.settings import Settings
from api.wiring import open_registry
from domain.commands import Method, WriteTree


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
