"""The page of one interaction: its events, each with what changed before and after (UI-49, UI-97)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, NamedTuple

from annals.api.http.response import Response
from annals.api.ui.history.revision_rows import RevisionRow, revision_row
from annals.api.ui.html_size import MAX_PART, count_within, html_size
from annals.api.ui.page_context import PageContext
from annals.domain.errors.problems import NotFound
from annals.domain.values.json_text import unquoted

#: Bounds of what the page shows of one event: attributes, and characters of each value.
_MAX_VALUES: Final = 40
_MAX_CHARACTERS: Final = 200
#: The HTML of an attribute without its name and values, in bytes.
_VALUE_HTML: Final = 100


class ChangedValue(NamedTuple):
    """An attribute that an event changed; None where it had no value."""

    name: str
    before: str | None
    after: str | None


class InteractionEvent(NamedTuple):
    """One event. names: of the first changed attributes. values: before and after. has_more: whether it is not all."""

    revision: RevisionRow
    names: Sequence[str]
    values: list[ChangedValue]
    has_more: bool


async def interaction_page(page: PageContext) -> Response:
    """The page. Raises: NotFound for one that does not exist, or did not at the moment of the page."""
    id = page.path_params["id"]
    query = {"images": "before,after", "limit": str(page.limit), "after": page.param("after") or None}
    answer = await page.get(f"/-/interactions/{id}", query, with_asof=False)
    interaction = answer.json
    if page.asof is not None and interaction["last"] > await _position(page):
        raise NotFound(f"/-/interactions/{id}")
    more = answer.link("next")
    return await page.render(
        "history/interaction.html",
        f"Interaction {interaction['xregcorrelationid']}",
        interaction=interaction,
        events=_interaction_events(page, interaction["events"]),
        hashes=[(name, interaction[name]) for name in ("chain", "state") if name in interaction],
        registry=page.link("explore/", asof=str(interaction["last"])),
        first=page.link(page.path) if page.param("after") else None,
        next=page.link(page.path, after=more.query["after"]) if more else None,
    )


async def _position(page: PageContext) -> int:
    head = await page.own_api.get(page.request, "/-/log/head", {"asof": page.asof})
    position: int = head.json["position"]
    return position


def _interaction_events(page: PageContext, items: Sequence[Mapping[str, Any]]) -> list[InteractionEvent]:
    """The events, each with as many values as a page has room for if all have as many."""
    room = MAX_PART // max(1, len(items))
    return [_interaction_event(page, each, room) for each in items]


def _interaction_event(page: PageContext, item: Mapping[str, Any], room: int) -> InteractionEvent:
    values = list(islice(_changed_values(item.get("before") or {}, item.get("after") or {}), _MAX_VALUES + 1))
    count = min(_MAX_VALUES, count_within(map(_value_size, values), room))
    row = revision_row(page, item)
    names = (row.changed or [value.name for value in values])[: max(1, count)]
    return InteractionEvent(row, names, values[:count], len(values) > count)


def _value_size(value: ChangedValue) -> int:
    return _VALUE_HTML + html_size(value.name) * 2 + sum(map(html_size, filter(None, (value.before, value.after))))


def _changed_values(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[ChangedValue]:
    for name in sorted(before.keys() | after.keys()):
        if (name in before, before.get(name)) != (name in after, after.get(name)):
            yield ChangedValue(name, _text(before, name), _text(after, name))


def _text(image: Mapping[str, Any], name: str) -> str | None:
    if name not in image:
        return None
    text = unquoted(image[name])
    return text if len(text) <= _MAX_CHARACTERS else text[: _MAX_CHARACTERS - 1] + "…"
