"""When two values of an attribute are equal: case-insensitive where core says so (SC-04)."""

from __future__ import annotations

from typing import Any, Final

from annals.domain.model.validation.values import fold_value

#: Attributes of Versions that core defines as case-insensitive.
_FOLDED_PATHS: Final = frozenset({("format",)})


def comparable_value(path: tuple[Any, ...], value: Any) -> Any:
    """A value of the attribute at a path, in a form that compares correctly."""
    return fold_value(value) if path in _FOLDED_PATHS and isinstance(value, str) else value
