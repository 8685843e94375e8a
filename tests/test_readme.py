"""README's tour does what it says: its commands are run against a served registry and its outputs compared."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from tests.support.serving import ROOT, environment, serving

README = (ROOT / "README.md").read_text()
_BLOCK = re.compile(r"```sh\n(?P<commands>.*?)```\n(?:```text\n(?P<output>.*?)```\n)?", re.DOTALL)
START = "make run"


class Step(NamedTuple):
    """One block of commands and what README says that they print, `…` standing for anything."""

    commands: str
    output: str


def steps() -> Iterator[Step]:
    tour = README.split("## A tour")[1].split("\n## ")[0]
    for found in _BLOCK.finditer(tour):
        yield Step(found["commands"].strip(), found["output"] or "")


def run(step: Step, url: str, database: str, cwd: Path) -> str:
    """What the commands print; all of them have to succeed. Answers of curl end their line."""
    commands = step.commands.replace("http://127.0.0.1:8080", url).replace("curl -s", "curl -sS -w '\\n'")
    commands = commands.replace(".venv/bin/annals", f"{sys.executable} -m annals")
    shell = ["bash", "-euo", "pipefail", "-c", commands]
    env = environment(ANNALS_DATABASE=database, ANNALS_PUBLIC_URL=url)
    done = subprocess.run(shell, cwd=cwd, env=env, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout.replace(url, "http://127.0.0.1:8080")


def pattern(output: str) -> str:
    return r"\n+".join(re.escape(line).replace("…", ".*") for line in output.strip().splitlines())


def test_the_tour(tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path / 'annals.db'}"
    url = ""
    with ExitStack() as server:
        for step in steps():
            if step.commands == START:
                server.close()
                url = server.enter_context(serving(database, tmp_path)).url
                continue
            printed = run(step, url, database, tmp_path)
            assert re.fullmatch(pattern(step.output), printed.strip()), f"{step.commands}\nprints\n{printed}"
    assert sum(step.commands == START for step in steps()) == 2
