"""Registering a new schema takes one decision and a bounded number of look-ups."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, Final

import pytest

from annals.api.compat.confluent.paths import BASE
from annals.commands.documents.check_scheduler import CheckScheduler
from annals.domain.model.builtin import default_source
from annals.projections.entities import schema_versions
from annals.projections.entities.schema_version_rows import known_schema_version
from annals.projections.entities.schema_versions import NEWEST_VERSIONS, StoredSchemas
from tests.support.registries.in_process import create, serving

RECORD: Final = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int", "default": 1}]}
MESSAGE: Final = 'syntax = "proto3"; message M { int32 a = 1; }'
BODIES: Final[dict[str, dict[str, Any]]] = {
    "Avro": {"schema": json.dumps(RECORD)},
    "JSON": {"schemaType": "JSON", "schema": '{"type": "object"}'},
    "Protobuf": {"schemaType": "PROTOBUF", "schema": MESSAGE},
    "with metadata": {"schema": json.dumps(RECORD), "metadata": {"properties": {"owner": "team"}}},
}


@pytest.mark.parametrize("name", BODIES)
def test_a_new_subject_is_decided_once(store_url: str, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    # CSR-502: the text is checked before the decision, without the write lock
    create(store_url, default_source())
    with serving(store_url) as api:
        api.done("POST", f"{BASE}/subjects/first/versions", {"schema": '"int"'})
        seen = counted(monkeypatch)
        api.done("POST", f"{BASE}/subjects/s/versions", BODIES[name])
    assert seen["retries"] == 0
    is_avro = "schemaType" not in BODIES[name]
    # One for the decision; for types other than Avro one more for the request, because its text has to be parsed first.
    assert seen["look-ups"] <= (1 if is_avro else 2)


@pytest.mark.parametrize("level", ["BACKWARD_TRANSITIVE", "FULL_TRANSITIVE"])
def test_a_schema_that_is_compared_with_many_versions(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch, level: str
) -> None:
    # CSR-801, CSR-502: a level that compares with all versions asks for the comparisons with the earlier ones at once
    create(sqlite_url, default_source())
    with serving(sqlite_url) as api:
        api.done("PUT", f"{BASE}/config/s", {"compatibility": level})
        for number in range(25):
            api.done("POST", f"{BASE}/subjects/s/versions", {"schema": json.dumps({**RECORD, "doc": f"{number}"})})
        seen = counted(monkeypatch)
        api.done("POST", f"{BASE}/subjects/s/versions", {"schema": json.dumps({**RECORD, "doc": "last"})})
        assert seen["retries"] <= 3
        other = {**RECORD, "fields": [{"name": "a", "type": "string", "default": ""}]}
        refused = api.send("POST", f"{BASE}/subjects/s/versions", {"schema": json.dumps(other)})
        assert refused.status_code == 409 and "{oldSchemaVersion: 26}" in refused.text


@pytest.mark.parametrize("metadata", [{}, {"metadata": {"properties": {"owner": "team"}}}], ids=["", "with metadata"])
def test_a_long_subject_costs_as_a_short_one(
    store_url: str, monkeypatch: pytest.MonkeyPatch, metadata: dict[str, Any]
) -> None:
    # CSR-421: neither a registration nor a look-up reads all versions of its subject
    create(store_url, default_source())
    with serving(store_url) as api:
        for number in range(4 * NEWEST_VERSIONS):
            body = {"schema": json.dumps({**RECORD, "doc": f"{number}"}), **(metadata if number == 0 else {})}
            api.done("POST", f"{BASE}/subjects/s/versions", body)
        subject, known = f"{BASE}/subjects/s", {"schema": json.dumps({**RECORD, "doc": "3"})}
        seen = counted_rows(monkeypatch)
        for method, path, sent in (
            ("POST", f"{subject}/versions", {"schema": json.dumps({**RECORD, "doc": "new"})}),
            ("POST", f"{subject}/versions", known),
            ("POST", subject, known),
            ("GET", f"{subject}/versions/latest", None),
            ("GET", f"{subject}/versions/3", None),
            ("POST", f"{BASE}/compatibility/subjects/s/versions", known),
        ):
            seen.clear()
            api.done(method, path, sent)
            assert 0 < seen["rows"] <= 3 * (NEWEST_VERSIONS + 2), (method, path)


def counted_rows(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many rows of schemas are read, from now on."""
    seen: Counter[str] = Counter()

    def counted_read(values: Any) -> Any:
        seen["rows"] += 1
        return known_schema_version(values)

    monkeypatch.setattr(schema_versions, "known_schema_version", counted_read)
    return seen


def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often registrations look up schemas, and are decided again because they need more checks, from now on."""
    seen: Counter[str] = Counter()
    look_up, retry = StoredSchemas._query, CheckScheduler.retry

    def counted_look_up(self: StoredSchemas, *arguments: Any) -> Any:
        seen["look-ups"] += 1
        return look_up(self, *arguments)

    def counted_retry(self: CheckScheduler, *arguments: Any) -> bool:
        seen["retries"] += 1
        return retry(self, *arguments)

    monkeypatch.setattr(StoredSchemas, "_query", counted_look_up)
    monkeypatch.setattr(CheckScheduler, "retry", counted_retry)
    return seen
