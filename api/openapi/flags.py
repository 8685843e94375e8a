"""The request flags as query parameters: what each says, and where it may stand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from api.capabilities import Capabilities
from api.flags import KNOWN, OWN, PAGING, VERSIONED
from api.paths import COLLECTIONS, Kind

Parameter = dict[str, Any]

_SWITCH: Final = {"schema": {"const": ""}, "allowEmptyValue": True}
_LIST: Final = {"style": "form", "explode": False, "allowEmptyValue": True}
_TEXTS: Final = {"schema": {"type": "array", "items": {"type": "string"}}, **_LIST}
_TEXT: Final = {"schema": {"type": "string"}}

#: Paths that show nothing but a text of the registry's configuration.
_CONFIGURATION: Final = (Kind.CAPABILITIES, Kind.MODEL, Kind.MODELSOURCE)


def _shows(kind: Kind, method: str) -> bool:
    return method != "DELETE" and kind not in _CONFIGURATION


def _writes(kind: Kind, method: str) -> bool:
    return method != "GET"


def _reads(kind: Kind, method: str) -> bool:
    return method == "GET"


def _has_collections(kind: Kind, method: str) -> bool:
    return method != "DELETE" and kind in (Kind.REGISTRY, Kind.GROUP, Kind.EXPORT)


def _exports(kind: Kind, method: str) -> bool:
    return method == "GET" and kind is Kind.EXPORT


def _deletes_one(kind: Kind, method: str) -> bool:
    return method == "DELETE" and kind not in COLLECTIONS


def _reads_many(kind: Kind, method: str) -> bool:
    return method == "GET" and kind in COLLECTIONS


def _is_of_one_resource(kind: Kind, method: str) -> bool:
    return _writes(kind, method) and kind in VERSIONED


def _anywhere(kind: Kind, method: str) -> bool:
    return True


class Flag(NamedTuple):
    """One flag. on: whether a request to a kind of path takes it; shape: the rest of its Parameter Object."""

    says: str
    on: Callable[[Kind, str], bool]
    shape: Parameter


FLAGS: Final[dict[str, Flag]] = {
    "asof": Flag(
        "Answers as of a moment of the past: a position of the log, an RFC 3339 time or a correlation id.",
        _reads,
        _TEXT,
    ),
    "binary": Flag("Inlines documents as base64.", _shows, _SWITCH),
    "collections": Flag("Answers with the nested collections alone, inlined.", _has_collections, _SWITCH),
    "cursor": Flag("Goes on where a page ended; it is part of the links between pages.", _reads_many, _TEXT),
    "doc": Flag("Answers with the document view, whose URLs point into the answer.", _shows, _SWITCH),
    "dryrun": Flag("Answers a write with the events that it would append, and does nothing.", _writes, _SWITCH),
    "epoch": Flag("Deletes only what has this epoch; for a Resource it is that of its meta.", _deletes_one, _TEXT),
    "filter": Flag(
        "Shows only what fits; parts of one value hold together, of several values any.",
        _shows,
        {"schema": {"type": "array", "items": {"type": "string"}}, "style": "form", "explode": True},
    ),
    "ignore": Flag("Leaves out some checks of the request; without a value, all that can be.", _writes, _TEXTS),
    "inline": Flag("Nests what belongs to an entity into the answer, by path; `*` is everything.", _shows, _TEXTS),
    "limit": Flag(
        "Asks for pages of at most so many entities.", _reads_many, {"schema": {"type": "integer", "minimum": 1}}
    ),
    "setdefaultversionid": Flag(
        "Makes a Version the default one: its id, `null` for the newest, or `request` for the one in the request.",
        _is_of_one_resource,
        _TEXT,
    ),
    "sort": Flag("Orders a collection by an attribute: `name`, `name=desc`.", _reads_many, _TEXT),
    "stated": Flag("Leaves out defaults and xids: what clients stated, to be taken in elsewhere.", _exports, _SWITCH),
    "specversion": Flag("Asks for a version of the specification.", _anywhere, _TEXT),
}


def served(capabilities: Capabilities) -> dict[str, Flag]:
    """The flags that the capabilities have on, those of this server alone, and those of pages where there are any."""
    names = (KNOWN & capabilities.flags) | (PAGING if capabilities.pagination else frozenset()) | OWN
    return {name: flag for name, flag in FLAGS.items() if name in names}


def parameters(capabilities: Capabilities) -> dict[str, Parameter]:
    """The Parameter Objects of the flags, by name."""
    found = {name: _parameter(name, flag) for name, flag in served(capabilities).items()}
    if "ignore" in found:
        items = {"enum": ["*", *sorted(capabilities.ignores)]}
        found["ignore"] = {**found["ignore"], "schema": {"type": "array", "items": items}}
    return found


def names(kind: Kind, method: str, capabilities: Capabilities) -> list[str]:
    """The flags that a request takes."""
    return [name for name, flag in served(capabilities).items() if flag.on(kind, method)]


def _parameter(name: str, flag: Flag) -> Parameter:
    return {"name": name, "in": "query", "description": flag.says, **flag.shape}
