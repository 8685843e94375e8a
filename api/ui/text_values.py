"""Values as pages show them: times, JSON, sizes, URLs that clients stored, words of commands.

Templates use most of these as filters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from annals.api.ui.html_size import cut_text
from annals.domain.values.json_text import unquoted

#: Schemes of stored URLs that are links; all others are text (ACC-104).
_LINK: Final = re.compile(r"(?:https?://|mailto:)[!-~]+\Z", re.IGNORECASE)
_KIB: Final = 1024
#: Characters of a value in a list.
_SHORT: Final = 80
#: The digits of a second beyond three.
_FINER: Final = re.compile(r"(?<=\.\d{3})\d+")


def utc_text(time: str) -> str:
    """A time of the API as text in UTC, to the second."""
    return f"{time[:10]} {time[11:19]} UTC"


def html_time(time: str) -> str:
    """A time of the API for the attribute `datetime`, which has at most three digits of a second [HTML]."""
    return _FINER.sub("", time)


def short_text(value: Any) -> str:
    """A value as text for a list, cut to one line of moderate length."""
    text = unquoted(value)
    return text if len(text) <= _SHORT else f"{text[: _SHORT - 1]}…"


def visible_text(name: str) -> str:
    """A name as it is; in quotes and with escapes if it begins or ends with a space, or nothing of it can be seen."""
    if name == name.strip() and any(character.isprintable() and character != " " for character in name):
        return name
    return '"' + "".join(each if each.isprintable() else ascii(each)[1:-1] for each in name) + '"'


def is_link(value: Any) -> bool:
    """Whether a stored value is a URL that a page may link to (ACC-104)."""
    return isinstance(value, str) and bool(_LINK.match(value))


def shell_quoted(text: str) -> str:
    """A text as one word of a shell."""
    return "'" + text.replace("'", "'\\''") + "'"


def size_text(size: int) -> str:
    """A number of bytes as text."""
    if size < _KIB:
        return f"{size} bytes"
    return f"{size / _KIB:.1f} KiB" if size < _KIB * _KIB else f"{size / _KIB / _KIB:.1f} MiB"


FILTERS: Final[Mapping[str, Callable[..., Any]]] = {
    "utc": utc_text,
    "html_time": html_time,
    "unquoted": unquoted,
    "short": short_text,
    "visible": visible_text,
    "cut": cut_text,
    "is_link": is_link,
    "size": size_text,
}
