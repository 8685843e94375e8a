"""Conditional requests: entity tags, answers that need not be sent again, and writes that depend on a state.

A tag has two parts. The first says which state of the registry an answer shows: the position of the entity's last
event, or that of the log where an answer shows many entities. The second says in which form: query, model,
capabilities, root URL. So a tag takes no look at the body, and reading it again takes one look-up.
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

#: A cache may keep an answer, and has to ask each time whether it is still good.
NO_CACHE: Final = (b"cache-control", b"no-cache")

_TAG: Final = re.compile(r'(W/)?"([^"]*)"')
_CODING: Final = re.compile(r"-(?:gzip|zstd)\Z")
_IF_MATCH: Final = b"if-match"
_IF_NONE_MATCH: Final = b"if-none-match"
_CONDITIONS: Final = frozenset((_IF_MATCH, _IF_NONE_MATCH))
#: Another program may write the same state in another way.
_PROGRAM: Final = version("annals")


class NotModified(Exception):
    """The client has what it asks for. tag: of that."""

    def __init__(self, tag: bytes) -> None:
        super().__init__(tag)
        self.tag = tag


def row_tag(row: EntityRow, request: Request, positions: tuple[int, int]) -> bytes | None:
    """The entity tag of an answer made of one row; None for a pointer, whose answer another entity has a part in.

    positions: of the model and of the capabilities that the answer is made under.
    """
    pointer = row.type.count(".") == 1 and '"xref":' in row.attributes
    return None if pointer else _tag(base36(row.since), request, positions)


def log_tag(position: int, request: Request, positions: tuple[int, int]) -> bytes:
    """The entity tag of an answer whose rows belong to a position of the log."""
    return _tag(_at(position), request, positions)


def check_conditions(request: Request, current: bytes | None) -> None:
    """

    Raises: NotModified where the client has what a GET would answer, PreconditionFailed where it wants another one.
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
    """An answer with its tag; a redirection has none."""
    if current is None or answer.status != 200:
        return answer
    return replace(answer, headers=[*answer.headers, *tag_headers(current)])


def tag_headers(current: bytes) -> Headers:
    """The headers that let an answer be kept and asked for again."""
    return [(b"etag", current), NO_CACHE]


def not_modified_response(request: Request, unchanged: NotModified) -> Response:
    """The answer to a client that has everything. What it has may be in another coding than it would get now."""
    return Response(304, [root_link(request.base), *tag_headers(unchanged.tag), VARY])


def write_condition(request: Request, xid: str) -> Callable[[WriteTransaction], None] | None:
    """What has to hold, under the write lock, for a write to be carried out; None where any state will do.

    xid: of the entity that the request is about, a collection's owner. The condition raises: PreconditionFailed.
    """
    if not is_conditional(request):
        return None
    wanted, unwanted = request.header(_IF_MATCH), request.header(_IF_NONE_MATCH)

    def holds(transaction: WriteTransaction) -> None:
        entity = transaction.world.get(xid)
        now = {_at(transaction.tip.position)} | ({base36(entity.position)} if entity else set())
        if wanted is not None and not _meets(wanted, entity is not None, now):
            raise PreconditionFailed(name="If-Match", error_detail="the entity is in another state")
        if unwanted is not None and _meets(unwanted, entity is not None, now):
            raise PreconditionFailed(name="If-None-Match", error_detail="the entity is in that state")

    return holds


def is_conditional(request: Request) -> bool:
    """Whether what a client knows decides about the answer."""
    return any(name in _CONDITIONS for name, _ in request.headers)


def _meets(header: str, exists: bool, now: set[str]) -> bool:
    return exists if header.strip() == "*" else bool(now & set(_states(header)))


def _listed(header: str, current: str) -> bytes | None:
    """The tag in a header that is the current one, in whatever coding the client has it."""
    same = (f'"{text}"'.encode() for _, text in _TAG.findall(header) if _CODING.sub("", text) == current)
    return next(same, None)


def _states(header: str) -> list[str]:
    """The states that the strong tags in a header name."""
    return [_state(text) for weak, text in _TAG.findall(header) if not weak]


def _state(text: str) -> str:
    return text.partition(".")[0]


def _at(position: int) -> str:
    """The state of the whole registry."""
    return "_" + base36(position)


def _tag(state: str, request: Request, positions: tuple[int, int]) -> bytes:
    return f'"{state}.{_form(request.base, request.query, request.details, positions)}"'.encode()


@lru_cache(maxsize=1024)
def _form(base: str, query: bytes, details: bool, positions: tuple[int, int]) -> str:
    text = repr((_PROGRAM, base, query, details, positions))
    return blake2s(text.encode(), digest_size=6).hexdigest()
