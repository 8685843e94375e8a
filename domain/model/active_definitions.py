"""The definitions that apply to an object, by the values that its members have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from annals.domain.model.spec_attributes import Definition, Definitions
from annals.domain.model.validation.values import switch_key


def active_definitions(definitions: Definitions, values: Mapping[str, Any]) -> Definitions:
    """The definitions with the siblings that the values enable, and those that the siblings enable (MOD-23).

    The default of a member without a value counts as its value (MOD-24).
    """
    active, pending = dict(definitions), definitions
    while pending:
        enabled: Definitions = {}
        for name, definition in pending.items():
            if definition.get("ifvalues"):
                enabled |= _enabled_siblings(definition, values.get(name))
        pending = {name: definition for name, definition in enabled.items() if name not in active}
        active |= pending
    return active


def _enabled_siblings(definition: Definition, value: Any) -> Definitions:
    """The siblings of one key. Of several keys with this value, which stored models may have, the first counts."""
    type_name = definition["type"]
    switch = switch_key(type_name, definition.get("default") if value is None else value)
    siblings: Definitions = next(
        (
            branch["siblingattributes"]
            for key, branch in definition["ifvalues"].items()
            if switch_key(type_name, key) == switch
        ),
        {},
    )
    return siblings
