"""Requests generated from the OpenAPI description of an operation, the same in each run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import schemathesis
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from jsonschema import Draft202012Validator
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import response_schema_conformance

from annals.api.openapi.builders import JSON_WITH
from tests.support.examples import examples

# Schemathesis generates NDJSON as plain text.
schemathesis.serializer.alias("application/x-ndjson", "text/plain")

_SETTINGS: Final[dict[str, Any]] = {
    "deadline": None,
    "database": None,
    "phases": [Phase.generate],
    "suppress_health_check": list(HealthCheck),
}


def cases(operation: Any) -> SearchStrategy[Any]:
    """Requests of one operation; two thirds are valid, the rest invalid."""
    good = operation.as_strategy(generation_mode=schemathesis.GenerationMode.POSITIVE)
    return st.one_of(good, good, operation.as_strategy(generation_mode=schemathesis.GenerationMode.NEGATIVE))


def repeatable(number: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Runs a property test with the same examples in each run. number: of examples; see `examples`."""
    return lambda test: seed(1)(settings(max_examples=examples(number), **_SETTINGS)(test))


def validate(case: Any, answer: Any, checks: Sequence[Any]) -> None:
    """Checks a response. With some parameters its JSON has another schema, which the document gives in an extension."""
    other = _schema_with_parameters(case, answer)
    left_out = {response_schema_conformance} if other is not None else set()
    if answer.status_code == 503 and b"#position_not_reached" in answer.content:
        left_out.add(not_a_server_error)  # the request waited for a position that the log does not have yet
    applied = [check for check in checks if check not in left_out]
    case.validate_response(answer, checks=applied)
    if other is not None:
        components = case.operation.schema.raw_schema["components"]
        Draft202012Validator({**other, "components": components}).validate(answer.json())


def _schema_with_parameters(case: Any, answer: Any) -> Any:
    """The other schema of a JSON response if the request has such a parameter; else None."""
    described = case.operation.definition.raw["responses"].get(str(answer.status_code), {}).get(JSON_WITH, {})
    is_json = answer.headers.get("content-type", [""])[0].startswith("application/json")
    found = [schema for name, schema in described.items() if name in (case.query or {})]
    return found[-1] if found and is_json else None
