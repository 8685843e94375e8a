"""The page "Compare": two Versions, or one entity at two moments, in three views (UI-47, UI-90)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from annals.api.http.response import Response
from annals.api.ui.compare.attributes_view import read_attributes_view
from annals.api.ui.compare.meaning_view import read_meaning_view
from annals.api.ui.compare.sides import PageSides, read_sides
from annals.api.ui.compare.text_view import read_text_view
from annals.api.ui.page_context import PageContext
from annals.api.ui.problem_page import ShownProblem, shown_problem
from annals.domain.errors.http_errors import TookTooLong
from annals.domain.errors.problems import BadRequest

TEXT: Final = "text"
MEANING: Final = "meaning"
ATTRIBUTES: Final = "attributes"
_KEPT: Final = ("left", "right", "leftasof", "rightasof")


async def compare_page(page: PageContext) -> Response:
    """The page. What cannot be compared is an alert above the fields, with the text instead of the meaning.

    Raises: NotFound, BadRequest.
    """
    sides = await read_sides(page)
    views = (TEXT, MEANING, ATTRIBUTES) if sides.place.has_document else (ATTRIBUTES,)
    of = page.param("of", views[0])
    if of not in views:
        raise BadRequest(error_detail=f'the parameter "of": it takes {" or ".join(views)} here')
    shown: Mapping[str, Any] | None = None
    instead: Mapping[str, Any] | None = None
    alert: ShownProblem | None = None
    status = 200
    try:
        shown = await _read_view(page, sides, of)
    except (BadRequest, TookTooLong) as problem:
        alert, status = shown_problem(problem, page.asked), problem.status
        if of == MEANING:
            instead = await _read_view(page, sides, TEXT)
    return await page.render(
        "compare/compare.html",
        "Compare",
        status,
        sides=sides,
        of=of,
        views=[(view.capitalize(), _url(page, of=view), view == of) for view in views],
        layouts=_layouts(page) if of == TEXT else [],
        formats=_format_link(page, shown) if shown and of == TEXT else None,
        shown=shown,
        instead=instead,
        alert=alert,
    )


async def _read_view(page: PageContext, sides: PageSides, of: str) -> Mapping[str, Any]:
    if of == TEXT:
        return await read_text_view(page, sides.left, sides.right)
    return await (read_meaning_view if of == MEANING else read_attributes_view)(page, sides)


def _layouts(page: PageContext) -> list[tuple[str, str, bool]]:
    is_inline = page.param("view") == "inline"
    return [
        ("Side by side", _url(page, of=TEXT), not is_inline),
        ("Inline", _url(page, of=TEXT, view="inline"), is_inline),
    ]


def _format_link(page: PageContext, shown: Mapping[str, Any]) -> tuple[str, str] | None:
    """The link to the other layout of JSON; None where the documents are not JSON."""
    if not shown["can_format"]:
        return None
    text, value = ("As stored", "0") if shown["is_formatted"] else ("Formatted", "1")
    return text, _url(page, of=TEXT, view=page.param("view") or None, format=value)


def _url(page: PageContext, **query: str | None) -> str:
    """The page of the same sides with other parameters."""
    return page.link(page.path, **{name: page.param(name) or None for name in _KEPT}, **query)
