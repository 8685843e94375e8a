"""Entity tags of the legacy APIs' responses, and conditions on them (LEG-205, LEG-524)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from annals.api.http.base36 import base36
from annals.api.http.conditional import NotModified, if_match_failed
from annals.api.http.request import Request
from annals.commands.store.write_transaction import WriteTransaction
from annals.domain.errors.http_errors import PreconditionFailed
from annals.projections.entities.rows import EntityRow
from annals.projections.entities.transaction_view import TransactionView
from annals.projections.entities.view import View

_TAG: Final = re.compile(r'(W/)?"([^"]*)"')
_CODING_SUFFIX: Final = re.compile(r"-(?:gzip|zstd)\Z")
_IF_MATCH: Final = b"if-match"
_IF_NONE_MATCH: Final = b"if-none-match"


def group_entity_tag(row: EntityRow) -> bytes:
    """The entity tag of a Group: it changes whenever the Group's response object changes."""
    return b'"%b"' % base36(row.since).encode()


def check_conditions(request: Request, tag: bytes) -> None:
    """Checks If-Match and If-None-Match of a read.

    Raises: NotModified if the client already has this state; PreconditionFailed if the client requires another state.
    """
    _check_match(request, tag)
    if_none_match = request.header(_IF_NONE_MATCH)
    if if_none_match is not None and _has_tag(if_none_match, tag):
        raise NotModified(tag)


def write_condition(
    request: Request, current_tag: Callable[[View], bytes | None]
) -> Callable[[WriteTransaction], None] | None:
    """The check that a write makes under the write lock; None if the request has no condition.

    current_tag: returns the tag that a GET of the same path would have. The check raises PreconditionFailed.
    """
    if_none_match = request.header(_IF_NONE_MATCH)
    if if_none_match is None and request.header(_IF_MATCH) is None:
        return None

    def check_tag(transaction: WriteTransaction) -> None:
        tag = current_tag(TransactionView(transaction))
        _check_match(request, tag)
        if if_none_match is not None and tag is not None and _has_tag(if_none_match, tag):
            raise PreconditionFailed(name="If-None-Match", error_detail="the entity is in a state that it names")

    return check_tag


def _check_match(request: Request, tag: bytes | None) -> None:
    if_match = request.header(_IF_MATCH)
    if if_match is not None and (tag is None or not _has_tag(if_match, tag, is_strong=True)):
        raise if_match_failed(if_match)


def _has_tag(header: str, tag: bytes, *, is_strong: bool = False) -> bool:
    """Whether a header names a tag. The suffix of a content coding (gzip, zstd) is ignored."""
    own_text = tag.decode().strip('"')
    tags = (
        _CODING_SUFFIX.sub("", tag_text)
        for weak_prefix, tag_text in _TAG.findall(header)
        if not (weak_prefix and is_strong)
    )
    return header.strip() == "*" or own_text in tags
