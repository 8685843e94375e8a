"""The ids of contents in a write transaction are those that the whole log determines."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from annals.commands.store.assigned_schema_ids import AssignedSchemaIds
from annals.domain.confluent.schema_index import id_in_group
from annals.domain.registry.events import EntityCreated
from tests.support.registries.memory_world import MemorySchemas

KEYS = ("a" * 64, "b" * 64)
GROUPS = ("g1", "g2", "g3")
#: Contents, each registered in a Group with an id.
REGISTRATIONS = st.lists(st.tuples(st.sampled_from(KEYS), st.sampled_from(GROUPS), st.integers(1, 3)), max_size=6)


def registration(number: int, key: str, group: str, id: int) -> EntityCreated:
    return EntityCreated(
        xid=f"/schemagroups/{group}/schemas/s{number}/versions/1",
        type="schemagroups.schemas.versions",
        revision=1,
        epoch=1,
        attributes={"schemaid": f"s{number}", "versionid": "1", "format": "Avro/1.11"},
        private={"document": "d" * 64, "confluent": {"id": id, "key": key, "guid": "g"}},
        xregcorrelationid="c",
        time=datetime(2026, 1, 1, tzinfo=UTC),
    )


@given(REGISTRATIONS, REGISTRATIONS, st.booleans())
def test_a_content_has_the_id_that_its_group_gave_last_else_the_last_of_all(
    stored: list[tuple[str, str, int]], assigned: list[tuple[str, str, int]], is_known_before: bool
) -> None:
    # CSR-408
    registrations = [*stored, *assigned]
    events = [registration(number, *each) for number, each in enumerate(registrations)]
    ids = AssignedSchemaIds(MemorySchemas(events[: len(stored)]))
    if is_known_before:
        ids.ids_of_keys(KEYS)
    for event in events[len(stored) :]:
        ids.add(event)
    for key in KEYS:
        newest_first = [(group, id) for one, group, id in reversed(registrations) if one == key]
        for group in GROUPS:
            assert id_in_group(ids.ids_of_keys(KEYS)[key], group) == id_in_group(newest_first, group)
