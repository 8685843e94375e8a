"""The summaries in the tables of verbs agree with the help of the verbs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from annals.api.cli.main import app
from annals.api.cli.verbs.log import log

GROUPS: dict[str, Any] = {"annals": typer.main.get_command(app), "annals log": typer.main.get_group(log)}


@pytest.mark.parametrize("group", GROUPS.values(), ids=GROUPS.keys())
def test_each_summary_is_the_first_paragraph_of_the_help(group: Any) -> None:
    stated = {name: command.short_help for name, command in group.commands.items()}
    assert stated == {name: _first_paragraph(command.help) for name, command in group.load_commands().items()}


def _first_paragraph(text: str) -> str:
    return " ".join(text.partition("\n\n")[0].split())


def test_arguments_are_in_upper_case() -> None:
    # so that help tells what to replace from what to type
    shown = {
        f"{verb} {piece}"
        for verb, command in _verbs("annals", typer.main.get_command(app))
        for piece in command.collect_usage_pieces(typer.Context(command))
    }
    assert shown >= {"annals log hash [PATH]", "annals log show {POSITION}", "annals replicate status [ID]"}
    lower = {text for text in shown if re.search("[a-z]", text.rpartition(" ")[2])}
    assert lower == {"annals completion {bash|zsh|fish}"}


def _verbs(name: str, command: Any) -> Iterator[tuple[str, Any]]:
    """A verb with its name, or all verbs of a group."""
    if not hasattr(command, "commands"):
        yield name, command
        return
    verbs = command.load_commands() if hasattr(command, "load_commands") else command.commands
    for verb, below in verbs.items():
        yield from _verbs(f"{name} {verb}", below)
