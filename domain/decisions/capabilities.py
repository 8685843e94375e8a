"""Capabilities: what this server offers, what a registry enables, and how a request changes that.

Spec: core 1.0-rc4, "Registry Capabilities". Rules CAP-1 to CAP-15.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from annals.domain import formats
from annals.domain.access.roles import Role
from annals.domain.decisions.changes.after_images import AfterImage
from annals.domain.decisions.changes.change_set import ChangeSet
from annals.domain.decisions.commands import IGNORES
from annals.domain.decisions.rules.ancestry import MODES
from annals.domain.errors.problems import (
    ActionNotSupported,
    CapabilityError,
    CapabilityMissingValue,
    CapabilityUnknown,
    CapabilityValue,
    CapabilityWildcard,
    Problem,
)
from annals.domain.model.spec_attributes import SPECVERSION
from annals.domain.replication import LINK
from annals.domain.values import xid as xids
from annals.domain.values.json_text import Json, unquoted

#: What a registry can enable. Lists name their possible members, booleans their possible values.
OFFERED: Final[dict[str, tuple[Any, ...]]] = {
    "flags": (
        *("binary", "collections", "doc", "epoch", "filter", "ignore", "inline"),
        *("setdefaultversionid", "sort", "specversion"),
    ),
    "formats": tuple(name for room in formats.FORMAT_MODULES for name in room.names),
    "ignores": IGNORES,
    "pagination": (False, True),
    "shortself": (False, True),
    "specversions": (SPECVERSION,),
    "versionmodes": MODES,
}
#: The compatibility rules that each format supports.
RULES: Final[dict[str, tuple[str, ...]]] = {
    name: formats.COMPATIBILITIES for room in formats.FORMAT_MODULES for name in room.names
}
#: The kinds of data, and whether each can be mutable.
AVAILABLE: Final[dict[str, tuple[bool, ...]]] = {
    "capabilities": (False, True),
    "capabilitiesoffered": (False,),
    "entities": (False, True),
    "export": (False,),
    "model": (False,),
    "modelsource": (False, True),
}
_ALWAYS_AVAILABLE: Final = ("capabilities", "entities", "model")

#: The value of a capability that a full replacement does not mention.
DEFAULTS: Final[dict[str, Json]] = {
    "available": {
        "capabilities": {"mutable": False},
        "entities": {"mutable": True},
        "model": {"mutable": False},
    },
    "compatibilities": {},
    "flags": [],
    "formats": [],
    "ignores": [],
    "pagination": False,
    "shortself": False,
    "specversions": [SPECVERSION],
    "versionmodes": ["manual"],
}
#: The capabilities that decide which documents are accepted. The others concern the HTTP interface.
DATA_CAPABILITIES: Final = ("compatibilities", "formats")
#: The capabilities of a new registry: everything is enabled.
INITIAL: Final[dict[str, Json]] = {
    **DEFAULTS,
    "available": {name: {"mutable": values[-1]} for name, values in AVAILABLE.items()},
    "compatibilities": {name: list(rules) for name, rules in RULES.items()},
    "pagination": True,
    **{name: list(OFFERED[name]) for name in ("flags", "formats", "ignores", "specversions", "versionmodes")},
}


def offered_capabilities() -> dict[str, Json]:
    """Every capability with its type and the values that it can have (CAP-20 to CAP-22)."""
    lists = {name: _array_definition("string", values) for name, values in OFFERED.items() if name not in _BOOLEANS}
    booleans = {name: {"type": "boolean", "enum": list(OFFERED[name])} for name in _BOOLEANS}
    available_types = {
        name: _object_definition({"mutable": {"type": "boolean", "enum": list(values)}})
        for name, values in AVAILABLE.items()
    }
    rules = {name: _array_definition("string", rules) for name, rules in RULES.items()}
    objects = {"available": _object_definition(available_types), "compatibilities": _object_definition(rules)}
    capabilities: dict[str, Json] = {**objects, **lists, **booleans}
    return {name: capabilities[name] for name in DEFAULTS}


_BOOLEANS: Final = ("pagination", "shortself")


def _array_definition(item: str, values: Sequence[Any]) -> Json:
    return {"type": "array", "item": {"type": item}, "enum": list(values)}


def _object_definition(attributes: dict[str, Any]) -> Json:
    return {"type": "object", "attributes": attributes}


def write_capabilities(changes: ChangeSet, value: Json, *, patch: bool) -> None:
    """Adds new capabilities to a change: one event of their own, and an update of the registry.

    value: null means all defaults. If no capability differs, the function does nothing.
    Raises: the Capability problems.
    """
    current = current_capabilities(changes)
    updated = apply_request(current, value, patch=patch)
    changed_names = sorted(name for name in updated if updated[name] != current.get(name))
    if not changed_names:
        return
    require_mutable(changes, "capabilities", patch=patch)
    record_capabilities(changes, updated, tuple(changed_names))
    registry = changes.registry()
    registry.always_changed |= {"capabilities"}
    registry.touch()


def capabilities_after(changes: ChangeSet) -> Mapping[str, Json]:
    """The capabilities that result from the change. They apply to the data of the same request (ENT-68)."""
    after_image = changes.root_after_images.get(xids.CAPABILITIES)
    return after_image.attributes if after_image else current_capabilities(changes)


def current_capabilities(changes: ChangeSet) -> dict[str, Json]:
    """The capabilities in force before the change."""
    entity = changes.world.get(xids.CAPABILITIES)
    return entity.attributes if entity else INITIAL


def has_same_data(first: Mapping[str, Json], other: Mapping[str, Json]) -> bool:
    """Whether two sets of capabilities accept the same documents."""
    return all(first.get(name) == other.get(name) for name in DATA_CAPABILITIES)


def supported_data_capabilities(remote_capabilities: Mapping[str, Any]) -> dict[str, Json]:
    """The data capabilities of another registry, reduced to what this server offers.

    Unsupported members are left out. Values of a wrong type stay, so that the write refuses them.
    """
    supported: dict[str, Json] = {}
    if (remote_formats := remote_capabilities.get("formats")) is not None:
        supported["formats"] = (
            [format_name for format_name in remote_formats if _is_offered(format_name)]
            if isinstance(remote_formats, list)
            else remote_formats
        )
    if isinstance(rules := remote_capabilities.get("compatibilities"), dict):
        offered_rules = {
            format: _offered_rules(format, format_name) for format, format_name in rules.items() if _is_offered(format)
        }
        supported["compatibilities"] = {
            format: format_name for format, format_name in offered_rules.items() if format_name
        }
    elif rules is not None:
        supported["compatibilities"] = rules
    return supported


def _is_offered(format: Any) -> bool:
    return not isinstance(format, str) or any(_have_overlap(format, name) for name in OFFERED["formats"])


def _offered_rules(format: str, value: Any) -> Json:
    if not isinstance(value, list):
        return value
    known_rules = _rules_of(format)
    return [rule_name for rule_name in value if not isinstance(rule_name, str) or rule_name.lower() in known_rules]


def record_capabilities(changes: ChangeSet, capabilities: dict[str, Json], changed_names: tuple[str, ...] = ()) -> None:
    """Records the capabilities. If a link writes them, that link owns them from then on (LEG-909)."""
    current = changes.world.get(xids.CAPABILITIES)
    link = changes.context.caller.link or (current.private.get(LINK) if current else None)
    changes.root_after_images[xids.CAPABILITIES] = AfterImage(
        xids.CAPABILITIES,
        current.epoch + 1 if current else 1,
        capabilities,
        {LINK: link} if link else {},
        changed=changed_names,
        is_new=current is None,
        is_updated=current is not None,
    )


def apply_request(current: Mapping[str, Json], value: Json, *, patch: bool) -> dict[str, Json]:
    """The capabilities after a request. Raises: the Capability problems."""
    requested = {} if value is None else value
    if not isinstance(requested, dict):
        raise CapabilityError(error_detail="the capabilities have to be an object")
    for name in requested:
        if name not in DEFAULTS:
            raise CapabilityUnknown(field=name)
    checked_values = {name: _CHECKS[name](name, item) for name, item in requested.items() if item is not None}
    default_values = {name: DEFAULTS[name] for name in requested if requested[name] is None}
    base_values = current if patch and value is not None else DEFAULTS
    updated = {name: {**base_values, **default_values, **checked_values}[name] for name in DEFAULTS}
    _check_rules(updated)
    return updated


def _parse_strings(field: str, value: Json, offered: Sequence[str]) -> list[str]:
    """The members of a list of texts; all that are offered for the wildcard. Raises: the Capability problems."""
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise _value_problem(field, value, offered)
    if "*" not in value:
        return value
    if len(value) > 1:
        raise CapabilityWildcard(field=field)
    return list(offered)


def _parse_list(name: str, value: Json) -> list[str]:
    offered = {item.lower() for item in OFFERED[name]}
    items = _parse_strings(name, value, OFFERED[name])
    for item in items:
        if item.lower() not in offered:
            raise _value_problem(name, item, OFFERED[name])
    requested = {item.lower() for item in items}
    _check_required(name, requested)
    return [item for item in OFFERED[name] if item.lower() in requested]


def _check_required(name: str, requested: set[str]) -> None:
    required_value = {"specversions": SPECVERSION, "versionmodes": "manual"}.get(name)
    if required_value is not None and required_value not in requested:
        raise CapabilityMissingValue(name=name, value=required_value)


def _parse_formats(name: str, value: Json) -> list[str]:
    return list(dict.fromkeys(_offered_format(item) for item in _parse_strings(name, value, OFFERED[name])))


def _offered_format(item: str) -> str:
    """A format as the server offers it, or the part of an offered format that it matches (SC-15).

    Raises: CapabilityError.
    """
    offered: dict[str, str] = {name.lower(): name for name in OFFERED["formats"]}
    if item.lower() in offered:
        return offered[item.lower()]
    if not any(formats.matches_format(item, name) or formats.matches_format(name, item) for name in offered):
        raise CapabilityError(error_detail=f'the format "{item}" is not offered')
    return item


def _parse_boolean(name: str, value: Json) -> bool:
    if not isinstance(value, bool) or value not in OFFERED[name]:
        raise _value_problem(name, value, OFFERED[name])
    return value


def _parse_available(name: str, value: Json) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise _value_problem(name, value, tuple(AVAILABLE))
    requested = {key.lower(): entry for key, entry in value.items()}
    for key, entry in requested.items():
        if key not in AVAILABLE:
            raise _value_problem(name, key, tuple(AVAILABLE))
        if not isinstance(entry, dict) or set(entry) - {"mutable"}:
            raise _value_problem(f"{name}.{key}", entry, ({"mutable": choice} for choice in AVAILABLE[key]))
        if not isinstance(entry.get("mutable", False), bool) or entry.get("mutable", False) not in AVAILABLE[key]:
            raise _value_problem(f"{name}.{key}.mutable", entry.get("mutable"), AVAILABLE[key])
    for key in _ALWAYS_AVAILABLE:
        if key not in requested:
            raise CapabilityMissingValue(name=name, value=key)
    return {key: {"mutable": requested[key].get("mutable", False)} for key in AVAILABLE if key in requested}


def _parse_compatibilities(name: str, value: Json) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise _value_problem(name, value, ())
    return {_offered_format(format): _parse_rules(format, rules) for format, rules in value.items()}


def _parse_rules(format: str, value: Json) -> list[Json]:
    offered = _rules_of(format)
    rules = _parse_strings(f"compatibilities.{format}", value, sorted(offered))
    for rule in rules:
        if rule.lower() not in offered:
            raise CapabilityError(error_detail=f'the format "{format}" has no compatibility rule "{rule}"')
    return list(dict.fromkeys(rule.lower() for rule in rules))


def _rules_of(format: str) -> set[str]:
    """The compatibility rules that are offered for a format or for a part of it."""
    return {rule for name, rules in RULES.items() if _have_overlap(name, format) for rule in rules}


def _check_rules(capabilities: Mapping[str, Json]) -> None:
    """Raises: CapabilityError for rules of a format that is not enabled."""
    for format in capabilities["compatibilities"]:
        if not any(_have_overlap(name, format) for name in capabilities["formats"]):
            raise CapabilityError(error_detail=f'"compatibilities" has "{format}", which "formats" does not have')


def _have_overlap(one: str, other: str) -> bool:
    return formats.matches_format(one, other) or formats.matches_format(other, one)


_CHECKS: Final[dict[str, Callable[[str, Json], Json]]] = {
    "available": _parse_available,
    "compatibilities": _parse_compatibilities,
    "flags": _parse_list,
    "formats": _parse_formats,
    "ignores": _parse_list,
    "pagination": _parse_boolean,
    "shortself": _parse_boolean,
    "specversions": _parse_list,
    "versionmodes": _parse_list,
}


def require_mutable(changes: ChangeSet, name: str, *, patch: bool) -> None:
    """Raises: ActionNotSupported if the capabilities before the request make this data immutable (ENT-68, C-7).

    An admin can always change the capabilities, so no capability value is permanent.
    """
    if name == "capabilities" and changes.context.role is Role.ADMIN:
        return
    if not current_capabilities(changes)["available"].get(name, {}).get("mutable", False):
        detail = f'"{name}" is not mutable according to the "available" capability'
        raise ActionNotSupported(action="PATCH" if patch else "PUT", detail=detail)


class EnabledFormats:
    """The formats and compatibility rules that are enabled (SC-15)."""

    def __init__(self, capabilities: Mapping[str, Json]) -> None:
        self.formats: Sequence[str] = capabilities["formats"]
        self._rules: Mapping[str, Sequence[str]] = capabilities["compatibilities"]
        self._validated_names: dict[str, bool] = {}  # many Versions share few formats

    def is_validated(self, name: str) -> bool:
        """Whether documents of a format are validated."""
        is_validated = self._validated_names.get(name)
        if is_validated is None:
            is_validated = formats.find_format(name) is not None and any(
                formats.matches_format(name, enabled_name) for enabled_name in self.formats
            )
            self._validated_names[name] = is_validated
        return is_validated

    def has_rule(self, name: str, rule: str) -> bool:
        """Whether a compatibility rule is checked between documents of a format."""
        return any(rule in rules for pattern, rules in self._rules.items() if formats.matches_format(name, pattern))


def _value_problem(field: str, value: Json, allowed: Any) -> Problem:
    allowed_text = ",".join(map(unquoted, allowed))
    value_text = unquoted(value)
    return CapabilityValue(value=value_text, field=field, list=allowed_text)
