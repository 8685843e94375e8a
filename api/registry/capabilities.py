"""What the registry's capabilities enable for requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from annals.domain.access.roles import Caller

#: The default of the `available` capability (core 1.0-rc4, "available Capability").
AVAILABLE: Final = {"capabilities": False, "entities": True, "model": False}


@dataclass(frozen=True, slots=True)
class Capabilities:
    """flags, ignores: the enabled ones, in lower case. available: whether each kind of metadata is mutable."""

    flags: frozenset[str] = frozenset()
    ignores: frozenset[str] = frozenset()
    available: Mapping[str, bool] = field(default_factory=lambda: AVAILABLE)
    pagination: bool = False
    shortself: bool = False

    @classmethod
    def from_document(cls, capabilities: Mapping[str, Any]) -> Capabilities:
        """The capabilities from their stored document."""
        available = capabilities.get("available", {})
        return cls(
            flags=_lower_names(capabilities, "flags"),
            ignores=_lower_names(capabilities, "ignores"),
            available={name.lower(): bool(value.get("mutable")) for name, value in available.items()} or AVAILABLE,
            pagination=bool(capabilities.get("pagination")),
            shortself=bool(capabilities.get("shortself")),
        )

    def for_caller(self, caller: Caller) -> Capabilities:
        """The capabilities for a caller. An admin can always change the capabilities themselves (CAP-5, CAP-13)."""
        return replace(self, available={**self.available, "capabilities": True}) if caller.is_admin else self


def _lower_names(capabilities: Mapping[str, Any], key: str) -> frozenset[str]:
    return frozenset(name.lower() for name in capabilities.get(key, ()))
