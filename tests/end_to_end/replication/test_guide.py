"""The guide does what it says: its commands are run against two served registries and their outputs compared."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.support.polling import until
from tests.support.serving import ROOT, environment, serving
from tests.test_readme import pattern

_BLOCK: Final = re.compile(r"```sh\n(?P<commands>.*?)```\n```text\n(?P<output>.*?)```\n", re.DOTALL)
_SETTING: Final = re.compile(r"^    export (ANNALS_\w+)=(\S+)$", re.MULTILINE)
_HERE: Final = "http://127.0.0.1:8080"
_THERE: Final = "http://127.0.0.1:8081"
#: Commands that only look, so that they may be tried until what they show has come over.
_LOOKS: Final = re.compile(r"curl -s http|\.venv/bin/annals replicate status")


def test_the_guide(tmp_path: Path) -> None:
    guide = (ROOT / "docs" / "guides" / "replication.md").read_text()
    found, settings = list(_BLOCK.finditer(guide)), dict(_SETTING.findall(guide))
    assert len(found) >= 10
    here, there = (f"sqlite:///{tmp_path / name}.db" for name in ("annals", "primary"))
    for home in ("a", "b"):
        (tmp_path / home).mkdir()
    with serving(there, tmp_path / "b", **settings) as primary, serving(here, tmp_path / "a", **settings) as replica:
        names = {_HERE: replica.url, _THERE: primary.url, "sqlite:///primary.db": there}

        def run(commands: str) -> str:
            for name, value in names.items():
                commands = commands.replace(name, value)
            commands = commands.replace("curl -s", "curl -sS -w '\\n'")
            commands = commands.replace(".venv/bin/annals", f"{sys.executable} -m annals")
            shell = ["bash", "-euo", "pipefail", "-c", commands]
            env = environment(ANNALS_DATABASE=here, **settings)
            done = subprocess.run(shell, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60)
            assert done.returncode == 0, done.stderr
            printed = done.stdout
            for name, value in names.items():
                printed = printed.replace(value, name)
            return printed

        for block in found:
            commands, output = block["commands"].strip(), pattern(block["output"])
            printed = [run(commands)]

            def shows(commands: str = commands, output: str = output, printed: list[str] = printed) -> bool:
                if re.fullmatch(output, printed[-1].strip()):
                    return True
                if _LOOKS.match(commands):
                    printed.append(run(commands))
                    return False
                raise AssertionError(f"{commands}\nprints\n{printed[-1]}")

            until(shows, 60)
