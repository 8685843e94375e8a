"""Configs and modes: their members, the scopes in which they apply, and where they are kept.

Settings of a subject are facts of its Resource, or of its Group while it has none; those of a context are facts of its
Group; those of the default context and of all contexts are facts of the registry. The level of a subject that has a
Resource is `meta.compatibility`, so it is shared with all other APIs.
Rules CSR-701 to CSR-713.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from annals.domain.confluent.errors import SchemaRegistryError, invalid_compatibility, invalid_mode
from annals.domain.confluent.subjects import DEFAULT_CONTEXT, GLOBAL_CONTEXT, Subject

LEVEL: Final = "compatibilityLevel"
NONE_LEVEL: Final = "NONE"
LEVELS: Final = (
    NONE_LEVEL,
    *(f"{name}{suffix}" for name in ("BACKWARD", "FORWARD", "FULL") for suffix in ("", "_TRANSITIVE")),
)
POLICIES: Final = ("STRICT", "LENIENT", "LOGICAL")
READWRITE: Final = "READWRITE"
READONLY_MODES: Final = ("READONLY", "READONLY_OVERRIDE")
IMPORT: Final = "IMPORT"
FORWARD: Final = "FORWARD"
MODES: Final = (READWRITE, *READONLY_MODES, IMPORT, FORWARD)
#: The members of a config besides the level, and the types of their values.
CONFIG_MEMBERS: Final[Mapping[str, type]] = {
    "compatibilityGroup": str,
    "compatibilityPolicy": str,
    "normalize": bool,
    "alias": str,
    "aliasForDeks": str,
    "validateFields": bool,
    "validateNewSchemas": bool,
    "validateRules": bool,
    "defaultMetadata": dict,
    "overrideMetadata": dict,
    "defaultRuleSet": dict,
    "overrideRuleSet": dict,
}
#: Members that subjects do not inherit.
_OWN_MEMBERS: Final = frozenset(("alias", "aliasForDeks"))

Settings = Mapping[str, Any]


class ScopeSettings(NamedTuple):
    """What is set in one scope. config: empty if nothing is. mode: None if it is not set."""

    config: Settings
    mode: str | None

    @property
    def is_empty(self) -> bool:
        return not self.config and self.mode is None

    def members(self) -> dict[str, Any]:
        """As facts."""
        return {name: value for name, value in self._asdict().items() if value}


NO_SETTINGS: Final = ScopeSettings({}, None)
#: Returns what is set for a subject, a context (a subject without a name), or all contexts.
ReadScope = Callable[[Subject], ScopeSettings]


def scopes(subject: Subject) -> Iterator[Subject]:
    """The scopes that apply to a subject, the nearest first (CSR-704)."""
    if subject.name:
        yield subject
    if subject.context != GLOBAL_CONTEXT:
        yield Subject(subject.context, "")
    yield Subject(GLOBAL_CONTEXT, "")


def effective_config(subject: Subject, read: ReadScope, default_level: str) -> dict[str, Any]:
    """The config that applies to a subject; the nearest scope decides about each member."""
    config: dict[str, Any] = {}
    for scope in scopes(subject):
        inherited = {
            name: value for name, value in read(scope).config.items() if scope == subject or name not in _OWN_MEMBERS
        }
        config = {**inherited, **config}
    return {**config, LEVEL: config.get(LEVEL, default_level)}


def effective_mode(subject: Subject, read: ReadScope) -> str:
    """The mode that applies to a subject."""
    return next((mode for scope in scopes(subject) if (mode := read(scope).mode) is not None), READWRITE)


def is_of_registry(subject: Subject) -> bool:
    """Whether the registry keeps the settings: those of the default context and of all contexts."""
    return subject.is_context and subject.context in (DEFAULT_CONTEXT, GLOBAL_CONTEXT)


def settings_of_facts(facts: Settings) -> ScopeSettings:
    """Members of wrong types, which earlier releases accepted, count as absent."""
    config = {name: value for name, value in facts.get("config", {}).items() if _has_type(name, value)}
    return ScopeSettings(config, facts.get("mode"))


def _has_type(name: str, value: Any) -> bool:
    return isinstance(value, CONFIG_MEMBERS.get(name, str))


def settings_of_resource(facts: Settings, compatibility: str | None) -> ScopeSettings:
    """The settings of a subject with a Resource. compatibility: of its meta, which is its level (CSR-713)."""
    settings = settings_of_facts(facts)
    config = {name: value for name, value in settings.config.items() if name != LEVEL}
    if compatibility is not None:
        config[LEVEL] = compatibility.upper()
    elif settings.config.get(LEVEL) == NONE_LEVEL:
        config[LEVEL] = NONE_LEVEL
    return ScopeSettings(config, settings.mode)


def changed_config(config: Settings, values: Settings) -> dict[str, Any]:
    """A config with other values, None to clear one; unknown members are ignored. Raises: SchemaRegistryError."""
    changed = dict(config)
    for name, value in values.items():
        if name in ("compatibility", LEVEL):
            _set(changed, LEVEL, parse_level(value) if value is not None else None)
        elif name == "compatibilityPolicy" and value is not None and str(value).upper() not in POLICIES:
            raise invalid_compatibility(f"policy {value}")
        elif name in CONFIG_MEMBERS:
            if value is not None and not _has_type(name, value):
                raise SchemaRegistryError(422, f'The member "{name}" has a wrong type')
            _set(changed, name, str(value).upper() if name == "compatibilityPolicy" and value is not None else value)
    return changed


def _set(members: dict[str, Any], name: str, value: Any) -> None:
    if value is None:
        members.pop(name, None)
    else:
        members[name] = value


def parse_level(value: Any) -> str:
    """A level in upper case. Raises: SchemaRegistryError."""
    level = str(value).upper()
    if level not in LEVELS:
        raise invalid_compatibility(str(value))
    return level


def parse_mode(value: Any, subject: Subject) -> str | None:
    """A mode in upper case; None to clear it. Raises: SchemaRegistryError."""
    if value is None:
        return None
    mode = str(value).upper()
    if mode not in MODES or (mode == FORWARD and subject != Subject(GLOBAL_CONTEXT, "")):
        raise invalid_mode(str(value))
    return mode
