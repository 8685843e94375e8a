"""Parts of pages in Markdown."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence


def page(title: str, introduction: str, *parts: str) -> str:
    """A generated page. introduction: what it has, as Markdown."""
    notice = "`python -m docs.generate` generates this page; a test fails if it is out of date."
    return "\n\n".join((f"# {title}", introduction, notice, *parts)) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table. Its cells are Markdown; they may contain pipes and line ends."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        f"| {' | '.join(map(cell, line))} |" if line[0] != "---" else "|---" * len(head) + "|" for line in lines
    )


def cell(text: str) -> str:
    """Text as a cell of a table holds it.

    Renderers disagree about an escaped pipe in code, so such code is HTML.
    """
    parts = escaped(" ".join(text.split())).split("`")
    return "".join(
        part.replace("|", "\\|") if index % 2 == 0 else f"`{part}`" if "|" not in part else _html_code(part)
        for index, part in enumerate(parts)
    )


def _html_code(text: str) -> str:
    return f"<code>{html.escape(text, quote=False).replace('|', '&#124;')}</code>"


def escaped(text: str) -> str:
    """Text whose angle brackets are text; in code they are anyway."""
    parts = text.split("`")
    return "`".join(part if index % 2 else part.replace("<", "&lt;") for index, part in enumerate(parts))


def code(text: object) -> str:
    """Text as code, nothing for an empty one."""
    return f"`{text}`" if str(text) else ""
