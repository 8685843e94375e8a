"""The command `annals`: its options before the verb, and how it ends."""

from __future__ import annotations

import logging
import os
import sys
from typing import Annotated

import typer

from annals import __version__
from annals.api.cli.lazy_verbs import VERBS, lazy_group
from annals.api.cli.outcome import EXIT_CODES_HELP, ExitCode
from annals.api.cli.setup.notices import print_notice
from annals.api.cli.shell_completion import COMPLETION_VARIABLE, PROGRAM, enable_completion
from annals.api.cli.standard_streams import discard_stderr, open_missing_streams, writing_stdout
from annals.api.cli.tables import printable_text
from annals.api.cli.text_values import require_text_settings

app = typer.Typer(
    cls=lazy_group(VERBS),
    help="An event-sourced registry for schemas, messages and endpoints.\n\nStart with `annals serve`. "
    "Settings come from flags, from the environment (ANNALS_...) and from .env; `annals config` shows them.",
    epilog=EXIT_CODES_HELP,
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
    require_text_settings()


def main() -> None:
    """Runs the command line and ends the process with its exit code. Without arguments, it prints the help."""
    open_missing_streams()
    if COMPLETION_VARIABLE in os.environ:
        enable_completion()
    try:
        with writing_stdout():
            # Not standalone, because Typer's own errors have several lines and, in terminals and in logs, a frame.
            code = app(args=sys.argv[1:] or ["--help"], prog_name=PROGRAM, standalone_mode=False)
    except BrokenPipeError:
        code = ExitCode.REFUSED  # the reader of the pipe has closed it; Typer uses the same code
    except typer.TyperException as error:
        code = _print_error(ExitCode.USAGE, usage_line(error))
    except typer.Abort:
        code = _print_error(ExitCode.REFUSED, "stopped, because a question had no answer.")
    except Exception as error:
        from annals.api.cli.error_lines import exit_outcome  # takes as long to import as the rest of the program

        outcome = exit_outcome(error)
        if outcome is None:
            raise
        code = _print_error(*outcome)
    sys.exit(code or ExitCode.DONE)


def usage_line(error: typer.TyperException) -> str:
    """What is wrong with the command line, and which help explains it if the error names its verb."""
    message = " ".join(error.format_message().replace("Value error, ", "").split())
    sentence = message[:1].lower() + message[1:] + ("" if message.endswith((".", "?")) else ".")
    context = getattr(error, "ctx", None)
    return f"{sentence} See `{context.command_path} --help`." if context else sentence


def _print_error(code: ExitCode, message: str) -> ExitCode:
    try:
        print_notice(printable_text(message), logging.ERROR)
    except OSError:
        discard_stderr()  # nobody can read the line, but the exit code stays
    return code


if __name__ == "__main__":
    main()
