"""How long values are as HTML, and where pages cut them: a page has at most 1 MB (UI-18)."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate, takewhile
from typing import Final, NamedTuple

from markupsafe import escape

#: The maximum size of a page, and what its largest part may take of it, in bytes.
MAX_PAGE: Final = 1_000_000
MAX_PART: Final = 600_000
#: The most bytes of a character in HTML, which a quotation mark takes.
_WIDEST: Final = 5


class CutText(NamedTuple):
    """The beginning of a text. left_out: the number of characters after it."""

    text: str
    left_out: int


def html_size(text: str) -> int:
    """The number of bytes that a text takes in HTML."""
    return len(escape(text).encode())


def fits(text: str, limit: int) -> bool:
    """Whether a text takes at most so many bytes in HTML."""
    return len(text) * _WIDEST <= limit or (len(text) <= limit and html_size(text) <= limit)


def cut_text(text: str, limit: int) -> CutText:
    """The longest beginning of a text that takes at most so many bytes in HTML."""
    if fits(text, limit):
        return CutText(text, 0)
    low, high = 0, min(len(text), limit)
    while low < high:
        middle = (low + high + 1) // 2
        if html_size(text[:middle]) <= limit:
            low = middle
        else:
            high = middle - 1
    return CutText(text[:low], len(text) - low)


def count_within(sizes: Iterable[int], limit: int) -> int:
    """How many of the first parts take at most so many bytes together. sizes: of the parts."""
    return sum(1 for _ in takewhile(lambda total: total <= limit, accumulate(sizes)))
