"""The request flags as OpenAPI query parameters: the description of each, and the requests that accept it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from api.registry.capabilities import Capabilities
from api.xregistry.request.flags import KNOWN_FLAGS, OWN_FLAGS, PAGING_FLAGS, VERSIONED_KINDS
from api.xregistry.request.paths import COLLECTION_KINDS, PathKind

Parameter = dict[str, Any]

_SWITCH: Final = {"schema": {"const": ""}, "allowEmptyValue": True}
_LIST: Final = {"style": "form", "explode": False, "allowEmptyValue": True}
_TEXTS: Final = {"schema": {"type": "array", "items": {"type": "string"}}, **_LIST}
_TEXT: Final = {"schema": {"type": "string"}}

#: Paths that show only a text of the registry's configuration.
_CONFIGURATION: Final = (PathKind.CAPABILITIES, PathKind.MODEL, PathKind.MODELSOURCE)


def _has_response_body(kind: PathKind, method: str) -> bool:
    return method != "DELETE" and kind not in _CONFIGURATION


def _is_write(kind: PathKind, method: str) -> bool:
    return method != "GET"


def _is_read(kind: PathKind, method: str) -> bool:
    return method == "GET"


def _has_collections(kind: PathKind, method: str) -> bool:
    return method != "DELETE" and kind in (PathKind.REGISTRY, PathKind.GROUP, PathKind.EXPORT)


def _is_export(kind: PathKind, method: str) -> bool:
    return method == "GET" and kind is PathKind.EXPORT


def _is_entity_delete(kind: PathKind, method: str) -> bool:
    return method == "DELETE" and kind not in COLLECTION_KINDS


def _is_collection_read(kind: PathKind, method: str) -> bool:
    return method == "GET" and kind in COLLECTION_KINDS


def _is_of_one_resource(kind: PathKind, method: str) -> bool:
    return _is_write(kind, method) and kind in VERSIONED_KINDS


def _is_any(kind: PathKind, method: str) -> bool:
    return True


class FlagParameter(NamedTuple):
    """One flag.

    is_supported: whether a request to a kind of path accepts it. members: the other members of its Parameter Object.
    """

    description: str
    is_supported: Callable[[PathKind, str], bool]
    members: Parameter


FLAGS: Final[dict[str, FlagParameter]] = {
    "asof": FlagParameter(
        "Answers as of a moment of the past: a position of the log, an RFC 3339 time or a correlation id.",
        _is_read,
        _TEXT,
    ),
    "binary": FlagParameter("Inlines documents as base64.", _has_response_body, _SWITCH),
    "collections": FlagParameter("Answers with the nested collections alone, inlined.", _has_collections, _SWITCH),
    "cursor": FlagParameter(
        "Goes on where a page ended; it is part of the links between pages.", _is_collection_read, _TEXT
    ),
    "doc": FlagParameter(
        "Answers with the document view, whose URLs point into the answer.", _has_response_body, _SWITCH
    ),
    "dryrun": FlagParameter(
        "Answers a write with the events that it would append, and does nothing.", _is_write, _SWITCH
    ),
    "epoch": FlagParameter(
        "Deletes only what has this epoch; for a Resource it is that of its meta.", _is_entity_delete, _TEXT
    ),
    "filter": FlagParameter(
        "Shows only what fits; parts of one value hold together, of several values any.",
        _has_response_body,
        {"schema": {"type": "array", "items": {"type": "string"}}, "style": "form", "explode": True},
    ),
    "ignore": FlagParameter(
        "Leaves out some checks of the request; without a value, all that can be.", _is_write, _TEXTS
    ),
    "inline": FlagParameter(
        "Nests what belongs to an entity into the answer, by path; `*` is everything.", _has_response_body, _TEXTS
    ),
    "limit": FlagParameter(
        "Asks for pages of at most so many entities.",
        _is_collection_read,
        {"schema": {"type": "integer", "minimum": 1}},
    ),
    "setdefaultversionid": FlagParameter(
        "Makes a Version the default one: its id, `null` for the newest, or `request` for the one in the request.",
        _is_of_one_resource,
        _TEXT,
    ),
    "sort": FlagParameter("Orders a collection by an attribute: `name`, `name=desc`.", _is_collection_read, _TEXT),
    "stated": FlagParameter(
        "Leaves out defaults and xids: what clients stated, to be taken in elsewhere.", _is_export, _SWITCH
    ),
    "specversion": FlagParameter("Asks for a version of the specification.", _is_any, _TEXT),
}


def served_flags(capabilities: Capabilities) -> dict[str, FlagParameter]:
    """The flags that the capabilities enable, this server's own flags, and those of pagination if it is enabled."""
    names = (KNOWN_FLAGS & capabilities.flags) | (PAGING_FLAGS if capabilities.pagination else frozenset()) | OWN_FLAGS
    return {name: flag for name, flag in FLAGS.items() if name in names}


def flag_parameters(capabilities: Capabilities) -> dict[str, Parameter]:
    """The Parameter Objects of the flags, by name."""
    parameters = {name: _parameter(name, flag) for name, flag in served_flags(capabilities).items()}
    if "ignore" in parameters:
        items = {"enum": ["*", *sorted(capabilities.ignores)]}
        parameters["ignore"] = {**parameters["ignore"], "schema": {"type": "array", "items": items}}
    return parameters


def flag_names(kind: PathKind, method: str, capabilities: Capabilities) -> list[str]:
    """The names of the flags that a request accepts."""
    return [name for name, flag in served_flags(capabilities).items() if flag.is_supported(kind, method)]


def _parameter(name: str, flag: FlagParameter) -> Parameter:
    return {"name": name, "in": "query", "description": flag.description, **flag.members}
