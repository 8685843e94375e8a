"""The region "References": what an entity refers to, and what refers to it (UI-77)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from annals.api.ui.explore.entity_view import EntityView
from annals.api.ui.page_context import PageContext
from annals.domain.errors.problems import Problem

_LIMIT: Final = "50"
_SUBSCRIPTIONS: Final = "/subscriptions/"


class ShownReference(NamedTuple):
    """The other end of a reference. url: of its page; empty if it has none. mark: empty for an entity that exists."""

    text: str
    url: str
    attribute: str
    mark: str


class ReferenceList(NamedTuple):
    """The references of one direction. has_more: whether the API has more than are shown."""

    name: str
    rows: Sequence[ShownReference]
    has_more: bool


async def read_references(page: PageContext, entity: EntityView) -> Mapping[str, Any] | None:
    """Both directions; None if they cannot be read."""
    try:
        return {
            "lists": [
                await _read_list(page, entity, "Refers to", "out", "to"),
                await _read_list(page, entity, "Referred to by", "in", "from"),
            ]
        }
    except Problem:
        return None


async def _read_list(page: PageContext, entity: EntityView, name: str, direction: str, end: str) -> ReferenceList:
    answer = await page.get(f"/-/references{entity.place.xid}", {"direction": direction, "limit": _LIMIT})
    rows = [_shown(page, each, each[end]) for each in answer.json["references"]]
    return ReferenceList(name, rows, answer.link("next") is not None)


def _shown(page: PageContext, reference: Mapping[str, Any], end: str) -> ShownReference:
    mark = {"external": "External", "dangling": "Dangling"}.get(reference["state"], "")
    path = end.removeprefix("/") if end.startswith(_SUBSCRIPTIONS) else f"explore{end}"
    url = page.link(path) if not mark and page.has_page(path) else ""
    return ShownReference(end, url, reference["attribute"], mark)
