"""Reads subscription requests: bodies, conditions, and address checks of sinks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from starlette.types import Receive

from annals.api.http.conditional import if_match_failed
from annals.api.http.json_bodies import parse_json, parse_required_json
from annals.api.http.limits import read_body
from annals.api.http.request import Request
from annals.api.subscriptions.config import MEDIA_TYPES
from annals.commands.store.write_transaction import WriteTransaction
from annals.domain.access.roles import Caller
from annals.domain.decisions.subscriptions import can_see_subscription
from annals.domain.errors.http_errors import UnsupportedMediaType
from annals.domain.subscriptions import sink_uris
from annals.domain.subscriptions.error_places import ErrorPlace, invalid_subscription
from annals.domain.subscriptions.sink_uris import HTTP
from annals.projections.outgoing.resolver import ForbiddenAddress, Resolver

_TAG: Final = re.compile(r'(W/)?"([^"]*)"')


async def read_json(request: Request, receive: Receive, max_body: int) -> Any:
    """The JSON of a body. Raises: UnsupportedMediaType, BodyTooLarge, MissingBody, ParsingData."""
    check_media_type(request)
    return parse_required_json(await read_body(request, receive, max_body))


async def read_optional_json(request: Request, receive: Receive, max_body: int) -> Any:
    """The JSON of a body; an empty object if there is no body. Raises: as `read_json`, without MissingBody."""
    body = await read_body(request, receive, max_body)
    if body:
        check_media_type(request)
    return parse_json(body) if body else {}


def check_media_type(request: Request) -> None:
    """Checks the media type. A request without one counts as JSON. Raises: UnsupportedMediaType."""
    if request.header(b"content-type") is not None and request.media_type not in MEDIA_TYPES:
        raise UnsupportedMediaType(list=", ".join(MEDIA_TYPES))


def _matches_epoch(if_match: str, epoch: int) -> bool:
    """Whether a subscription's epoch satisfies an If-Match."""
    if if_match.strip() == "*":
        return True
    return str(epoch) in {text.partition(".")[0] for weak_prefix, text in _TAG.findall(if_match) if not weak_prefix}


def has_entity_tag(request: Request, tag: bytes) -> bool:
    """Whether If-None-Match contains a tag, so that the client already has this state."""
    if_none_match = request.header(b"if-none-match")
    if if_none_match is None:
        return False
    tags = (re.sub(r"-(?:gzip|zstd)\Z", "", text) for _, text in _TAG.findall(if_none_match))
    return if_none_match.strip() == "*" or tag.decode().strip('"') in tags


def write_condition(request: Request, xid: str, caller: Caller) -> Callable[[WriteTransaction], None]:
    """The condition that a write checks under the write lock (SUB-503). The condition raises PreconditionFailed.

    For a subscription that the caller may not see, it checks nothing: the command's decision reports that.
    """
    if_match = request.header(b"if-match")

    def check_epoch(transaction: WriteTransaction) -> None:
        entity = transaction.world.get(xid)
        if entity is None or not can_see_subscription(entity.private["owner"], caller.name, is_admin=caller.is_admin):
            return
        if if_match is not None and not _matches_epoch(if_match, entity.epoch):
            raise if_match_failed(if_match, "subscription")

    return check_epoch


async def check_addresses(attributes: Mapping[str, Any], resolver: Resolver) -> None:
    """Resolves the hosts of a subscription's sink, dead letters and token renewal (SUB-901, SUB-903).

    A host without an address passes: it may get one later, and each connection checks again.
    Raises: InvalidSubscription, whose text contains no address (SUB-904).
    """
    credential, settings = attributes.get("sinkcredential", {}), attributes["protocolsettings"]
    for uri, protocol, pointer in (
        (attributes["sink"], attributes["protocol"], "/sink"),
        (credential.get("refreshtokenendpoint"), HTTP, "/sinkcredential/refreshtokenendpoint"),
        (settings["deadletter"].get("uri"), HTTP, "/protocolsettings/deadletter/uri"),
    ):
        if uri is not None:
            for host, port in sink_uris.parse_sink(uri, protocol, ErrorPlace(pointer)).servers:
                await _check_server(host, port, resolver, pointer)


async def _check_server(host: str, port: int, resolver: Resolver, pointer: str) -> None:
    try:
        await resolver.resolve(host, port)
    except ForbiddenAddress as error:
        raise invalid_subscription("sinkrefused", pointer, str(error)) from None
    except OSError:
        return
