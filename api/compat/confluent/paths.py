"""The path of Confluent's API, and what else a port or a host name of its own serves (CSR-101, CSR-102)."""

from __future__ import annotations

from typing import Final

from annals.api.compat.own_root import path_below

#: The path of the API below the registry's root.
BASE: Final = "/compat/confluent"
#: What precedes the path of a route in one context, as a template.
CONTEXT_PATH: Final = "/contexts/{context}"


def canonical_path(raw_path: str) -> str:
    """The path in the registry for a path at a port or a host name whose root is the API."""
    return path_below(BASE, raw_path)
