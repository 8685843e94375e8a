"""Request flags: the query parameters that the specification defines.

Spec: core 1.0-rc4, "Request Flags".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import unquote_plus

from annals.api.http.query_params import parse_number
from annals.api.http.request import READ_METHODS
from annals.api.registry.capabilities import Capabilities
from annals.api.xregistry.request.paths import COLLECTION_KINDS, PathKind, RequestTarget
from annals.domain.errors import problems
from annals.domain.model.spec_attributes import SPECVERSION

#: Flags that this registry supports. Other parameters are ignored.
KNOWN_FLAGS: Final = frozenset(
    (
        *("binary", "collections", "doc", "epoch", "filter", "ignore", "inline"),
        *("setdefaultversionid", "sort", "specversion"),
    )
)
#: Parameters of pagination, which are not flags: the `pagination` capability enables them (PAG-8).
PAGING_FLAGS: Final = frozenset(("limit", "cursor"))
#: Flags of this registry beyond the spec: no capability lists or disables them (FLAG-84).
OWN_FLAGS: Final = frozenset(("asof", "dryrun", "stated"))
#: Flags with one value, which may appear only once.
SINGLE_FLAGS: Final = ("asof", "epoch", "setdefaultversionid", "sort", "specversion", "limit", "cursor")
#: Flags that have a meaning for writes only.
WRITE_FLAGS: Final = ("epoch", "ignore", "setdefaultversionid")
#: Targets that are not entities, so a filter cannot apply to them.
UNFILTERED_KINDS: Final = frozenset((PathKind.CAPABILITIES, PathKind.MODEL, PathKind.MODELSOURCE))
#: Targets of a write with `setdefaultversionid`.
VERSIONED_KINDS: Final = frozenset((PathKind.RESOURCE, PathKind.META, PathKind.VERSIONS, PathKind.VERSION))
#: Largest limit of a page.
_MAX_LIMIT: Final = (1 << 64) - 1
#: The patch number, which is ignored when versions are compared (FLAG-60).
_PATCH_VERSION: Final = re.compile(r"^([0-9]+\.[0-9]+)\.[0-9]+")
#: The parsed value of `inline=*`.
INLINE_EVERYTHING: Final = ("*",)
#: The default value of `inline` for an export.
INLINE_OF_EXPORT: Final = ("*", "capabilities", "modelsource")


@dataclass(frozen=True, slots=True)
class Flags:
    """The flags of one request. inline: paths as given; None if absent. epoch: the raw value.

    filter: alternatives (OR), each a tuple of expressions that must all hold (AND); None if absent. sort: the raw
    value. limit, cursor: of a page. dryrun: return the events without recording them. asof: the moment that a read
    shows. stated: an export contains only values that clients set, without defaults.
    """

    doc: bool = False
    binary: bool = False
    collections: bool = False
    inline: tuple[str, ...] | None = None
    ignore: frozenset[str] = frozenset()
    epoch: str | None = None
    setdefaultversionid: str | None = None
    filter: tuple[tuple[str, ...], ...] | None = None
    sort: str | None = None
    limit: int | None = None
    cursor: str | None = None
    dryrun: bool = False
    asof: str | None = None
    stated: bool = False


NO_FLAGS: Final = Flags()
EXPORT_FLAGS: Final = Flags(doc=True, inline=INLINE_OF_EXPORT)


def parse_flags(query: bytes, target: RequestTarget, method: str, capabilities: Capabilities) -> Flags:
    """The flags of a request. Flags that the capabilities leave out count as absent.

    Raises: BadFlag, BadIgnore, BadDefaultversionid, SortNoncollection, UnsupportedSpecversion, BadRequest.
    """
    if not query:
        return EXPORT_FLAGS if target.kind is PathKind.EXPORT else NO_FLAGS
    paging_flags = (
        PAGING_FLAGS
        if capabilities.pagination and method in READ_METHODS and target.kind in COLLECTION_KINDS
        else frozenset()
    )
    parameters = _parse_parameters(query, (KNOWN_FLAGS & capabilities.flags) | paging_flags | OWN_FLAGS)
    for check in _CHECKS:
        check(parameters, target, method)
    only_collections = "collections" in parameters
    inline = parameters.get("inline")
    return Flags(
        doc="doc" in parameters or target.kind is PathKind.EXPORT,
        binary="binary" in parameters,
        collections=only_collections,
        inline=_parse_list(inline)
        if inline
        else INLINE_EVERYTHING
        if only_collections
        else INLINE_OF_EXPORT
        if target.kind is PathKind.EXPORT
        else None,
        ignore=_parse_ignore(parameters["ignore"], capabilities.ignores) if "ignore" in parameters else frozenset(),
        epoch=_single_value(parameters, "epoch"),
        setdefaultversionid=_single_value(parameters, "setdefaultversionid"),
        filter=tuple(map(_parse_conjunction, parameters["filter"])) if "filter" in parameters else None,
        sort=_single_value(parameters, "sort"),
        limit=parse_number("limit", _single_value(parameters, "limit"), 1, _MAX_LIMIT),
        cursor=_single_value(parameters, "cursor"),
        dryrun="dryrun" in parameters,
        asof=_single_value(parameters, "asof"),
        stated="stated" in parameters and target.kind is PathKind.EXPORT,
    )


def requested_asof(query: bytes) -> str | None:
    """The `asof` of a query; None if absent. It decides under which capabilities the query is parsed."""
    return _early_value(query, "asof")


def requested_cursor(query: bytes) -> str | None:
    """The `cursor` of a query; None if absent. The link that has it was made under the definitions of its position."""
    return _early_value(query, "cursor")


def _early_value(query: bytes, name: str) -> str | None:
    """The value of a parameter that is needed before the query can be parsed."""
    if name.encode() not in query and b"%" not in query:
        return None
    return _single_value(_parse_parameters(query, frozenset((name,))), name)


RawParams = Mapping[str, list[str]]


def _parse_parameters(query: bytes, known_names: frozenset[str]) -> dict[str, list[str]]:
    """Raw values by name. A percent-encoded comma or `=` belongs to a value."""
    parameters: dict[str, list[str]] = {}
    for parameter in query.decode("latin-1").split("&"):
        name, _, value = parameter.partition("=")
        name = unquote_plus(name)
        if name in known_names:
            parameters.setdefault(name, []).append(value)
    return parameters


def _parse_list(values: list[str]) -> tuple[str, ...]:
    """All parts of a list flag. An empty value means everything."""
    return tuple(part for value in values for part in _split_list(value))


def _split_list(value: str) -> tuple[str, ...]:
    return tuple(unquote_plus(part) for part in value.split(",") if part) or INLINE_EVERYTHING


def _single_value(parameters: RawParams, name: str) -> str | None:
    return unquote_plus(parameters[name][0]) if name in parameters else None


def _parse_conjunction(value: str) -> tuple[str, ...]:
    return tuple(unquote_plus(part) for part in value.split(","))


def _parse_ignore(values: list[str], supported: frozenset[str]) -> frozenset[str]:
    names = _parse_list(values)
    for name in names:
        if name != "*" and name not in supported:
            supported_text = ", ".join(sorted(supported))
            raise problems.BadIgnore(value=name, error_detail=f"it is not one of: {supported_text}")
    return supported if "*" in names else frozenset(names)


def _appears_once(parameters: RawParams, target: RequestTarget, method: str) -> None:
    for name in SINGLE_FLAGS:
        if len(parameters.get(name, ())) > 1:
            raise problems.BadFlag(flag=name)


def _collections_has_collections(parameters: RawParams, target: RequestTarget, method: str) -> None:
    if "collections" in parameters and target.kind not in (PathKind.REGISTRY, PathKind.EXPORT, PathKind.GROUP):
        raise problems.BadFlag(flag="collections")


def _default_is_of_one_resource(parameters: RawParams, target: RequestTarget, method: str) -> None:
    value = _single_value(parameters, "setdefaultversionid")
    if value is None:
        return
    if target.kind not in VERSIONED_KINDS or method in ("GET", "HEAD"):
        raise problems.BadFlag(flag="setdefaultversionid")
    if value == "":
        raise problems.BadDefaultversionid(value=value, error_detail="a versionid is needed")


def _filter_is_about_entities(parameters: RawParams, target: RequestTarget, method: str) -> None:
    # A filter affects responses only. On a DELETE, a client might expect it to select what is deleted, so it is
    # refused.
    if "filter" in parameters and (target.kind in UNFILTERED_KINDS or method == "DELETE"):
        raise problems.BadFlag(flag="filter")


def _sort_is_about_a_collection(parameters: RawParams, target: RequestTarget, method: str) -> None:
    if "sort" in parameters and target.kind not in COLLECTION_KINDS:
        raise problems.SortNoncollection()


def _specversion_is_supported(parameters: RawParams, target: RequestTarget, method: str) -> None:
    value = _single_value(parameters, "specversion")
    if value is not None and _PATCH_VERSION.sub(r"\1", value.lower()) != SPECVERSION:
        raise problems.UnsupportedSpecversion(specversion=value, list=SPECVERSION)


def _dryrun_is_of_a_write(parameters: RawParams, target: RequestTarget, method: str) -> None:
    if "dryrun" in parameters and method in READ_METHODS:
        raise problems.BadFlag(flag="dryrun")


def _asof_is_of_a_read(parameters: RawParams, target: RequestTarget, method: str) -> None:
    if "asof" in parameters and (method not in READ_METHODS or any(name in parameters for name in WRITE_FLAGS)):
        raise problems.BadFlag(flag="asof")


_CHECKS: Final[tuple[Callable[[RawParams, RequestTarget, str], None], ...]] = (
    _appears_once,
    _asof_is_of_a_read,
    _collections_has_collections,
    _default_is_of_one_resource,
    _dryrun_is_of_a_write,
    _filter_is_about_entities,
    _sort_is_about_a_collection,
    _specversion_is_supported,
)
