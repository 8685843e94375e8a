"""Completion of verbs, options and values in shells, by Typer.

The script of a shell calls `annals` with a variable that holds the words typed so far.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

#: The name of the command in usage, help and completion, however it was started.
PROGRAM: Final = "annals"
#: The variable with which the script of a shell asks for completions.
COMPLETION_VARIABLE: Final = f"_{PROGRAM.upper()}_COMPLETE"


class Shell(StrEnum):
    """The shells that have a script."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion_script(shell: Shell) -> str:
    """The script that completes `annals` in a shell."""
    from typer.completion import get_completion_script  # type: ignore[attr-defined]  # imported there, not exported

    script: str = get_completion_script(prog_name=PROGRAM, complete_var=COMPLETION_VARIABLE, shell=shell)
    return script


def enable_completion() -> None:
    """Makes the command answer the questions of the scripts."""
    from typer.completion import completion_init  # type: ignore[attr-defined]

    completion_init()
