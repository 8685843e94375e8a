"""Requests generated from the description of an operation, the same ones in each run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import schemathesis
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

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


def repeatable(examples: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Has a property tried with so many examples, the same in each run."""
    return lambda tried: seed(1)(settings(max_examples=examples, **_SETTINGS)(tried))
