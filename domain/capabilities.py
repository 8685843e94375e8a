"""The capabilities: what this server offers, what a registry has switched on, and how a request changes that.

Spec: core 1.0-rc4, "Registry Capabilities". Rules CAP-1 to CAP-15.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from domain import xid as xids
from domain.changes import ChangeSet
from domain.commands import IGNORES
from domain.images import Facts
from domain.jsontext import Json, dumps
from domain.problems import (
    ActionNotSupported,
    CapabilityError,
    CapabilityMissingValue,
    CapabilityUnknown,
    CapabilityValue,
    CapabilityWildcard,
    Problem,
)
from domain.rules.ancestry import MODES

SPECVERSION: Final = "1.0-rc4"

#: What can be switched on. Lists name their possible members, booleans their possible values.
OFFERED: Final[dict[str, tuple[Any, ...]]] = {
    "flags": (
        *("binary", "collections", "doc", "epoch", "filter", "ignore", "inline"),
        *("setdefaultversionid", "sort", "specversion"),
    ),
    "formats": (),
    "ignores": IGNORES,
    "pagination": (False, True),
    "shortself": (False, True),
    "specversions": (SPECVERSION,),
    "versionmodes": MODES,
}
#: Kinds of data and whether they can be mutable.
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
#: What a new registry starts with: everything.
INITIAL: Final[dict[str, Json]] = {
    **DEFAULTS,
    "available": {name: {"mutable": values[-1]} for name, values in AVAILABLE.items()},
    "pagination": True,
    **{name: list(OFFERED[name]) for name in ("flags", "formats", "ignores", "specversions", "versionmodes")},
}


def offered() -> dict[str, Json]:
    """Every capability with its type and the values that it can have (CAP-20 to CAP-22)."""
    lists = {name: _array("string", values) for name, values in OFFERED.items() if name not in _BOOLEANS}
    booleans = {name: {"type": "boolean", "enum": list(OFFERED[name])} for name in _BOOLEANS}
    kinds = {
        name: _object({"mutable": {"type": "boolean", "enum": list(values)}}) for name, values in AVAILABLE.items()
    }
    objects = {"available": _object(kinds), "compatibilities": _object({})}
    found: dict[str, Json] = {**objects, **lists, **booleans}
    return {name: found[name] for name in DEFAULTS}


_BOOLEANS: Final = ("pagination", "shortself")


def _array(item: str, values: Sequence[Any]) -> Json:
    return {"type": "array", "item": {"type": item}, "enum": list(values)}


def _object(attributes: dict[str, Any]) -> Json:
    return {"type": "object", "attributes": attributes}


def write(changes: ChangeSet, value: Json, *, patch: bool) -> None:
    """Takes new capabilities into a change, as an event of their own and an update of the registry.

    value: null stands for all defaults. Nothing happens where nothing differs. Raises: the Capability problems.
    """
    before = current(changes)
    after = updated(before, value, patch=patch)
    differing = sorted(name for name in after if after[name] != before.get(name))
    if not differing:
        return
    require_mutable(changes, "capabilities", patch=patch)
    check_modes(changes, after["versionmodes"])
    store(changes, after, tuple(differing))
    registry = changes.registry()
    registry.listed |= {"capabilities"}
    registry.touch()


def current(changes: ChangeSet) -> dict[str, Json]:
    """The capabilities in force."""
    entity = changes.world.get(xids.CAPABILITIES)
    return entity.attributes if entity else INITIAL


def store(changes: ChangeSet, capabilities: dict[str, Json], differing: tuple[str, ...] = ()) -> None:
    """Records capabilities as they now are."""
    before = changes.world.get(xids.CAPABILITIES)
    changes.roots[xids.CAPABILITIES] = Facts(
        xids.CAPABILITIES,
        before.epoch + 1 if before else 1,
        capabilities,
        changed=differing,
        new=before is None,
        updated=before is not None,
    )


def updated(before: Mapping[str, Json], value: Json, *, patch: bool) -> dict[str, Json]:
    """The capabilities after a request. Raises: the Capability problems."""
    given = {} if value is None else value
    if not isinstance(given, dict):
        raise CapabilityError(error_detail="the capabilities have to be an object")
    for name in given:
        if name not in DEFAULTS:
            raise CapabilityUnknown(field=name)
    checked = {name: _CHECKS[name](name, item) for name, item in given.items() if item is not None}
    reset = {name: DEFAULTS[name] for name in given if given[name] is None}
    base = before if patch and value is not None else DEFAULTS
    return {name: {**base, **reset, **checked}[name] for name in DEFAULTS}


def _list(name: str, value: Json) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise _bad_value(name, value, OFFERED[name])
    if "*" in value:
        if len(value) > 1:
            raise CapabilityWildcard(field=name)
        return list(OFFERED[name])
    offered = {item.lower(): item for item in OFFERED[name]}
    for item in value:
        if item.lower() not in offered:
            raise _bad_value(name, item, OFFERED[name])
    chosen = {item.lower() for item in value}
    _require(name, chosen)
    return [item for item in OFFERED[name] if item.lower() in chosen]


def _require(name: str, chosen: set[str]) -> None:
    needed = {"specversions": SPECVERSION, "versionmodes": "manual"}.get(name)
    if needed is not None and needed not in chosen:
        raise CapabilityMissingValue(name=name, value=needed)


def _formats(name: str, value: Json) -> list[str]:
    if isinstance(value, list) and value and value != ["*"] and all(isinstance(item, str) for item in value):
        unknown = [item for item in value if item not in OFFERED[name]]
        if unknown and "*" not in value:
            raise CapabilityError(error_detail=f'the format "{unknown[0]}" is not offered')
    return _list(name, value)


def _boolean(name: str, value: Json) -> bool:
    if not isinstance(value, bool) or value not in OFFERED[name]:
        raise _bad_value(name, value, OFFERED[name])
    return value


def _available(name: str, value: Json) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise _bad_value(name, value, tuple(AVAILABLE))
    given = {key.lower(): entry for key, entry in value.items()}
    for key, entry in given.items():
        if key not in AVAILABLE:
            raise _bad_value(name, key, tuple(AVAILABLE))
        if not isinstance(entry, dict) or set(entry) - {"mutable"}:
            raise _bad_value(f"{name}.{key}", entry, ({"mutable": choice} for choice in AVAILABLE[key]))
        if not isinstance(entry.get("mutable", False), bool) or entry.get("mutable", False) not in AVAILABLE[key]:
            raise _bad_value(f"{name}.{key}.mutable", entry.get("mutable"), AVAILABLE[key])
    for key in _ALWAYS_AVAILABLE:
        if key not in given:
            raise CapabilityMissingValue(name=name, value=key)
    return {key: {"mutable": given[key].get("mutable", False)} for key in AVAILABLE if key in given}


def _compatibilities(name: str, value: Json) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise _bad_value(name, value, ())
    for format in value:
        raise CapabilityError(error_detail=f'no compatibility rule is offered for the format "{format}"')
    return {}


_CHECKS: Final[dict[str, Callable[[str, Json], Json]]] = {
    "available": _available,
    "compatibilities": _compatibilities,
    "flags": _list,
    "formats": _formats,
    "ignores": _list,
    "pagination": _boolean,
    "shortself": _boolean,
    "specversions": _list,
    "versionmodes": _list,
}


def require_mutable(changes: ChangeSet, name: str, *, patch: bool) -> None:
    """Raises: ActionNotSupported where the capabilities before the request say that this is fixed (ENT-68, C-7)."""
    if not current(changes)["available"].get(name, {}).get("mutable", False):
        detail = f'"{name}" is not mutable, says the "available" capability'
        raise ActionNotSupported(action="PATCH" if patch else "PUT", detail=detail)


def check_modes(changes: ChangeSet, modes: list[str]) -> None:
    """Raises: CapabilityError for a Resource type whose `versionmode` is not among some modes (CAP-15)."""
    for group in changes.model.groups.values():
        for type in group.resources.values():
            if type.versionmode not in modes:
                raise CapabilityError(
                    error_detail=f'"{group.plural}.{type.plural}" uses the versionmode "{type.versionmode}"'
                )


def _bad_value(field: str, value: Json, allowed: Any) -> Problem:
    texts = ",".join(item if isinstance(item, str) else dumps(item).decode() for item in allowed)
    shown = value if isinstance(value, str) else dumps(value).decode()
    return CapabilityValue(value=shown, field=field, list=texts)
