"""`annals rebuild`: the read model made anew from the log."""

from __future__ import annotations

from contextlib import closing

import typer

from api.console.log import reading
from api.console.options import Database
from api.console.outcome import StoreFault
from api.console.progress import bar
from projections.entities.rebuild import Diverged
from projections.entities.rebuild import rebuild as make_anew


def rebuild(database: Database = None) -> None:
    """Make the read model anew from the log, while readers and writers go on.

    The old one serves until the new one is complete; a rebuild that is stopped half-way leaves it as it was.
    """
    with closing(reading(database)) as store, bar("Rebuilding") as report:
        try:
            result = make_anew(store, progress=report)
        except Diverged as error:
            raise StoreFault(
                f"{error}; the read model stays as it was. `annals log verify` says what is wrong."
            ) from error
    rate = result.events / result.seconds if result.seconds else 0
    typer.echo(f"{result.events} events in {result.seconds:.1f} s, {rate:.0f} a second")
