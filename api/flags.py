"""Request flags: the query parameters that the specification defines.

Spec: core 1.0-rc4, "Request Flags".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote_plus

from api.capabilities import Capabilities
from api.paths import Kind, Target
from domain import problems

#: Flags that this registry understands; the others are unknown parameters, and those are ignored.
KNOWN: Final = frozenset(("collections", "doc", "epoch", "ignore", "inline", "setdefaultversionid"))
#: Flags with one value, which therefore appear once.
SINGLE: Final = ("epoch", "setdefaultversionid")
#: What a request with `setdefaultversionid` may be about, as long as it is a write.
VERSIONED: Final = frozenset((Kind.RESOURCE, Kind.META, Kind.VERSIONS, Kind.VERSION))
#: `inline=*` in the words of the flag.
EVERYTHING: Final = ("*",)
#: What an export shows unless it is told otherwise.
EXPORTED: Final = ("*", "capabilities", "modelsource")


@dataclass(frozen=True, slots=True)
class Flags:
    """The flags of one request. inline: paths as given, None when absent. epoch: the raw value."""

    doc: bool = False
    collections: bool = False
    inline: tuple[str, ...] | None = None
    ignore: frozenset[str] = frozenset()
    epoch: str | None = None
    setdefaultversionid: str | None = None


NO_FLAGS: Final = Flags()
EXPORT_FLAGS: Final = Flags(doc=True, inline=EXPORTED)


def parse_flags(query: bytes, target: Target, method: str, capabilities: Capabilities) -> Flags:
    """The flags of a request; those that the capabilities leave out count as absent.

    Raises: BadFlag, BadIgnore, BadDefaultversionid.
    """
    if not query:
        return EXPORT_FLAGS if target.kind is Kind.EXPORT else NO_FLAGS
    given = _parameters(query, KNOWN & capabilities.flags)
    for check in _CHECKS:
        check(given, target, method)
    whole = "collections" in given
    inline = given.get("inline")
    return Flags(
        doc="doc" in given or target.kind is Kind.EXPORT,
        collections=whole,
        inline=_list(inline) if inline else EVERYTHING if whole else EXPORTED if target.kind is Kind.EXPORT else None,
        ignore=_ignored(given["ignore"], capabilities.ignores) if "ignore" in given else frozenset(),
        epoch=_one(given, "epoch"),
        setdefaultversionid=_one(given, "setdefaultversionid"),
    )


Given = Mapping[str, list[str]]


def _parameters(query: bytes, known: frozenset[str]) -> dict[str, list[str]]:
    """Raw values by name: a comma or `=` that is percent-encoded belongs to a value."""
    given: dict[str, list[str]] = {}
    for parameter in query.decode("latin-1").split("&"):
        name, _, value = parameter.partition("=")
        name = unquote_plus(name)
        if name in known:
            given.setdefault(name, []).append(value)
    return given


def _list(values: list[str]) -> tuple[str, ...]:
    """All parts of a list flag; without any it means everything."""
    parts = tuple(unquote_plus(part) for value in values for part in value.split(",") if value)
    return parts or EVERYTHING


def _one(given: Given, name: str) -> str | None:
    return unquote_plus(given[name][0]) if name in given else None


def _ignored(values: list[str], supported: frozenset[str]) -> frozenset[str]:
    names = _list(values)
    for name in names:
        if name != "*" and name not in supported:
            known = ", ".join(sorted(supported))
            raise problems.BadIgnore(value=name, error_detail=f"it is not one of: {known}")
    return supported if "*" in names else frozenset(names)


def _appears_once(given: Given, target: Target, method: str) -> None:
    for name in SINGLE:
        if len(given.get(name, ())) > 1:
            raise problems.BadFlag(flag=name)


def _collections_has_collections(given: Given, target: Target, method: str) -> None:
    if "collections" in given and target.kind not in (Kind.REGISTRY, Kind.EXPORT, Kind.GROUP):
        raise problems.BadFlag(flag="collections")


def _default_is_of_one_resource(given: Given, target: Target, method: str) -> None:
    value = _one(given, "setdefaultversionid")
    if value is None:
        return
    if target.kind not in VERSIONED or method in ("GET", "HEAD"):
        raise problems.BadFlag(flag="setdefaultversionid")
    if value == "":
        raise problems.BadDefaultversionid(value=value, error_detail="a versionid is needed")


_CHECKS: Final[tuple[Callable[[Given, Target, str], None], ...]] = (
    _appears_once,
    _collections_has_collections,
    _default_is_of_one_resource,
)
