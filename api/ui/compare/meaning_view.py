"""The view "Meaning": what `/-/compare` says (UI-92)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from annals.api.ui.compare.sides import PageSides
from annals.api.ui.own_api import query_text
from annals.api.ui.page_context import PageContext, url_path
from annals.domain.errors.http_errors import TookTooLong

#: Rows of one page; all changes are in the files.
MAX_ROWS: Final = 500
#: Characters of a path and of a place; documents may have names of any length.
MAX_WIDTH: Final = 200
#: The time for a comparison, in seconds. The rest of what a page may take is for the comparison of the texts instead.
SECONDS: Final = 3.0
_TOO_LONG: Final = (
    "these documents are too large to be compared by meaning on a page at once; a later try may find the result"
)
_WORDS: Final = {"added": "Added", "removed": "Removed", "typechanged": "Type changed", "changed": "Changed"}


class VerdictText(NamedTuple):
    """A verdict. rules: names of broken rules; empty for "OK". text: why."""

    rules: str
    text: str


class ChangeRow(NamedTuple):
    """A change. place: pointers or lines, on the right side if there is one."""

    change: str
    path: str
    place: str
    before: str
    after: str
    verdicts: list[VerdictText]


async def read_meaning_view(page: PageContext, sides: PageSides) -> Mapping[str, Any]:
    """What the view shows. Raises: Problem, for documents that cannot be compared; TookTooLong."""
    path = f"/-/compare{sides.place.xid}"
    page.raw_json = None
    try:
        async with asyncio.timeout(SECONDS):
            found = (await page.get(path, sides.query, with_asof=False)).json
    except TimeoutError:
        raise TookTooLong(error_detail=_TOO_LONG) from None
    files = {
        name: page.api_url(f"{url_path(path)}?{query_text({**sides.query, 'format': name.lower()})}")
        for name in ("CSV", "NDJSON")
    }
    return {
        "rows": [_row(change) for change in found["changes"][:MAX_ROWS]],
        "left_out": max(0, len(found["changes"]) - MAX_ROWS),
        "is_complete": found["complete"],
        "levels": [(level, verdict["ok"]) for level, verdict in found["levels"].items()],
        "files": files,
    }


def _row(change: Mapping[str, Any]) -> ChangeRow:
    backward, forward = (_verdict(change[direction]) for direction in ("backward", "forward"))
    rules = dict.fromkeys(filter(None, (backward.rules, forward.rules)))
    full = VerdictText(", ".join(rules), "")
    return ChangeRow(
        _WORDS[change["change"]],
        _cut(change["path"]),
        _cut(_place(change["left"], change["right"])),
        change["before"] or "",
        change["after"] or "",
        [backward, forward, full],
    )


def _verdict(verdict: Mapping[str, Any]) -> VerdictText:
    return VerdictText(verdict.get("rule", ""), verdict.get("text", ""))


def _cut(text: str) -> str:
    return text if len(text) <= MAX_WIDTH else text[: MAX_WIDTH - 1] + "…"


def _place(left: Mapping[str, Any] | None, right: Mapping[str, Any] | None) -> str:
    """Where it is: on the right side, and on the left one if that is another place."""
    places = [text for text in (_place_text(left), _place_text(right)) if text]
    return " → ".join(dict.fromkeys(places))


def _place_text(place: Mapping[str, Any] | None) -> str:
    if place is None:
        return ""
    return f"line {place['line']}" if "line" in place else str(place.get("pointer", ""))
