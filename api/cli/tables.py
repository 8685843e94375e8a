"""Rows of text on stdout: coloured columns for people, tabs for programs.

Whoever names an entity or calls a command may choose some of this text, so nothing in it reaches a terminal as a
control character.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.console import Console
from rich.text import Text


class Column(NamedTuple):
    """How a column looks to people. width: what shorter text is filled up to. style: one, or one for each text."""

    width: int = 0
    style: str | dict[str, str] = ""


def is_coloured() -> bool:
    """Whether somebody looks who wants colours: a terminal, and no NO_COLOR."""
    return Console().is_terminal and not os.environ.get("NO_COLOR")


def print_rows(columns: Sequence[Column], rows: Iterable[Sequence[object]]) -> None:
    """Prints rows as they come."""
    if not is_coloured():
        for row in rows:
            sys.stdout.write("\t".join(map(printable_text, row)) + "\n")
        sys.stdout.flush()
        return
    console = Console(highlight=False, soft_wrap=True)
    for row in rows:
        console.print(Text("  ").join(map(_styled, columns, map(printable_text, row))))


def print_json(text: bytes) -> None:
    """Prints JSON text: laid out for people, as it is for programs."""
    if is_coloured():
        Console().print_json(text.decode(), ensure_ascii=False)
    else:
        sys.stdout.write(text.decode() + "\n")


def printable_text(value: object) -> str:
    """The value as text, control characters escaped; empty for None."""
    text = "" if value is None else str(value)
    return text if text.isprintable() else "".join(map(_escaped, text))


def _escaped(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode()


def _styled(column: Column, text: str) -> Text:
    style = column.style if isinstance(column.style, str) else column.style.get(text, "")
    return Text(text.ljust(column.width), style)
