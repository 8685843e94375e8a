"""The path of Confluent's API, and what else a port or a host name of its own serves (CSR-101, CSR-102)."""

from __future__ import annotations

from typing import Final

#: The path of the API below the registry's root.
BASE: Final = "/compat/confluent"
#: Paths of the registry that a port or a host name of the API has as well.
_HEALTH_PATHS: Final = ("/-/livez", "/-/readyz")


def canonical_path(raw_path: str) -> str:
    """The path in the registry for a path at a port or a host name whose root is the API."""
    if raw_path in _HEALTH_PATHS or raw_path == BASE or raw_path.startswith(f"{BASE}/"):
        return raw_path
    return BASE + raw_path
