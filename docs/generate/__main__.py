"""Writes all generated pages: `python -m docs.generate`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from docs.generate import command_line, errors, events, formats, http, lake, metrics, settings, tables

FOLDER: Final = Path(__file__).resolve().parents[1] / "reference"
PAGES: Final[dict[str, Callable[[], str]]] = {
    "command-line.md": command_line.text,
    "errors.md": errors.text,
    "events.md": events.text,
    "formats.md": formats.text,
    "http.md": http.text,
    "lake.md": lake.text,
    "metrics.md": metrics.text,
    "settings.md": settings.text,
    "tables.md": tables.text,
}


def main(folder: Path = FOLDER) -> None:
    """Writes the pages to a folder."""
    for name, text in PAGES.items():
        folder.joinpath(name).write_text(text())


if __name__ == "__main__":
    main()
