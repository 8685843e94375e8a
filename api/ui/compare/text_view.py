"""The view "Text": the lines of two documents, with long equal runs folded (UI-91)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final, NamedTuple

from annals.api.ui.compare.line_difference import LineRun, line_runs
from annals.api.ui.compare.sides import PageSide
from annals.api.ui.html_size import count_within, html_size
from annals.api.ui.json_layout import break_json, is_json
from annals.api.ui.page_context import PageContext

#: The largest documents whose lines are compared, in bytes and in lines.
MAX_BYTES: Final = 1 << 20
MAX_LINES: Final = 20_000
#: Equal lines that are shown before and after a difference.
CONTEXT: Final = 3
#: Rows of one page, characters of a line, and of the HTML of all rows (UI-18).
MAX_ROWS: Final = 1_500
MAX_WIDTH: Final = 400
MAX_HTML: Final = 800_000
#: Characters of the HTML of a row without its lines.
_ROW_HTML: Final = 220

#: Not what `splitlines` adds to these, which is text within a line for browsers and editors.
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_EQUAL: Final = "No difference"
_EQUAL_LINES: Final = "The lines are equal; line ends or the end of the document differ."
_EQUAL_JSON: Final = "The documents differ in white space only."

ADDED: Final = "Added"
REMOVED: Final = "Removed"
CHANGED: Final = "Changed"


class LineRow(NamedTuple):
    """A row of the table. change: a word; empty for an equal line. folded: how many equal lines it stands for.

    left, right: number and text of a line; None on a side without one.
    """

    change: str
    left: tuple[int, str] | None
    right: tuple[int, str] | None
    folded: int = 0


class TextDifference(NamedTuple):
    """The rows, and how many are not shown."""

    rows: list[LineRow]
    left_out: int


async def read_text_view(page: PageContext, left: PageSide, right: PageSide) -> Mapping[str, Any]:
    """What the view shows. reason: why there are no rows. Raises: Problem."""
    texts: list[str] = []
    for side in (left, right):
        answer = await page.get(side.document_path, {"asof": side.asof}, with_asof=False)
        if answer.is_elsewhere:
            return _without_rows(f"The document of {side.subject} is stored elsewhere.")
        text = _text(answer.body)
        if text is None:
            return _without_rows(f"The document of {side.subject} is not text, or has more than 1 MiB.")
        texts.append(text)
    is_formatted = _is_formatted(page, texts)
    difference = await asyncio.to_thread(text_difference, *texts, is_formatted=is_formatted)
    if difference is None:
        return _without_rows(f"A document has more than {MAX_LINES} lines.")
    is_inline = page.param("view") == "inline"
    rows = list(_inline(difference.rows)) if is_inline else difference.rows
    return {
        "reason": "" if rows else _reason(texts, is_formatted=is_formatted),
        "rows": rows,
        "left_out": difference.left_out,
        "is_inline": is_inline,
        "can_format": all(map(is_json, texts)),
        "is_formatted": is_formatted,
    }


def text_difference(left: str, right: str, *, is_formatted: bool = False) -> TextDifference | None:
    """The differences of two texts; None for texts with too many lines. is_formatted: of JSON with line breaks."""
    if is_formatted:
        left, right = break_json(left), break_json(right)
    left_lines, right_lines = _lines(left), _lines(right)
    if max(len(left_lines), len(right_lines)) > MAX_LINES:
        return None
    runs = line_runs(left_lines, right_lines)
    if all(run.is_equal for run in runs):
        return TextDifference([], 0)
    rows = [row for index, run in enumerate(runs) for row in _run_rows(run, index, len(runs), left_lines, right_lines)]
    shown = min(MAX_ROWS, count_within(map(_row_size, rows), MAX_HTML))
    return TextDifference(rows[:shown], len(rows) - shown)


def _reason(texts: Sequence[str], *, is_formatted: bool) -> str:
    """Why two texts with equal lines have no rows."""
    if texts[0] == texts[1]:
        return _EQUAL
    return _EQUAL_JSON if is_formatted else _EQUAL_LINES


def _lines(text: str) -> list[str]:
    lines = _LINE_END.split(text)
    return lines if lines[-1] else lines[:-1]


def _without_rows(reason: str) -> Mapping[str, Any]:
    return {"reason": reason, "rows": [], "left_out": 0, "is_inline": False, "can_format": False, "is_formatted": False}


def _text(body: bytes) -> str | None:
    if len(body) > MAX_BYTES or b"\0" in body:
        return None
    try:
        return body.decode()
    except UnicodeDecodeError:
        return None


def _is_formatted(page: PageContext, texts: Sequence[str]) -> bool:
    """Whether JSON gets line breaks: as the page is asked, else where a document is one line."""
    if not all(map(is_json, texts)):
        return False
    asked = page.param("format")
    return asked == "1" if asked else any("\n" not in text.strip() for text in texts)


def _run_rows(run: LineRun, index: int, count: int, left: Sequence[str], right: Sequence[str]) -> Iterator[LineRow]:
    if not run.is_equal:
        yield from (_changed_row(left, right, one, other) for one, other in zip_longest(run.left, run.right))
        return
    pairs = [(_line(left, one), _line(right, other)) for one, other in zip(run.left, run.right, strict=True)]
    before = CONTEXT if index else 0
    after = CONTEXT if index < count - 1 else 0
    folded = len(pairs) - before - after
    if folded <= 1:
        yield from (LineRow("", one, other) for one, other in pairs)
        return
    yield from (LineRow("", one, other) for one, other in pairs[:before])
    yield LineRow("", None, None, folded)
    yield from (LineRow("", one, other) for one, other in pairs[len(pairs) - after :])


def _changed_row(left: Sequence[str], right: Sequence[str], one: int | None, other: int | None) -> LineRow:
    """A row with a line of each text. one, other: None for a line that the other text alone has."""
    if one is None or other is None:
        change = ADDED if one is None else REMOVED
        return LineRow(
            change, None if one is None else _line(left, one), None if other is None else _line(right, other)
        )
    start = _first_shown(left[one], right[other])
    return LineRow(CHANGED, _line(left, one, start), _line(right, other, start))


def _first_shown(left: str, right: str) -> int:
    """The first character that is shown of two lines, so that what is shown of them differs."""
    if max(len(left), len(right)) <= MAX_WIDTH:
        return 0
    pairs = enumerate(zip(left, right, strict=False))
    equal = next((index for index, (one, other) in pairs if one != other), min(len(left), len(right)))
    return 0 if equal < MAX_WIDTH // 2 else equal - MAX_WIDTH // 4


def _row_size(row: LineRow) -> int:
    return _ROW_HTML + sum(html_size(side[1]) for side in (row.left, row.right) if side is not None)


def _line(lines: Sequence[str], index: int, start: int = 0) -> tuple[int, str]:
    """Number and text of a line. start: the first character that is shown of a long one."""
    text = ("…" if start else "") + lines[index][start : start + MAX_WIDTH + 1]
    return index + 1, text if len(text) <= MAX_WIDTH else text[: MAX_WIDTH - 1] + "…"


def _inline(rows: Sequence[LineRow]) -> Iterator[LineRow]:
    """The rows with one side each: of changed lines, first those of the left side and then those of the right one."""
    waiting: list[LineRow] = []
    for row in rows:
        if row.change == CHANGED:
            yield LineRow(REMOVED, row.left, None)
            waiting.append(LineRow(ADDED, None, row.right))
            continue
        if row.change != ADDED:
            yield from waiting
            waiting = []
        if row.change == ADDED and waiting:
            waiting.append(row)
        else:
            yield row
    yield from waiting
