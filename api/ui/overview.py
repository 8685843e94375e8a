"""The page "Overview": what the registry has, what changed last, and whether it is well (UI-40, UI-65)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from annals.api.http.response import Response
from annals.api.ui.own_api import Query
from annals.api.ui.page_context import PageContext
from annals.api.ui.registry_model import ModelPlace, ModelView, read_model
from annals.api.ui.rights import create_link
from annals.domain.errors.problems import Problem

_RECENT: Final = 10
#: Findings that are read to be counted; more of them say that there are more.
_MAX_FINDINGS: Final = 1000
#: The time that counting findings may take, in seconds; it reads all messages and endpoints.
_FINDINGS_SECONDS: Final = 0.2
_MAX_LISTED: Final = {"limit": "100"}


class CountLink(NamedTuple):
    """A number of entities, with the page that lists them."""

    text: str
    url: str


async def overview_page(page: PageContext) -> Response:
    """The page."""
    registry = (await page.get("/")).json
    model, counts, interactions, health, findings, inactive = await asyncio.gather(
        read_model(page),
        _read_counts(page),
        _recent_interactions(page),
        _health(page),
        _findings(page),
        _inactive(page),
    )
    is_empty = not any(registry[f"{plural}count"] for plural in model.group_types)
    return await page.render(
        "overview.html",
        "Overview",
        is_empty=is_empty,
        counts=list(_count_links(page, model, counts)),
        interactions=interactions,
        health=health,
        findings=findings,
        inactive=inactive,
        warnings=page.warnings,
        first_groups=await _first_groups(page, model) if is_empty else [],
    )


async def _first_groups(page: PageContext, model: ModelView) -> list[tuple[ModelPlace, str]]:
    """Each Group type of an empty registry, with the page that makes its first Group if the caller may."""
    places = [place for plural in model.group_types if (place := model.place((plural,))) is not None]
    return [(place, await create_link(page, place)) for place in places]


async def _read_counts(page: PageContext) -> Mapping[str, int]:
    found = (await page.get("/-/counts")).json
    return {each["type"]: each["count"] for each in found["counts"]}


def _count_links(page: PageContext, model: ModelView, counts: Mapping[str, int]) -> Iterator[CountLink]:
    for plural, group_type in model.group_types.items():
        url = page.link(f"explore/{plural}")
        yield CountLink(f"{counts.get(plural, 0)} {plural}", url)
        for resources in group_type.get("resources", {}):
            yield CountLink(f"{counts.get(f'{plural}.{resources}', 0)} {resources} in {plural}", url)


async def _recent_interactions(page: PageContext) -> list[dict[str, Any]]:
    query = {"order": "desc", "limit": str(_RECENT), "until": page.asof}
    found: list[dict[str, Any]] = (await page.get("/-/interactions", query, with_asof=False)).json
    return found


async def _health(page: PageContext) -> dict[str, Any]:
    found: dict[str, Any] = (await page.get("/-/readyz", with_asof=False)).json
    return found


async def _findings(page: PageContext) -> list[tuple[str, str]] | None:
    """How many findings each rule has, with the page that lists them; None if counting takes too long."""
    query = {"limit": str(_MAX_FINDINGS)}
    try:
        async with asyncio.timeout(_FINDINGS_SECONDS):
            found = await _unless_refused(page, "/-/findings", query)
    except TimeoutError:
        return None
    counts = Counter(each["rule"] for each in found["findings"]) if found else Counter[str]()
    more = "or more " if sum(counts.values()) == _MAX_FINDINGS else ""
    has_page = page.has_page("findings")
    return [
        (f"{count} {more}{rule}", page.link("findings", rule=rule) if has_page else "")
        for rule, count in sorted(counts.items())
    ]


async def _inactive(page: PageContext) -> list[tuple[str, str, str]]:
    """Subscriptions and links that are not active: what it is, its state, and its page."""
    subscriptions = await _unless_refused(page, "/subscriptions", _MAX_LISTED) or []
    links = await _unless_refused(page, "/-/links", _MAX_LISTED) or [] if page.caller.is_admin else []
    found = [("subscriptions", "Subscription", each) for each in _members(subscriptions)]
    found += [("links", "Link", each) for each in _members(links)]
    return [
        (f"{name} {each['id']}", state, page.link(f"{path}/{each['id']}"))
        for path, name, each in found
        if (state := _state(each)) not in ("", "active")
    ]


def _members(answer: Any) -> list[dict[str, Any]]:
    """The items of a list, or of an object that has one or is a map."""
    if isinstance(answer, list):
        return answer
    return next((each for each in answer.values() if isinstance(each, list)), [*answer.values()])


def _state(item: Mapping[str, Any]) -> str:
    status = item.get("status")
    state = status.get("state", "") if isinstance(status, dict) else item.get("state", "")
    return state if isinstance(state, str) else ""


async def _unless_refused(page: PageContext, path: str, query: Query | None) -> Any:
    """The JSON of a read; None if the caller may not have it."""
    try:
        return (await page.get(path, query, with_asof=path.startswith("/-/findings"))).json
    except Problem:
        return None
