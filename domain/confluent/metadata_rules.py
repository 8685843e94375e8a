"""Metadata and rule sets: their rules, and how they are merged with defaults and overrides (CSR-505, CSR-507)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from annals.domain.confluent.errors import SchemaRegistryError, invalid_rule_set

#: The property with which a client asks for a certain version (CSR-512).
VERSION_PROPERTY: Final = "confluent:version"
_KINDS: Final = ("TRANSFORM", "CONDITION")
_MIGRATION_MODES: Final = ("UPGRADE", "DOWNGRADE", "UPDOWN")
_DOMAIN_MODES: Final = ("WRITE", "READ", "WRITEREAD")
#: The lists of a rule set, and the modes that their rules may have.
RULE_LISTS: Final = {
    "migrationRules": _MIGRATION_MODES,
    "domainRules": _DOMAIN_MODES,
    "encodingRules": _DOMAIN_MODES,
}
_TWO_ACTION_MODES: Final = ("UPDOWN", "WRITEREAD")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")

Members = Mapping[str, Any]


def check_shapes(metadata: Members | None, rule_set: Members | None) -> None:
    """Raises: SchemaRegistryError for values that metadata or rules cannot have, before they are merged or compared."""
    for name, value in (metadata or {}).items():
        if name not in _METADATA_MEMBERS:
            raise SchemaRegistryError(422, f'The member "{name}" of metadata is unknown')
        is_valid, wanted = _METADATA_MEMBERS[name]
        if value is not None and not is_valid(value):
            raise SchemaRegistryError(422, f'The member "{name}" of metadata has to be {wanted}')
    for list_name in RULE_LISTS:
        rules = (rule_set or {}).get(list_name) or []
        if not isinstance(rules, list):
            raise invalid_rule_set(f"{list_name} has to be a list of rules")
        for number, rule in enumerate(rules, 1):
            _check_rule_shape(rule, f"Rule {number} of {list_name}")


def check_rule_set(rule_set: Members | None) -> None:
    """Raises: SchemaRegistryError for a rule without a name or type, or with a kind or mode that it cannot have."""
    names: set[str] = set()
    for list_name, modes in RULE_LISTS.items():
        for rule in (rule_set or {}).get(list_name) or ():
            if not isinstance(rule, Mapping):
                raise invalid_rule_set(f"An entry of {list_name} is no rule")
            name, kind, mode = rule.get("name"), rule.get("kind"), rule.get("mode")
            if not isinstance(name, str) or not _NAME.match(name):
                raise invalid_rule_set(f"Invalid rule name '{name}': letters, digits, _ and - are allowed")
            if name in names:
                raise invalid_rule_set(f"Found rule with duplicate name '{name}'")
            names.add(name)
            if not isinstance(rule.get("type"), str):
                raise invalid_rule_set(f"Missing type of rule '{name}'")
            if kind is not None and kind not in _KINDS:
                raise invalid_rule_set(f"The kind of rule '{name}' can only be {' or '.join(_KINDS)}, not {kind}")
            if mode not in modes:
                raise invalid_rule_set(f"Rule '{name}' of {list_name} can only be {', '.join(modes)}, not {mode}")
            _check_actions(rule, mode)


def without_empty_members(members: Members) -> dict[str, Any]:
    """Metadata or rules without members that are null, an empty list or an empty object, at all depths.

    They say the same as absent ones, and some clients send them for what they have read without them.
    """
    shorter = {name: _without_empty(value) for name, value in members.items()}
    return {name: value for name, value in shorter.items() if value is not None and value != [] and value != {}}


def merged_metadata(given: Members | None, default: Members | None, override: Members | None) -> Members | None:
    """Metadata over the default, below the override; the values of each member are merged by name."""
    layers = [without_empty_members(layer) for layer in (default, given, override) if layer]
    merged: dict[str, Any] = {}
    for layer in layers:
        for name, value in layer.items():
            if isinstance(value, Mapping):
                merged[name] = {**merged.get(name, {}), **value}
            elif isinstance(value, list):
                merged[name] = sorted({*merged.get(name, ()), *value})
            else:
                merged[name] = value
    return merged or None


def merged_rule_set(given: Members | None, default: Members | None, override: Members | None) -> Members | None:
    """Rules over the defaults, below the overrides; rules of one name replace each other."""
    layers = [layer for layer in (default, given, override) if layer]
    if not layers:
        return None
    merged: dict[str, Any] = {}
    for layer in layers:
        for name, value in layer.items():
            if name in RULE_LISTS:
                rules = {rule["name"]: rule for rule in (*merged.get(name, ()), *(value or ()))}
                merged[name] = list(rules.values())
            else:
                merged[name] = value
    return {name: value for name, value in merged.items() if value}


def without_version(metadata: Members | None) -> Members | None:
    """Metadata without the property of CSR-512; None if nothing is left."""
    if metadata is None or version_in(metadata) is None:
        return metadata
    properties = {name: value for name, value in metadata["properties"].items() if name != VERSION_PROPERTY}
    others = {name: value for name, value in metadata.items() if name != "properties"}
    return {**others, **({"properties": properties} if properties else {})} or None


def version_in(metadata: Members | None) -> str | None:
    """The property of CSR-512 in metadata."""
    version: str | None = ((metadata or {}).get("properties") or {}).get(VERSION_PROPERTY)
    return version


def with_version(metadata: Members | None, number: int) -> Members:
    """Metadata with the property of CSR-512."""
    properties = {**((metadata or {}).get("properties") or {}), VERSION_PROPERTY: str(number)}
    return {**(metadata or {}), "properties": properties}


def _check_rule_shape(rule: object, shown_rule: str) -> None:
    if not isinstance(rule, Mapping):
        raise invalid_rule_set(f"{shown_rule} has to be an object")
    if not isinstance(rule.get("name"), str):
        raise invalid_rule_set(f"{shown_rule} has no name")
    if not isinstance(rule.get("tags") or [], list):
        raise invalid_rule_set(f"{shown_rule} needs a list as tags")
    if not isinstance(rule.get("params") or {}, Mapping):
        raise invalid_rule_set(f"{shown_rule} needs an object as params")


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _are_properties(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(item, str) for item in value.values())


def _are_tags(value: object) -> bool:
    return isinstance(value, Mapping) and all(map(_are_texts, value.values()))


#: The members of metadata: whether a value is one of theirs, and what such a value is.
_METADATA_MEMBERS: Final[Mapping[str, tuple[Callable[[object], bool], str]]] = {
    "tags": (_are_tags, "an object with lists of texts"),
    "properties": (_are_properties, "an object with texts"),
    "sensitive": (_are_texts, "a list of texts"),
}


def _without_empty(value: Any) -> Any:
    if isinstance(value, Mapping):
        return without_empty_members(value)
    return [_without_empty(item) for item in value] if isinstance(value, list) else value


def _check_actions(rule: Members, mode: str) -> None:
    for member in ("onSuccess", "onFailure"):
        action = rule.get(member)
        if isinstance(action, str) and "," in action and (mode not in _TWO_ACTION_MODES or action.count(",") > 1):
            raise invalid_rule_set(
                f"Rule '{rule['name']}' has two actions in {member}; only {' and '.join(_TWO_ACTION_MODES)} have two"
            )
