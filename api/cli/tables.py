"""Rows of text on stdout: coloured columns in a terminal, tabs otherwise.

Other users choose names of entities and of callers, so the text is escaped: no control character reaches a terminal.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from rich.text import Text


#: Colours of the kinds of change.
CHANGE_STYLES: Final = {
    **dict.fromkeys(("created", "EntityCreated"), "green"),
    **dict.fromkeys(("updated", "changed", "EntityUpdated"), "yellow"),
    **dict.fromkeys(("deleted", "EntityDeleted"), "red"),
    **dict.fromkeys(("refreshed", "EntityRefreshed"), "dim"),
}


class Column(NamedTuple):
    """The look of a column in a terminal. width: minimum width. style: one style, or one for each text."""

    width: int = 0
    style: str | dict[str, str] = ""


def is_coloured() -> bool:
    """Whether to use colours: stdout is a terminal and NO_COLOR is not set."""
    return (sys.stdout.isatty() or bool(os.environ.get("FORCE_COLOR"))) and not os.environ.get("NO_COLOR")


def print_rows(columns: Sequence[Column], rows: Iterable[Sequence[object]]) -> None:
    """Prints rows as they arrive."""
    if not is_coloured():
        for row in rows:
            sys.stdout.write("\t".join(map(printable_text, row)) + "\n")
        sys.stdout.flush()
        return
    from rich.console import Console  # not needed for a pipe, and takes long to import
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    for row in rows:
        console.print(Text("  ").join(map(_styled_text, columns, map(printable_text, row))))


def print_json(text: bytes) -> None:
    """Prints JSON text: indented in a terminal, unchanged otherwise."""
    if is_coloured():
        from rich.console import Console

        Console().print_json(text.decode(), ensure_ascii=False)
    else:
        sys.stdout.write(text.decode() + "\n")


def printable_text(value: object) -> str:
    """The value as text, control characters escaped; empty for None."""
    text = "" if value is None else str(value)
    return text if text.isprintable() else "".join(map(_escape, text))


def _escape(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode()


def _styled_text(column: Column, text: str) -> Text:
    from rich.text import Text

    style = column.style if isinstance(column.style, str) else column.style.get(text, "")
    return Text(text.ljust(column.width), style)
