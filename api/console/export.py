"""`annals export`: the whole registry as one document."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Annotated, BinaryIO

import typer

from api.console.ask import answer
from api.console.options import Database, PublicUrl, existing, settings_with
from api.console.progress import Report, bar
from api.settings import Settings

Output = Annotated[Path | None, typer.Option("--output", "-o", dir_okay=False, help="File to write; else stdout.")]


def export(output: Output = None, database: Database = None, public_url: PublicUrl = None) -> None:
    """Write the registry as one document, the same bytes as GET /export.

    `annals import` takes it into another registry. A file appears under its name only once it is complete.
    """
    settings = existing(settings_with(database=database, public_url=public_url))
    if output is None:
        asyncio.run(_copy(settings, sys.stdout.buffer, lambda done, total: None))
        return
    part = output.with_name(output.name + ".part")
    with part.open("wb") as file, bar("Exporting (bytes)") as report:
        asyncio.run(_copy(settings, file, report))
        os.fsync(file.fileno())
    part.replace(output)


async def _copy(settings: Settings, file: BinaryIO, report: Report) -> None:
    done = 0
    async for chunk in answer(settings, "/export"):
        file.write(chunk)
        done += len(chunk)
        report(done, 0)
    file.flush()
