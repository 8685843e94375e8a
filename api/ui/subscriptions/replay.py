"""What a replay would send again (UI-112)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from annals.api.ui.page_context import PageContext
from annals.api.ui.subscriptions.preview import preview_body
from annals.domain.errors.problems import BadRequest

_PREVIEW: Final = "/-/subscriptions/preview"
_MAX_MATCHES: Final = 1000


class ReplayCount(NamedTuple):
    """The events in a range that the subscription wants. matched: their number.

    first, last: None if there are none. is_complete: whether the whole range was counted.
    """

    start: str
    end: str
    matched: int
    first: Mapping[str, Any] | None
    last: Mapping[str, Any] | None
    is_complete: bool


def parse_range(start: str, end: str) -> dict[str, Any]:
    """The range as the API takes it. end: empty for the end of the log. Raises: BadRequest."""
    body = {"fromposition": _parse_position("From position", start)}
    return body | ({"toposition": _parse_position("To position", end)} if end else {})


async def count_replay(page: PageContext, subscription: Mapping[str, Any], start: str, end: str) -> ReplayCount | None:
    """What a replay of a range would send; None if no range is given. Raises: BadRequest, and what a preview raises."""
    if not start and not end:
        return None
    body = {**preview_body(subscription), **parse_range(start, end)}
    found = (await page.send("POST", _PREVIEW, body={**body, "limit": _MAX_MATCHES})).json
    matches, matched = found["matches"], found["matched"]
    last = matches[-1] if matches and matched <= len(matches) else await _last_match(page, body, found)
    return ReplayCount(start, str(found["to"]), matched, matches[0] if matches else None, last, found["complete"])


async def _last_match(page: PageContext, body: Mapping[str, Any], found: Mapping[str, Any]) -> Any:
    """The last event of a range with more events than one preview lists; None for none among the last positions."""
    start = max(found["from"], found["to"] - _MAX_MATCHES // 4)
    tail = {**body, "fromposition": start, "toposition": found["to"], "limit": _MAX_MATCHES}
    matches = (await page.send("POST", _PREVIEW, body=tail)).json["matches"]
    return matches[-1] if matches else None


def _parse_position(name: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise BadRequest(error_detail=f'"{name}" needs a position of the log')
    return int(text)
