"""From a modelsource to a Model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from domain.model.types import Model


def compile_model(source: Any, include: Callable[[str], Any] | None = None) -> Model:
    """The model that a modelsource describes, spec-defined attributes overlaid.

    include: reads a document that `$include` names (already resolved against the configured base); None: there is no
        base, and any include of another document is an error.
    Raises: ModelError, ModelRequiredTrue, ModelScalarDefault.
    """
    raise NotImplementedError
