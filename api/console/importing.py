"""`annals import`: xRegistry documents from files into the registry."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from api.console.opening import opened
from api.console.options import Database, PublicUrl, settings_with
from api.console.outcome import Misused, Refused, problem_line
from api.console.papers import Kind, Paper, command, read
from api.console.progress import bar
from api.wiring import Registry
from commands.log import Store
from domain import xid as xids
from domain.dialects import DIALECTS, Foreign
from domain.entities import Attributes
from domain.jsontext import InvalidJson, loads
from domain.problems import Problem
from domain.roles import CONSOLE

Files = Annotated[
    list[Path], typer.Argument(metavar="FILE...", exists=True, dir_okay=False, readable=True, help="JSON documents.")
]
As = Annotated[Kind | None, typer.Option("--as", help="What the files are; else each file's content tells.")]


Dialect = Annotated[str | None, typer.Option(help=f"The older form that the files are in: {', '.join(DIALECTS)}.")]


def import_(
    files: Files,
    as_: As = None,
    dialect: Dialect = None,
    database: Database = None,
    public_url: PublicUrl = None,
) -> None:
    """Take xRegistry documents into the registry, in the order given.

    A file is a modelsource (types under `groups`) or a registry document: collections of Groups, alone or beside
    attributes of the registry. What is there already stays or is updated; nothing is removed. Each file goes in as a
    whole or not at all, and the first that is refused ends the import. Files in a dialect are registry documents, or
    maps of endpoints, and what is changed to take them in is told on stderr.
    """
    settings = settings_with(database=database, public_url=public_url)
    papers = [_translated(file, dialect) if dialect else _read(file, as_) for file in files]
    with opened(settings) as registry, bar("Importing") as report:
        for done, paper in enumerate(papers):
            report(done, len(papers))
            line = f"{paper.path}: {_take(registry, paper)}"
            report(done + 1, len(papers))
            typer.echo(line)


def _read(file: Path, kind: Kind | None) -> Paper:
    try:
        return read(file, kind)
    except Problem as problem:
        raise Refused(f"{file}: {problem_line(problem)}") from problem


def _translated(file: Path, dialect: str) -> Paper:
    if dialect not in DIALECTS:
        raise Misused(f"there is no dialect {dialect!r}, only {', '.join(DIALECTS)}")
    try:
        translated = DIALECTS[dialect](loads(file.read_bytes()))
    except (InvalidJson, Foreign) as error:
        raise Refused(f"{file}: {error}") from None
    for change in translated.report:
        names = f"{', '.join(change.was)} -> {', '.join(change.now) or 'left out'}"
        typer.echo(f"{file}{change.path}: {names} ({change.why})", err=True)
    return Paper(file, Kind.REGISTRY, translated.tree)


def _take(registry: Registry, paper: Paper) -> str:
    """What became of a document, in words."""
    try:
        asked = command(paper, _model(registry.store))
        recorded = registry.road.submit(asked, CONSOLE).result() if asked else None
    except Problem as problem:
        raise Refused(f"{paper.path}: {problem_line(problem)}") from problem
    if recorded is None or recorded.xregcorrelationid is None:
        return "nothing new"
    return f"{len(recorded.events)} events, {recorded.xregcorrelationid}"


def _model(store: Store) -> Attributes:
    """The `modelsource` and `model` in force."""
    last = store.recorder.select_events(xids.MODEL, desc=True, limit=1)[0]
    attributes: Attributes = store.mapper.to_domain_event(last).attributes
    return attributes
