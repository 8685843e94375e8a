"""Requests generated from the description of an operation, the same ones in each run."""

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

# Lines of JSON are text to whoever makes them up.
schemathesis.serializer.alias("application/x-ndjson", "text/plain")

_SETTINGS: Final[dict[str, Any]] = {
    "deadline": None,
    "database": None,
    "phases": [Phase.generate],
    "suppress_health_check": list(HealthCheck),
}


def cases(operation: Any) -> SearchStrategy[Any]:
    """Requests of one operation, good and bad, two of three of them good."""
    good = operation.as_strategy(generation_mode=schemathesis.GenerationMode.POSITIVE)
    return st.one_of(good, good, operation.as_strategy(generation_mode=schemathesis.GenerationMode.NEGATIVE))


def repeatable(number: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Has a property tried with so many examples, or a part of them (`examples`), the same in each run."""
    return lambda tried: seed(1)(settings(max_examples=examples(number), **_SETTINGS)(tried))


def validate(case: Any, answer: Any, checks: Sequence[Any]) -> None:
    """Checks an answer. With some parameters its JSON has another schema, which the document names in an extension."""
    other = _schema_with_parameters(case, answer)
    left_out = {response_schema_conformance} if other is not None else set()
    if answer.status_code == 503 and b"#position_not_reached" in answer.content:
        left_out.add(not_a_server_error)  # the request waited for a position that the log does not have
    kept = [check for check in checks if check not in left_out]
    case.validate_response(answer, checks=kept)
    if other is not None:
        components = case.operation.schema.raw_schema["components"]
        Draft202012Validator({**other, "components": components}).validate(answer.json())


def _schema_with_parameters(case: Any, answer: Any) -> Any:
    """The schema of the JSON of an answer whose request has such a parameter; else None."""
    described = case.operation.definition.raw["responses"].get(str(answer.status_code), {}).get(JSON_WITH, {})
    is_json = answer.headers.get("content-type", [""])[0].startswith("application/json")
    found = [schema for name, schema in described.items() if name in (case.query or {})]
    return found[-1] if found and is_json else None
