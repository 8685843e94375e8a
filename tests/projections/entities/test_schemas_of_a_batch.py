"""Commands of a batch see the versions that earlier ones added, although the batch looks all up at its start."""

from __future__ import annotations

from contextlib import closing
from typing import Any, Final

from annals.commands.command_bus import handle
from annals.commands.pending_command import PendingCommand
from annals.commands.store.log import Store
from annals.commands.store.write_transaction import Recorded
from annals.domain.confluent.commands import DeleteSchemas, RegisterSchema, SchemaRequest
from annals.domain.confluent.errors import SchemaRegistryError
from annals.domain.confluent.import_commands import ImportedVersion, ImportSubject
from annals.domain.confluent.subjects import ContextIds, Subject
from annals.domain.model.builtin import default_source
from annals.projections.entities.apply import EntityProjection
from annals.projections.entities.schema_versions import open_schemas
from tests.support.checked_batches import with_check_results
from tests.support.registries.in_process import create

GROUP: Final = "/schemagroups/default"
SUBJECT: Final = Subject(".", "s")
INT, LONG = SchemaRequest('"int"', "AVRO"), SchemaRequest('"long"', "AVRO")
IDS: Final = ContextIds()


def register(schema: SchemaRequest, name: str = "s") -> PendingCommand:
    return PendingCommand(RegisterSchema(GROUP, Subject(".", name), schema, IDS, "NONE"))


def copy(number: int, id: int, schema: SchemaRequest, name: str) -> PendingCommand:
    version = ImportedVersion(number, id, schema)
    return PendingCommand(ImportSubject(GROUP, Subject(".", name), IDS, "elsewhere", (version,)))


def handled(store: Store, batch: list[PendingCommand]) -> list[Any]:
    return handle(with_check_results(store, batch), store, [EntityProjection()])


def test_versions_of_one_subject(store_url: str) -> None:
    # CSR-502, CSR-511: a schema that an earlier command registered is known, and numbers continue
    create(store_url, default_source())
    with closing(Store(store_url, open_schemas=open_schemas)) as store:
        delete = PendingCommand(DeleteSchemas(GROUP, SUBJECT, IDS, 1))
        batch = [register(INT), register(LONG), register(INT), register(INT, "t"), delete, register(INT)]
        outcomes = handled(store, batch)
        assert [one.number for one in outcomes if isinstance(one, Recorded)] == [1, 2, 1, 1, None, 3]


def test_copies_with_one_id(store_url: str) -> None:
    # CSR-1004: an id stands for one content in a context, also if an earlier command of the batch set it
    create(store_url, default_source())
    with closing(Store(store_url, open_schemas=open_schemas)) as store:
        outcomes = handled(store, [copy(1, 7, INT, "a"), copy(1, 7, LONG, "b"), copy(1, 7, INT, "c")])
        refused = outcomes.pop(1)
        assert isinstance(refused, SchemaRegistryError)
        assert (refused.code, all(isinstance(one, Recorded) for one in outcomes)) == (40902, True)
