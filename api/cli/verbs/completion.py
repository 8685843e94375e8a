"""`annals completion`: prints the script with which a shell completes the command line."""

from __future__ import annotations

from typing import Annotated

import typer

from annals.api.cli.shell_completion import Shell, completion_script


def completion(shell: Annotated[Shell, typer.Argument(metavar="bash|zsh|fish", help="The shell.")]) -> None:
    """Print a script that completes verbs, options and values in a shell.

    Add the line `source <(annals completion bash)` to ~/.bashrc, or `source <(annals completion zsh)` to ~/.zshrc after
    compinit. For fish: `annals completion fish > ~/.config/fish/completions/annals.fish`.
    """
    typer.echo(completion_script(shell))
