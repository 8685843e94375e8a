"""Guides do what they say: their commands are run against a served registry and their outputs compared."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.serving import ROOT, serving
from tests.test_readme import Step, pattern, run

_BLOCK = re.compile(r"```sh\n(?P<commands>.*?)```\n```text\n(?P<output>.*?)```\n", re.DOTALL)
#: Guides whose commands go one after the other, with the least number of their blocks.
GUIDES = {"compat.md": 11, "formats.md": 8, "messages.md": 6, "subscriptions/README.md": 4}


@pytest.mark.parametrize("name", GUIDES)
def test_a_guide(name: str, tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'annals.db'}"
    found = list(_BLOCK.finditer((ROOT / "docs" / "guides" / name).read_text()))
    assert len(found) >= GUIDES[name]
    with serving(database, tmp_path) as server:
        for block in found:
            step = Step(block["commands"].strip(), block["output"])
            printed = run(step, server.url, database, tmp_path)
            assert re.fullmatch(pattern(step.output), printed.strip()), f"{step.commands}\nprints\n{printed}"
