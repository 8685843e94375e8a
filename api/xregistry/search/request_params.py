"""The parameters of a search."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from annals.api.audit.request_params import AuditParams, parse_audit_params
from annals.api.http.query_params import invalid_param, parse_number, query_params, single_value
from annals.api.http.request import Request
from annals.domain.search.matching import ResultKey
from annals.domain.search.query import InvalidQuery, Query, parse_query

#: The accepted parameters. Others are refused, because a misspelt one would find more than intended.
PARAMETERS: Final = ("q", "versions", "limit", "after", "format")
DEFAULT_LIMIT: Final = 20
MAX_LIMIT: Final = 100
ALL_VERSIONS: Final = "all"

_ASOF: Final = "asof"
_AFTER: Final = re.compile(r"([0-9]):(![^\0\s]{1,1000})\Z")


@dataclass(frozen=True, slots=True)
class SearchParams:
    """The parameters of one request. after: the last result of the page before."""

    query: Query
    audit_params: AuditParams
    limit: int = DEFAULT_LIMIT
    after: ResultKey | None = None
    all_versions: bool = False


def parse_search_params(request: Request) -> SearchParams:
    """The parameters of a request. Raises: BadRequest, which names the parameter and its rule."""
    parameters = query_params(request, (*PARAMETERS, _ASOF))
    if _ASOF in parameters:
        raise invalid_param(_ASOF, "a search shows the present only")
    versions = single_value(parameters, "versions")
    if versions not in (None, ALL_VERSIONS):
        raise invalid_param("versions", f"it takes {ALL_VERSIONS}; without it, default Versions are searched")
    return SearchParams(
        _parse_query(single_value(parameters, "q")),
        parse_audit_params(request.query, ("format",)),
        parse_number("limit", single_value(parameters, "limit"), 1, MAX_LIMIT) or DEFAULT_LIMIT,
        _parse_after(single_value(parameters, "after")),
        versions == ALL_VERSIONS,
    )


def _parse_query(value: str | None) -> Query:
    if value is None:
        raise invalid_param("q", "it is required: the words to search for")
    try:
        return parse_query(value)
    except InvalidQuery as error:
        raise invalid_param("q", str(error)) from None


def _parse_after(value: str | None) -> ResultKey | None:
    if value is None:
        return None
    match = _AFTER.match(value)
    if match is None:
        raise invalid_param("after", "it takes what a link to the next page has")
    return ResultKey(int(match[1]), match[2])
