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
from importlib.metadata import version
from typing import Final

from api.http.base36 import base36
from api.http.compression import VARY
from api.http.problem_response import root_link
from api.http.request import Request
from api.http.response import Headers, Response
from commands.store.log import WriteTransaction
from domain.errors.http_errors import PreconditionFailed
from projections.entities.rows import EntityRow

#: A cache may store the response but has to revalidate it for each request.
NO_CACHE: Final = (b"cache-control", b"no-cache")

_TAG: Final = re.compile(r'(W/)?"([^"]*)"')
_CODING: Final = re.compile(r"-(?:gzip|zstd)\Z")
_IF_MATCH: Final = b"if-match"
_IF_NONE_MATCH: Final = b"if-none-match"
_CONDITIONS: Final = frozenset((_IF_MATCH, _IF_NONE_MATCH))
#: Another program version may render the same state differently.
_PROGRAM: Final = version("annals")


class NotModified(Exception):
    """The client already has the current response. tag: its entity tag."""

    def __init__(self, tag: bytes) -> None:
        super().__init__(tag)
        self.tag = tag


def row_tag(row: EntityRow, request: Request, positions: tuple[int, int]) -> bytes | None:
    """The entity tag of a response made from one row; None for a Resource with `xref`, which shows another entity too.

    positions: of the model and the capabilities under which the response is made.
    """
    pointer = row.type.count(".") == 1 and '"xref":' in row.attributes
    return None if pointer else _tag(base36(row.since), request, positions)


def log_tag(position: int, request: Request, positions: tuple[int, int]) -> bytes:
    """The entity tag of a response whose rows belong to a log position."""
    return _tag(_at(position), request, positions)


def check_conditions(request: Request, current: bytes | None) -> None:
    """Checks If-Match and If-None-Match of a read.

    Raises: NotModified if the client already has the response; PreconditionFailed if the client requires another state.
    """
    if current is None or not is_conditional(request):
        return
    wanted, known = request.header(_IF_MATCH), request.header(_IF_NONE_MATCH)
    text = current.decode().strip('"')
    if wanted is not None and not _meets(wanted, True, {_state(text)}):
        raise PreconditionFailed(name="If-Match", error_detail="the entity is in another state")
    if known is not None and (same := current if known.strip() == "*" else _listed(known, text)):
        raise NotModified(same)


def add_entity_tag(answer: Response, current: bytes | None) -> Response:
    """A response with its entity tag. A redirect gets none."""
    if current is None or answer.status != 200:
        return answer
    return replace(answer, headers=[*answer.headers, *tag_headers(current)])


def tag_headers(current: bytes) -> Headers:
    """The headers that allow a cache to store the response and revalidate it."""
    return [(b"etag", current), NO_CACHE]


def not_modified_response(request: Request, unchanged: NotModified) -> Response:
    """The 304 response. The client's copy may have another coding than a new response would have."""
    return Response(304, [root_link(request.base), *tag_headers(unchanged.tag), VARY])


def write_condition(request: Request, xid: str) -> Callable[[WriteTransaction], None] | None:
    """The condition that a write checks under the write lock; None if the request has none.

    xid: of the requested entity; for a collection, of its owner. The condition raises PreconditionFailed.
    """
    if not is_conditional(request):
        return None
    wanted, unwanted = request.header(_IF_MATCH), request.header(_IF_NONE_MATCH)

    def holds(transaction: WriteTransaction) -> None:
        entity = transaction.world.get(xid)
        now = {_at(transaction.log_end.position)} | ({base36(entity.position)} if entity else set())
        if wanted is not None and not _meets(wanted, entity is not None, now):
            raise PreconditionFailed(name="If-Match", error_detail="the entity is in another state")
        if unwanted is not None and _meets(unwanted, entity is not None, now):
            raise PreconditionFailed(name="If-None-Match", error_detail="the entity is in that state")

    return holds


def is_conditional(request: Request) -> bool:
    """Whether a request has If-Match or If-None-Match."""
    return any(name in _CONDITIONS for name, _ in request.headers)


def _meets(header: str, exists: bool, now: set[str]) -> bool:
    return exists if header.strip() == "*" else bool(now & set(_states(header)))


def _listed(header: str, current: str) -> bytes | None:
    """The tag in a header that equals the current one, ignoring its coding suffix; None if there is none."""
    same = (f'"{text}"'.encode() for _, text in _TAG.findall(header) if _CODING.sub("", text) == current)
    return next(same, None)


def _states(header: str) -> list[str]:
    """The states in the strong tags of a header."""
    return [_state(text) for weak, text in _TAG.findall(header) if not weak]


def _state(text: str) -> str:
    return text.partition(".")[0]


def _at(position: int) -> str:
    """The state part of a tag for the whole registry."""
    return "_" + base36(position)


def _tag(state: str, request: Request, positions: tuple[int, int]) -> bytes:
    return f'"{state}.{_form(request.base, request.query, request.details, positions)}"'.encode()


@lru_cache(maxsize=1024)
def _form(base: str, query: bytes, details: bool, positions: tuple[int, int]) -> str:
    text = repr((_PROGRAM, base, query, details, positions))
    return blake2s(text.encode(), digest_size=6).hexdigest()
