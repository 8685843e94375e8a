"""The command `annals`: registers the verbs, one thin file each in `api/cli/verbs`."""

from __future__ import annotations

import logging
import sys
from typing import Annotated

import typer

from annals import __version__
from annals.api.cli.outcome import EXIT_CODES_HELP, exit_outcome
from annals.api.cli.setup.notices import print_notice
from annals.api.cli.verbs.cesql import cesql
from annals.api.cli.verbs.config import config
from annals.api.cli.verbs.export import export
from annals.api.cli.verbs.import_files import import_
from annals.api.cli.verbs.log import log
from annals.api.cli.verbs.publish import publish
from annals.api.cli.verbs.rebuild import rebuild
from annals.api.cli.verbs.replicate import replicate
from annals.api.cli.verbs.secrets import secrets
from annals.api.cli.verbs.segments import segments
from annals.api.cli.verbs.serve import serve
from annals.api.cli.verbs.spark import spark
from annals.api.cli.verbs.subscriptions import subscriptions

app = typer.Typer(
    help="An event-sourced registry for schemas, messages and endpoints.\n\nStart with `annals serve`. "
    "Settings come from flags, from the environment (ANNALS_...) and from .env; `annals config` shows them.",
    epilog=EXIT_CODES_HELP,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(is_requested: bool) -> None:
    if is_requested:
        typer.echo(f"annals {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """Options before the verb."""


for verb in (serve, export, rebuild, publish, config, cesql):
    app.command(epilog=EXIT_CODES_HELP)(verb)
app.command("import", epilog=EXIT_CODES_HELP)(import_)
app.add_typer(log, name="log", epilog=EXIT_CODES_HELP)
app.add_typer(subscriptions, name="subscriptions", epilog=EXIT_CODES_HELP)
app.add_typer(replicate, name="replicate", epilog=EXIT_CODES_HELP)
app.add_typer(segments, name="segments", epilog=EXIT_CODES_HELP)
app.add_typer(spark, name="spark", epilog=EXIT_CODES_HELP)
app.add_typer(secrets, name="secrets", epilog=EXIT_CODES_HELP)


def main() -> None:
    """Runs the command line and ends the process with its exit code."""
    try:
        app(prog_name="annals")
    except Exception as error:
        outcome = exit_outcome(error)
        if outcome is None:
            raise
        code, message = outcome
        print_notice(message, logging.ERROR)
        sys.exit(code)


if __name__ == "__main__":
    main()
