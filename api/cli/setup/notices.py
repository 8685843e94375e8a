"""Lines of a verb about itself, on stderr."""

from __future__ import annotations

import logging
from typing import Final

import typer

from annals.api.cli.setup.log_config import writes_json

_LOG: Final = logging.getLogger("annals.cli")


def print_notice(text: str, level: int = logging.WARNING, prefix: str = "annals: ") -> None:
    """Prints a line with a prefix, whatever the log level; as a log line if log lines are JSON."""
    if writes_json():
        _LOG.log(level, text)
    else:
        typer.echo(prefix + text, err=True)
