"""Where a delivered event stands among all others: `sequence`, which names one message of the log (SUB-113).

Inside, it is one number, so that it compares and is stored as one; `text` is what events carry.
"""

from __future__ import annotations

import re
from typing import Final

#: Messages that one position has at most, over all families.
MOST: Final = 100

_TEXT: Final = re.compile(r"([0-9]{20})\.([0-9]{2})\Z", re.ASCII)


def sequence(position: int, index: int) -> int:
    """The message of a position with an index among those that the position comes to."""
    return position * MOST + index


def position_of(sequence: int) -> int:
    """The position of the log that a message is made from."""
    return sequence // MOST


def end_of(position: int) -> int:
    """What no message of a position and of those before it is beyond."""
    return position * MOST + MOST - 1


def text(sequence: int) -> str:
    """As events carry it: these texts sort as the messages stand in the log."""
    return f"{sequence // MOST:020}.{sequence % MOST:02}"


def parsed(text: str) -> int | None:
    """The inverse of `text`; None for anything else."""
    found = _TEXT.match(text)
    return sequence(int(found[1]), int(found[2])) if found and int(found[1]) < 1 << 56 else None
