"""Options that the verbs share which copy from and to other schema registries."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from annals.api.cli.outcome import UsageError
from annals.domain.confluent.subjects import parse_context

Context = Annotated[str | None, typer.Option("--context", metavar="CONTEXT", help="Only the schemas of a context.")]
SubjectPrefix = Annotated[
    str, typer.Option("--subject-prefix", metavar="TEXT", help="Only subjects whose names begin so; no settings.")
]
Into = Annotated[str | None, typer.Option("--into", metavar="CONTEXT", help="The context to copy schemas into.")]
User = Annotated[str | None, typer.Option("--user", metavar="NAME", help="User name at the other schema registry.")]
SecretFile = Annotated[
    Path | None,
    typer.Option("--secret-file", metavar="FILE", help="File with the password of the user, or with a token."),
]
Ca = Annotated[
    Path | None,
    typer.Option("--ca", metavar="FILE", exists=True, dir_okay=False, help="PEM file with certificate authorities."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Report what would be copied, and record nothing.")]
Report = Annotated[
    Path | None,
    typer.Option("--report", metavar="FILE", dir_okay=False, help="File for a JSON line per version and setting."),
]


def parse_context_option(text: str | None, option: str) -> str | None:
    """The context that an option names. Raises: UsageError."""
    if text is None:
        return None
    context = parse_context(text)
    if context is None:
        raise UsageError(f"{option}: {text!r} is no context; its name has no colon.")
    return context
