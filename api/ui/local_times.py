"""Times of forms: what a field for date and time sends, as the API takes it, and back."""

from __future__ import annotations

import re
from typing import Final

_FIELD_TIME: Final = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(:\d{2})?(\.\d+)?\Z")


def moment_of_field(text: str) -> str:
    """A time of a field, which is in UTC, as the API takes it; any other text as it is."""
    text = text.strip()
    if not _FIELD_TIME.match(text):
        return text
    return f"{text}:00Z" if text.count(":") == 1 else f"{text}Z"


def field_time(moment: str) -> str:
    """A moment as a field for date and time shows it; empty for one that is no time in UTC."""
    text = moment.strip().removesuffix("Z")
    return text[:19] if _FIELD_TIME.match(text) else ""
