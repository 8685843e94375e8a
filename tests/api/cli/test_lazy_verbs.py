"""The summaries in the tables of verbs agree with the help of the verbs."""

from __future__ import annotations

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
