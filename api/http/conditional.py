"""Conditional requests: entity tags, 304 responses, and writes that require a state.

An entity tag has two parts. The first is the state of the registry: the log position of the entity's last event, or of
the whole log if a response shows many entities. The second is a hash of the form: query, model, capabilities, root URL.
So the tag is computed without the body, and a repeated read costs one look-up.
Spec: RFC 9110, "Conditional Requests".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from hashlib import blake2s
from typing import Final

from annals import __version__
from annals.api.http.base36 import base36
from annals.api.http.compression import VARY
from annals.api.http.problem_response import root_link
from annals.api.http.request import Request
from annals.api.http.response import Headers, Response
from annals.commands.store.write_transaction import WriteTransaction
from annals.domain.errors.http_errors import PreconditionFailed
from annals.projections.entities.rows import EntityRow

#: A cache may store the response but has to revalidate it for each request.
NO_CACHE: Final = (b"cache-control", b"no-cache")

_TAG: Final = re.compile(r'(W/)?"([^"]*)"')
_CODING: Final = re.compile(r"-(?:gzip|zstd)\Z")
_IF_MATCH: Final = b"if-match"
_IF_NONE_MATCH: Final = b"if-none-match"
_CONDITIONS: Final = frozenset((_IF_MATCH, _IF_NONE_MATCH))
#: Another program version may render the same state differently.
_VERSION: Final = __version__


class NotModified(Exception):
    """The client already has the current response. tag: its entity tag."""

    def __init__(self, tag: bytes) -> None:
        super().__init__(tag)
        self.tag = tag


def row_tag(row: EntityRow, request: Request, positions: tuple[int, int]) -> bytes | None:
    """The entity tag of a response made from one row; None for a Resource with `xref`, which shows another entity too.

    positions: of the model and the capabilities under which the response is made.
    """
    has_xref = row.type.count(".") == 1 and '"xref":' in row.attributes
    return None if has_xref else _format_tag(base36(row.since), request, positions)


def log_tag(position: int, request: Request, positions: tuple[int, int]) -> bytes:
    """The entity tag of a response whose rows belong to a log position."""
    return _format_tag(_registry_state(position), request, positions)


def check_conditions(request: Request, tag: bytes | None) -> None:
    """Checks If-Match and If-None-Match of a read.

    Raises: NotModified if the client already has the response; PreconditionFailed if the client requires another state.
    """
    if tag is None or not is_conditional(request):
        return
    if_match, if_none_match = request.header(_IF_MATCH), request.header(_IF_NONE_MATCH)
    text = tag.decode().strip('"')
    if if_match is not None and not _is_met(if_match, True, {_state_of_tag(text)}):
        raise if_match_failed(if_match)
    if if_none_match is not None and (
        matching_tag := tag if if_none_match.strip() == "*" else _matching_tag(if_none_match, text)
    ):
        raise NotModified(matching_tag)


def add_entity_tag(response: Response, tag: bytes | None) -> Response:
    """A response with its entity tag. A redirect gets none."""
    if tag is None or response.status != 200:
        return response
    return replace(response, headers=[*response.headers, *tag_headers(tag)])


def tag_headers(tag: bytes) -> Headers:
    """The headers that allow a cache to store the response and revalidate it."""
    return [(b"etag", tag), NO_CACHE]


def not_modified_response(request: Request, not_modified: NotModified) -> Response:
    """The 304 response. The client's copy may have another coding than a new response would have."""
    return Response(304, [root_link(request.base), *tag_headers(not_modified.tag), VARY])


def write_condition(request: Request, xid: str) -> Callable[[WriteTransaction], None] | None:
    """The condition that a write checks under the write lock; None if the request has none.

    xid: of the requested entity; for a collection, of its owner. The condition raises PreconditionFailed.
    """
    if not is_conditional(request):
        return None
    if_match, if_none_match = request.header(_IF_MATCH), request.header(_IF_NONE_MATCH)

    def check_states(transaction: WriteTransaction) -> None:
        entity = transaction.world.get(xid)
        current_states = {_registry_state(transaction.log_end.position)} | (
            {base36(entity.position)} if entity else set()
        )
        if if_match is not None and not _is_met(if_match, entity is not None, current_states):
            raise if_match_failed(if_match)
        if if_none_match is not None and _is_met(if_none_match, entity is not None, current_states):
            raise PreconditionFailed(name="If-None-Match", error_detail="the entity is in that state")

    return check_states


def if_match_failed(if_match: str, kind: str = "entity") -> PreconditionFailed:
    """The error for an If-Match that does not hold. kind: what the request is for.

    Weak tags never match (RFC 9110, "If-Match"), so a client with nothing else may well have read the current state.
    """
    tags = _TAG.findall(if_match)
    is_weak = bool(tags) and all(weak_prefix for weak_prefix, _ in tags)
    weak = "a weak entity tag (W/) never matches; proxies that compress responses make tags weak"
    return PreconditionFailed(name="If-Match", error_detail=weak if is_weak else f"the {kind} is in another state")


def is_conditional(request: Request) -> bool:
    """Whether a request has If-Match or If-None-Match."""
    return any(name in _CONDITIONS for name, _ in request.headers)


def _is_met(header: str, exists: bool, current_states: set[str]) -> bool:
    return exists if header.strip() == "*" else bool(current_states & set(_strong_states(header)))


def _matching_tag(header: str, state: str) -> bytes | None:
    """The tag in a header that equals the current one, ignoring its coding suffix; None if there is none."""
    matching_tags = (f'"{text}"'.encode() for _, text in _TAG.findall(header) if _CODING.sub("", text) == state)
    return next(matching_tags, None)


def _strong_states(header: str) -> list[str]:
    """The states in the strong tags of a header."""
    return [_state_of_tag(text) for weak_prefix, text in _TAG.findall(header) if not weak_prefix]


def _state_of_tag(text: str) -> str:
    return text.partition(".")[0]


def _registry_state(position: int) -> str:
    """The state part of a tag for the whole registry."""
    return "_" + base36(position)


def _format_tag(state: str, request: Request, positions: tuple[int, int]) -> bytes:
    form = _form_hash(request.base, request.query, request.details, positions, request.caller.places)
    return f'"{state}.{form}"'.encode()


@lru_cache(maxsize=1024)
def _form_hash(
    base_url: str, query: bytes, details: bool, positions: tuple[int, int], places: tuple[str, ...] | None
) -> str:
    # Callers who see other places get other answers.
    text = repr((_VERSION, base_url, query, details, positions, places))
    return blake2s(text.encode(), digest_size=6).hexdigest()
