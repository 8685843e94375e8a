"""Names of contexts and subjects, and the ids of the Groups and Resources that stand for them.

A qualified subject is `:.context:name`; one without a context is of the default context. Ids of the registry allow
fewer characters and ignore letter case, so a name that is no id is stored under an encoded id. The mapping is one to
one in both directions.
Rules CSR-301 to CSR-304, CSR-306, CSR-308 to CSR-311.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final, NamedTuple
from urllib.parse import unquote_to_bytes

from annals.domain.compat import ids as legacy_ids
from annals.domain.values import xid as xids

#: The types that contexts and subjects have in the registry.
GROUPS: Final = "schemagroups"
RESOURCES: Final = "schemas"
VERSIONS_TYPE: Final = f"{GROUPS}.{RESOURCES}.versions"

DEFAULT_CONTEXT: Final = "."
#: The context whose settings apply where nothing else is set.
GLOBAL_CONTEXT: Final = ".__GLOBAL"
#: The prefix that stands for all contexts.
ALL_CONTEXTS: Final = ":*:"
_MAX_NAME: Final = 4096
_RESERVED_NAMES: Final = frozenset(("", "*", ".", "..", "__GLOBAL", "__EMPTY"))
_CONTROL_CHARACTER: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")

_MAX_ID: Final = 128
_ESCAPED: Final = "_~"
_ENCODED: Final = "_~:"
_HASHED: Final = "_~::"
#: The characters of an encoded name before its hash.
_HASHED_PREFIX: Final = 60
#: Names whose ids stay known: one request asks for them several times.
_KNOWN_NAMES: Final = 500
_PLAIN_BYTES: Final = frozenset(b"abcdefghijklmnopqrstuvwxyz0123456789.-_@")


class Subject(NamedTuple):
    """A subject. context: begins with a dot. name: without its context; empty for the context itself."""

    context: str
    name: str

    @property
    def qualified(self) -> str:
        """The name as answers show it: bare in the default context (CSR-303)."""
        return self.name if self.context == DEFAULT_CONTEXT else f":{self.context}:{self.name}"

    @property
    def is_context(self) -> bool:
        """Whether it names the context itself, for its config and mode."""
        return not self.name

    @property
    def is_registrable(self) -> bool:
        """Whether schemas can be registered under it (CSR-311)."""
        return (
            self.name not in _RESERVED_NAMES
            and len(self.name) <= _MAX_NAME
            and parse_subject(self.qualified) == self
            and self.context != GLOBAL_CONTEXT
            and not _CONTROL_CHARACTER.search(self.name + self.context)
        )


def parse_subject(text: str, context: str = DEFAULT_CONTEXT) -> Subject:
    """The subject that a text names. context: of a text without one (CSR-302)."""
    if not text.startswith(":."):
        return Subject(context, text)
    named_context, _, name = text[1:].partition(":")
    return Subject(named_context, name)


def parse_context(text: str) -> str | None:
    """The context that a path segment names: `.x`, `x` or `:.x:`; None for a text that is no context (CSR-302)."""
    name = text.removeprefix(":").removesuffix(":") if text.startswith(":") else text
    if ":" in name:
        return None
    return name if name.startswith(".") else f".{name}"


def has_prefix(subject: Subject, prefix: str) -> bool:
    """Whether a subject matches a `subjectPrefix`: `:*:` is any context, no context the default one (CSR-304)."""
    if prefix.startswith(ALL_CONTEXTS):
        return subject.name.startswith(prefix.removeprefix(ALL_CONTEXTS))
    wanted = parse_subject(prefix)
    return subject.context == wanted.context and subject.name.startswith(wanted.name)


def sort_key(subject: Subject) -> bytes:
    """The order of subjects in answers: by code units of the qualified name (CSR-304)."""
    return subject.qualified.encode("utf-16-be", "surrogatepass")


# --- ids of the registry ---------------------------------------------------------------------------------------------


@lru_cache(_KNOWN_NAMES)
def candidate_ids(name: str) -> tuple[str, ...]:
    """The ids that may stand for a name, best first (CSR-308). A name that is too long for all but the last gets it."""
    return tuple(_candidate_ids(name))


def _candidate_ids(name: str) -> Iterator[str]:
    if not name.startswith("_~") and (readable_id := _readable_id(name)) is not None:
        yield readable_id
    encoded_name = _encode(name)
    if len(_ENCODED) + len(encoded_name) <= _MAX_ID:
        yield _ENCODED + encoded_name
    prefix = re.sub(r"~[0-9A-F]?\Z", "", encoded_name[:_HASHED_PREFIX])
    yield f"{_HASHED}{prefix}:{sha256(name.encode()).hexdigest()[:32]}"


def id_for(name: str, is_free: Callable[[str], bool]) -> str | None:
    """The first id for a name that is free; None where none is."""
    return next(filter(is_free, candidate_ids(name)), None)


def name_of_id(id: str) -> str:
    """The name for which an id stands where none is recorded."""
    return legacy_ids.to_legacy_id(id)


def _readable_id(name: str) -> str | None:
    try:
        return legacy_ids.to_registry_id(name)
    except ValueError:
        return None


def _encode(name: str) -> str:
    return "".join(chr(byte) if byte in _PLAIN_BYTES else f"~{byte:02X}" for byte in name.encode())


class EntityMembers(NamedTuple):
    """What decisions and answers read of a live entity. is_exact: its xid has the letter case of the requested one."""

    attributes: Mapping[str, Any]
    private: Mapping[str, Any]
    is_exact: bool = True


#: Returns the live entity at an xid in any letter case; None if there is none.
FindEntity = Callable[[str], EntityMembers | None]


class ContextIds(NamedTuple):
    """The mapping between contexts and ids of Groups. default_group: the Group of the default context (CSR-306)."""

    default_group: str = "default"

    def group_of(self, context: str, find: FindEntity) -> tuple[str, bool] | None:
        """The id of a context's Group, and whether it exists; None where every possible id stands for another one."""
        free_id: str | None = None
        for id in self.candidates(context):
            group = find(group_xid(id))
            if group is None:
                free_id = free_id or id
            elif group.is_exact and self.context_of(id, group.private.get("confluent", {}).get("context")) == context:
                return id, True
        return (free_id, False) if free_id is not None else None

    def candidates(self, context: str) -> Iterator[str]:
        """The ids that may stand for a context, best first."""
        if context == DEFAULT_CONTEXT:
            yield self.default_group
            return
        escaped = _id_of_escaped(context[1:])
        ids = candidate_ids(context[1:]) if escaped is None else (escaped, *candidate_ids(context[1:]))
        yield from (id for id in ids if id.lower() != self.default_group.lower())

    def context_of(self, group: str, recorded: str | None = None) -> str:
        """The context for which a Group stands. recorded: its fact, where its id is not the name."""
        if group == self.default_group:
            return DEFAULT_CONTEXT
        name = recorded if recorded is not None else name_of_id(group)
        return f".{_escaped_name(group) if recorded is None and _needs_escape(name) else name}"


