"""When two values of an attribute are equal: as its type says, and case-insensitive where core says so (SC-04)."""

from __future__ import annotations

from typing import Any, Final

from annals.domain.model import ResourceType
from annals.domain.model.constraints import definition_at
from annals.domain.model.validation.values import equality_key, fold_value

#: Attributes of Versions that core defines as case-insensitive.
_FOLDED_PATHS: Final = frozenset({("format",)})


def comparable_value(type: ResourceType, path: tuple[str, ...], value: Any) -> Any:
    """An equal, hashable key for equal values of a scalar attribute of a type's Versions; None stays None."""
    if path in _FOLDED_PATHS and isinstance(value, str):
        return fold_value(value)
    definition = definition_at(type.version.definitions, path)
    return equality_key(definition["type"], value) if definition else value
