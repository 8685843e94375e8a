"""The regions "Resolved message" of messages and "Messages" of endpoints (UI-78)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from annals.api.ui.explore.entity_view import EntityView
from annals.api.ui.page_context import PageContext
from annals.domain.errors.problems import Problem
from annals.domain.values.json_text import unquoted

#: Attributes that describe the entity and not the message.
_OWN: Final = frozenset(
    ("messageid", "versionid", "xid", "epoch", "isdefault", "createdat", "modifiedat", "ancestorid", "basemessageuri")
)
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
            yield pointer, unquoted(value)


async def read_endpoint_messages(page: PageContext, entity: EntityView) -> Mapping[str, Any] | None:
    """The messages that an endpoint has, its own and those of its Groups; None if they cannot be read.

    graph: the URL of the page that has all, if this one does not.
    """
    try:
        answer = await page.get(f"/-/resolved{entity.place.xid}", {"limit": str(_MAX_MESSAGES)})
    except Problem:
        return None
    found = answer.json
    messages = [
        (each["xid"], page.link(f"explore{each['xid']}"), each["message"].get("envelope", ""), each["bases"])
        for each in found["messages"]
    ]
    return {
        "messages": messages,
        "unresolved": found["unresolved"][:_MAX_UNRESOLVED],
        "graph": page.link(f"graph{entity.place.xid}") if answer.link("next") else "",
    }
