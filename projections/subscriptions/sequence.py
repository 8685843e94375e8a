"""The `sequence` attribute: the place of a delivered message in the log (SUB-113).

The code compares and stores it as one integer; events carry the text of `sequence_text`.
"""

from __future__ import annotations

import re
from typing import Final

#: Largest number of messages of one position, over all families.
MAX_MESSAGES_PER_POSITION: Final = 100

_SEQUENCE_TEXT: Final = re.compile(r"([0-9]{20})\.([0-9]{2})\Z", re.ASCII)


def sequence_of(position: int, index: int) -> int:
    """The sequence of the message with an index at a position."""
    return position * MAX_MESSAGES_PER_POSITION + index


def position_of(sequence: int) -> int:
    """The log position that a message was made from."""
    return sequence // MAX_MESSAGES_PER_POSITION


def last_sequence(position: int) -> int:
    """The highest sequence that a message at a position, or before it, can have."""
    return position * MAX_MESSAGES_PER_POSITION + MAX_MESSAGES_PER_POSITION - 1


def sequence_text(sequence: int) -> str:
    """The text that events carry. The texts sort in log order."""
    return f"{sequence // MAX_MESSAGES_PER_POSITION:020}.{sequence % MAX_MESSAGES_PER_POSITION:02}"


def parse_sequence(text: str) -> int | None:
    """The inverse of `sequence_text`; None for any other text."""
    match = _SEQUENCE_TEXT.match(text)
    return sequence_of(int(match[1]), int(match[2])) if match and int(match[1]) < 1 << 56 else None
