"""The request flags as OpenAPI query parameters: the description of each, and the requests that accept it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from annals.api.registry.capabilities import Capabilities
from annals.api.xregistry.request.flags import KNOWN_FLAGS, OWN_FLAGS, PAGING_FLAGS, VERSIONED_KINDS
from annals.api.xregistry.request.paths import COLLECTION_KINDS, PathKind

Parameter = dict[str, Any]

_SWITCH: Final = {"schema": {"type": "string", "const": ""}, "allowEmptyValue": True}
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

    on: whether a request to a kind of path accepts it. shape: the other members of its Parameter Object.
    """

    says: str
    on: Callable[[PathKind, str], bool]
    shape: Parameter


FLAGS: Final[dict[str, FlagParameter]] = {
    "asof": FlagParameter(
        "Returns the state at a point in the past: a position of the log, an RFC 3339 time or a correlation id.",
        _is_read,
        _TEXT,
    ),
    "binary": FlagParameter("Inlines documents as base64.", _has_response_body, _SWITCH),
    "collections": FlagParameter("Returns only the nested collections, inlined.", _has_collections, _SWITCH),
    "cursor": FlagParameter(
        "Continues after the previous page; the links between pages contain it.", _is_collection_read, _TEXT
    ),
    "doc": FlagParameter("Returns the document view, whose URLs point into the response.", _has_response_body, _SWITCH),
    "dryrun": FlagParameter(
        "Returns the events that the write would append, without writing them.", _is_write, _SWITCH
    ),
    "epoch": FlagParameter(
        "Deletes the entity only if it has this epoch; for a Resource, if its meta has it.", _is_entity_delete, _TEXT
    ),
    "filter": FlagParameter(
        "Returns only matching entities: all comma-separated parts of a value must match, and any of several values.",
        _has_response_body,
        {"schema": {"type": "array", "items": {"type": "string"}}, "style": "form", "explode": True},
    ),
    "ignore": FlagParameter(
        "Skips checks or parts of the request; without a value, all that can be skipped.", _is_write, _TEXTS
    ),
    "inline": FlagParameter(
        "Includes nested entities in the response, by path; `*` includes all of them.", _has_response_body, _TEXTS
    ),
    "limit": FlagParameter(
        "The maximum number of entities in a page.", _is_collection_read, {"schema": {"type": "integer", "minimum": 1}}
    ),
    "setdefaultversionid": FlagParameter(
        "Sets the default Version: its id, `null` for the newest, or `request` for the one in the request.",
        _is_of_one_resource,
        _TEXT,
    ),
    "sort": FlagParameter("Sorts a collection by an attribute: `name`, `name=desc`.", _is_collection_read, _TEXT),
    "stated": FlagParameter("Omits defaults and xids, for import into another registry.", _is_export, _SWITCH),
    "specversion": FlagParameter("Requests a version of the specification.", _is_any, _TEXT),
}


def served_flags(capabilities: Capabilities) -> dict[str, FlagParameter]:
    """The flags that the capabilities enable, this server's own flags, and those of pagination if it is enabled."""
    names = (KNOWN_FLAGS & capabilities.flags) | (PAGING_FLAGS if capabilities.pagination else frozenset()) | OWN_FLAGS
    return {name: flag for name, flag in FLAGS.items() if name in names}


def flag_parameters(capabilities: Capabilities) -> dict[str, Parameter]:
    """The Parameter Objects of the flags, by name."""
    parameters = {name: _parameter(name, flag) for name, flag in served_flags(capabilities).items()}
    if "ignore" in parameters:
        items = {"type": "string", "enum": ["*", *sorted(capabilities.ignores)]}
        parameters["ignore"] = {**parameters["ignore"], "schema": {"type": "array", "items": items}}
    return parameters


def flag_names(kind: PathKind, method: str, capabilities: Capabilities) -> list[str]:
    """The names of the flags that a request accepts."""
    return [name for name, flag in served_flags(capabilities).items() if flag.on(kind, method)]


def _parameter(name: str, flag: FlagParameter) -> Parameter:
    return {"name": name, "in": "query", "description": flag.says, **flag.shape}
