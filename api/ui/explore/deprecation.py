"""The region "Deprecation", and the mark of deprecated entities in lists (UI-76)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

_TIMES: Final = ("effective", "removal")


class DeprecationRow(NamedTuple):
    """A member of `deprecated`. is_future: whether it is a time that has not come."""

    name: str
    value: Any
    is_time: bool
    is_future: bool


def is_deprecated(entity: Mapping[str, Any]) -> bool:
    """Whether an entity, or the meta of a Resource, says that it is deprecated."""
    return isinstance(entity.get("deprecated"), dict)


def deprecation_rows(entity: Mapping[str, Any]) -> list[DeprecationRow]:
    """What an entity says about its deprecation; empty if it is not deprecated or gives no details."""
    now = datetime.now(UTC)
    return [
        DeprecationRow(name, value, name in _TIMES, name in _TIMES and datetime.fromisoformat(value) > now)
        for name, value in (entity.get("deprecated") or {}).items()
    ]
