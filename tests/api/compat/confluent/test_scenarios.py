"""The table of scenarios: what Confluent's API answers to sequences of requests, on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from annals.api.compat.confluent.routes import BASE
from annals.domain.model.builtin import default_source
from tests.support.registries.in_process import Api, create, serving

TABLE = yaml.safe_load(Path(__file__).with_name("scenarios.yaml").read_text())


@pytest.fixture
def api(store_url: str) -> Iterator[Api]:
    create(store_url, default_source())
    with serving(store_url) as served:
        yield served


@pytest.mark.parametrize("scenario", TABLE["scenarios"], ids=lambda scenario: scenario["name"])
def test_scenario(api: Api, scenario: dict[str, Any]) -> None:
    for number, step in enumerate(scenario["steps"], 1):
        method, path, *body = filled(step["do"])
        answer = api.send(method, BASE + path, *body)
        where = f"step {number}, {method} {path}: {answer.status_code} {answer.text}"
        assert answer.status_code == step["status"], where
        if "text" in step:
            assert answer.text == filled(step["text"]), where
        if "=" in step:
            expected, found = filled(step["="]), answer.json()
            assert sorted(found) == sorted(expected) if step.get("any_order") else found == expected, where
        if "subjects" in step:
            assert [one["subject"] for one in answer.json()] == step["subjects"], where
        if "answer" in step:
            found = answer.json()
            assert {name: found.get(name) for name in step["answer"]} == filled(step["answer"]), where
            assert not found.keys() & set(step.get("without", ())), where


def filled(value: Any) -> Any:
    """The value with the schemas of the table in place of their names."""
    if isinstance(value, str):
        return TABLE["schemas"][value[1:]] if value.startswith("$") else value
    if isinstance(value, dict):
        return {name: filled(part) for name, part in value.items()}
    return [filled(part) for part in value] if isinstance(value, list) else value
