"""Families of events, and the families that a subscription selects (SUB-111)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from annals.domain.compat import legacy_apis as compat

XREGISTRY: Final = "xregistry"
#: The prefix of the event types in each family.
PREFIXES: Final[Mapping[str, str]] = {
    XREGISTRY: "io.xregistry.",
    **{family.name: f"{family.events}." for family in compat.LEGACY_APIS},
}
FAMILIES: Final = tuple(PREFIXES)


def families_in_scope(source: str | None, types: Sequence[str], sources: Mapping[str, str]) -> list[str]:
    """The families that a source or types name; the registry's own if they name none.

    sources: the `source` of each family's events.
    """
    by_source = [family for family in FAMILIES if source is not None and sources.get(family) == source]
    return by_source or families_of_types(types) or [XREGISTRY]


def families_of_types(types: Sequence[str]) -> list[str]:
    """The families of the given types."""
    return [family for family, prefix in PREFIXES.items() if any(event_type.startswith(prefix) for event_type in types)]
