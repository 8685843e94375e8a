"""When two values of an attribute are the same: letter case does not count where core says so (SC-04)."""

from __future__ import annotations

from typing import Any, Final

from domain.model.values import fold_value

#: Attributes of Versions that core defines without case.
_FOLDED: Final = frozenset({("format",)})


def comparable_value(path: tuple[Any, ...], value: Any) -> Any:
    """A value of the attribute at a path, as it compares with others."""
    return fold_value(value) if path in _FOLDED and isinstance(value, str) else value