def _needs_escape(name: str) -> bool:
    """Whether the name of a Group that another API has made cannot name its context, or may be the name of another."""
    return ":" in name or name.startswith(_ESCAPED)


def _escaped_name(id: str) -> str:
    return _ESCAPED + _encode(id)


def _id_of_escaped(name: str) -> str | None:
    """The id of the Group whose context has an escaped name; None for another name."""
    if not name.startswith(_ESCAPED):
        return None
    try:
        id = unquote_to_bytes(name.removeprefix(_ESCAPED).replace("~", "%")).decode()
    except UnicodeDecodeError:
        return None
    is_id = xids.ID.match(id) is not None and _escaped_name(id) == name
    return id if is_id and _needs_escape(name_of_id(id)) else None


def group_xid(group: str) -> str:
    return xids.join(GROUPS, group)


def candidate_xids(subject: Subject, context_ids: ContextIds) -> list[str]:
    """The xids of the Groups that may stand for a subject's context, then of the Resources in the likeliest of them."""
    groups = list(context_ids.candidates(subject.context))
    resources = [resource_xid(groups[0], id) for id in candidate_ids(subject.name)] if groups and subject.name else []
    return [*map(group_xid, groups), *resources]


def resource_xid(group: str, resource: str) -> str:
    return xids.join(GROUPS, group, RESOURCES, resource)


#: Those of a registry without a setting.
DEFAULT_CONTEXT_IDS: Final = ContextIds()
