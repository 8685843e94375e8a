"""The regions "Resolved message" of messages and "Messages" of endpoints (UI-78)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from annals.api.ui.explore.entity_view import EntityView
from annals.api.ui.own_api import query_text
from annals.api.ui.page_context import PageContext, url_path
from annals.domain.errors.problems import Problem
from annals.domain.values.json_text import dumps

#: Attributes that describe the entity and not the message.
_OWN: Final = frozenset(
    ("messageid", "versionid", "xid", "epoch", "isdefault", "createdat", "modifiedat", "ancestorid", "basemessageuri")
)
#: The time that resolving the messages of an endpoint may take, in seconds.
_SECONDS: Final = 2
#: The messages of an endpoint that its page lists, and those that cannot be resolved.
_MAX_MESSAGES: Final = 200
_MAX_UNRESOLVED: Final = 50
_IMPLIED: Final = "implied by other values"


class ResolvedValue(NamedTuple):
    """A value of a resolved message. origin: the message that it is from, or why it is there; url: of its page."""

    pointer: str
    value: Any
    origin: str
    url: str


class _Image(NamedTuple):
    """What a message says itself, with its page."""

    origin: str
    url: str
    attributes: Mapping[str, Any]


async def read_resolved_message(page: PageContext, entity: EntityView) -> Mapping[str, Any] | None:
    """The values of the message with those of its bases; None for one that cannot be resolved."""
    try:
        found = (await page.get(f"/-/resolved{entity.place.xid}")).json
    except Problem:
        return None
    implied = set(found.get("implied", ()))
    bases = [_Image(base, page.link(f"explore{base}"), await _read_base(page, base)) for base in found["bases"]]
    images = [_Image("this message", "", entity.attributes), *bases]  # the nearest one first
    return {"values": [_value(pointer, value, images, implied) for pointer, value in _leaves(found["message"])]}


async def _read_base(page: PageContext, xid: str) -> Mapping[str, Any]:
    """The attributes of a base; empty if the caller may not read it."""
    try:
        found: Mapping[str, Any] = (await page.get(xid)).json
    except Problem:
        return {}
    return found


def _value(pointer: str, value: Any, images: Sequence[_Image], implied: set[str]) -> ResolvedValue:
    if pointer in implied:
        return ResolvedValue(pointer, value, _IMPLIED, "")
    for image in images:
        if dict(_leaves(image.attributes)).get(pointer) == value:
            return ResolvedValue(pointer, value, image.origin, image.url)
    return ResolvedValue(pointer, value, "", "")


def _leaves(message: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The values of a message that are no objects, by JSON pointer."""
    for name, value in message.items():
        pointer = f"{prefix}/{name}"
        if not prefix and name in _OWN:
            continue
        if isinstance(value, dict):
            yield from _leaves(value, pointer)
        else:
            yield pointer, value if isinstance(value, str) else dumps(value).decode()


async def read_endpoint_messages(page: PageContext, entity: EntityView) -> Mapping[str, Any] | None:
    """The messages that an endpoint has, its own and those of its Groups; None if they cannot be read.

    left_out: the number of messages that are not shown. whole: the URL of all, in JSON.
    """
    path = f"/-/resolved{entity.place.xid}"
    asof = query_text({"asof": page.asof})
    whole = page.api_url(url_path(path) + (f"?{asof}" if asof else ""))
    try:
        async with asyncio.timeout(_SECONDS):
            found = (await page.get(path)).json
    except TimeoutError:
        return {"took_too_long": True, "messages": [], "left_out": 0, "unresolved": [], "whole": whole}
    except Problem:
        return None
    messages = [
        (each["xid"], page.link(f"explore{each['xid']}"), each["message"].get("envelope", ""), each["bases"])
        for each in found["messages"][:_MAX_MESSAGES]
    ]
    return {
        "took_too_long": False,
        "messages": messages,
        "left_out": len(found["messages"]) - len(messages),
        "unresolved": found["unresolved"][:_MAX_UNRESOLVED],
        "whole": whole,
    }
