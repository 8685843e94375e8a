"""Tables of scenarios: the responses of Confluent's API to sequences of requests, on both databases.

One table is ordered by rule, the other by client (CSR-1101): it has the requests, with headers, of clients that the
tests do not run.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from annals.api.compat.confluent.paths import BASE
from annals.domain.model.builtin import default_source
from annals.projections.entities import schema_version_rows, schema_versions
from tests.support.registries.in_process import Api, create, serving

TABLES = [
    yaml.safe_load(Path(__file__).with_name(name).read_text()) for name in ("scenarios.yaml", "client_calls.yaml")
]
SCENARIOS = [
    pytest.param(scenario, table["schemas"], id=scenario["name"]) for table in TABLES for scenario in table["scenarios"]
]


@pytest.fixture
def api(store_url: str) -> Iterator[Api]:
    create(store_url, default_source())
    with serving(store_url) as served:
        yield served


@pytest.mark.parametrize(("scenario", "schemas"), SCENARIOS)
def test_scenario(api: Api, scenario: dict[str, Any], schemas: dict[str, str]) -> None:
    follow(api, scenario, schemas)


@pytest.mark.parametrize(("scenario", "schemas"), SCENARIOS)
def test_scenario_with_long_subjects(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch, scenario: dict[str, Any], schemas: dict[str, str]
) -> None:
    # CSR-421: answers are the same where the versions of a subject are looked up one by one
    monkeypatch.setattr(schema_versions, "NEWEST_VERSIONS", 0)
    create(sqlite_url, default_source())
    with serving(sqlite_url) as served:
        follow(served, scenario, schemas)


@pytest.mark.parametrize("at_once", [0, schema_versions.NEWEST_VERSIONS])
@pytest.mark.parametrize(("scenario", "schemas"), SCENARIOS)
def test_scenario_with_one_hash(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch, scenario: dict[str, Any], schemas: dict[str, str], at_once: int
) -> None:
    # CSR-421: rows are found by a hash of their subject, which others can have too
    monkeypatch.setattr(schema_versions, "NEWEST_VERSIONS", at_once)
    for module in (schema_versions, schema_version_rows):
        monkeypatch.setattr(module, "subject_hash", lambda path: 1)
    create(sqlite_url, default_source())
    with serving(sqlite_url) as served:
        follow(served, scenario, schemas)


def follow(api: Api, scenario: dict[str, Any], schemas: dict[str, str]) -> None:
    """Sends the requests of a scenario, and compares the responses."""
    for number, step in enumerate(filled(scenario["steps"], schemas), 1):
        method, path, *body = step["do"]
        answer = api.send(method, BASE + path, *body, **scenario.get("headers", {}))
        where = f"step {number}, {method} {path}: {answer.status_code} {answer.text}"
        assert answer.status_code == step["status"], where
        if "text" in step:
            assert answer.text == step["text"], where
        if "=" in step:
            expected, found = step["="], answer.json()
            assert sorted(found) == sorted(expected) if step.get("any_order") else found == expected, where
        if "subjects" in step:
            assert [one["subject"] for one in answer.json()] == step["subjects"], where
        if "answer" in step:
            found = answer.json()
            assert {name: found.get(name) for name in step["answer"]} == step["answer"], where
            assert not found.keys() & set(step.get("without", ())), where


def filled(value: Any, schemas: dict[str, str]) -> Any:
    """Replaces the names of schemas in a value with the schemas of its table."""
    if isinstance(value, str):
        return schemas[value[1:]] if value.startswith("$") else value
    if isinstance(value, dict):
        return {name: filled(part, schemas) for name, part in value.items()}
    return [filled(part, schemas) for part in value] if isinstance(value, list) else value
