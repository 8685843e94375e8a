"""Where a delivered event stands among all others: `sequence`, which names one message of the log (SUB-113).

Inside, it is one number, so that it compares and is stored as one; `text` is what events carry.
"""

from __future__ import annotations

import re
from typing import Final

#: Messages that one position has at most, over all families.
MAX_MESSAGES_PER_POSITION: Final = 100

_TEXT: Final = re.compile(r"([0-9]{20})\.([0-9]{2})\Z", re.ASCII)


def sequence_of(position: int, index: int) -> int:
    """The message of a position with an index among those that the position comes to."""
    return position * MAX_MESSAGES_PER_POSITION + index


def position_of(sequence: int) -> int:
    """The position of the log that a message is made from."""
    return sequence // MAX_MESSAGES_PER_POSITION


def last_sequence(position: int) -> int:
    """What no message of a position and of those before it is beyond."""
    return position * MAX_MESSAGES_PER_POSITION + MAX_MESSAGES_PER_POSITION - 1


def sequence_text(sequence: int) -> str:
    """As events carry it: these texts sort as the messages stand in the log."""
    return f"{sequence // MAX_MESSAGES_PER_POSITION:020}.{sequence % MAX_MESSAGES_PER_POSITION:02}"


def parse_sequence(text: str) -> int | None:
    """The inverse of `text`; None for anything else."""
    found = _TEXT.match(text)
    return sequence_of(int(found[1]), int(found[2])) if found and int(found[1]) < 1 << 56 else None
