"""The types of a model to which the rules apply: those with the name and the shape of the published ones, anywhere."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from annals.domain.model import Model

ENDPOINTS: Final = "endpoints"
MESSAGEGROUPS: Final = "messagegroups"
MESSAGES: Final = "messages"
#: The Group types that have rules.
GROUP_TYPES: Final = frozenset((ENDPOINTS, MESSAGEGROUPS))

#: The attributes that a type with this name must define to count as the published one.
_REQUIRED_ATTRIBUTES: Final[dict[str, frozenset[str]]] = {
    ENDPOINTS: frozenset(("usage", "protocol", "envelope")),
    MESSAGEGROUPS: frozenset(("protocol", "envelope")),
    MESSAGES: frozenset(("protocol", "envelope", "dataschemaformat")),
}


def kinds_by_type(model: Model) -> dict[str, str]:
    """The kind of each type that has rules, by the type: `endpoints.messages` are MESSAGES. O(types of the model)."""
    kinds: dict[str, str] = {}
    for plural, group in model.groups.items():
        if plural != MESSAGES and _has_shape(plural, group.level.definitions):
            kinds[plural] = plural
        if MESSAGES in group.resources and _has_shape(MESSAGES, group.resources[MESSAGES].version.definitions):
            kinds[f"{plural}.{MESSAGES}"] = MESSAGES
    return kinds


def _has_shape(kind: str, definitions: Mapping[str, Any]) -> bool:
    required_names: Collection[str] | None = _REQUIRED_ATTRIBUTES.get(kind)
    return required_names is not None and all(name in definitions for name in required_names)
