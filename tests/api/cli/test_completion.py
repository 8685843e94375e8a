"""The scripts of `annals completion` in real shells: the Tab key completes verbs, options and values."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import pytest

from tests.support.console import Annals

#: From typed text to the line after the Tab key: a verb, a verb of a group, an option, a value of a choice.
COMPLETIONS: Final = {
    "annals sub": "annals subscriptions",
    "annals log ta": "annals log tail",
    "annals secrets ro": "annals secrets rotate",
    "annals rebuild --eng": "annals rebuild --engine",
    "annals rebuild --engine sp": "annals rebuild --engine spark",
    "annals completion z": "annals completion zsh",
    "annals import da": "annals import data.json",
}
SHELLS: Final = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "source <(annals completion bash)"),
    "zsh": (["zsh", "-f", "-i"], "autoload -U compinit; compinit -D -u; source <(annals completion zsh)"),
}
PROMPT: Final = "ready> "
#: Moves to the beginning of the line and turns it into the argument of `echo`, so that its text is printed alone.
ECHO_LINE: Final = "\x01echo = \n"
_ECHOED: Final = re.compile(r"^= (.*?)\s*$", re.MULTILINE)


@pytest.mark.parametrize("name", [pytest.param("bash"), pytest.param("zsh", marks=pytest.mark.uses("zsh"))])
def test_the_tab_key(folder: Path, name: str) -> None:
    _require(name)
    (folder / "data.json").write_text("{}")
    command, script = SHELLS[name]
    assert _echoed_lines(command, script, list(COMPLETIONS)) == list(COMPLETIONS.values())


@pytest.mark.uses("fish")
def test_fish(folder: Path) -> None:
    _require("fish")
    (folder / "data.json").write_text("{}")
    script = "annals completion fish | source; " + "; ".join(f"complete -C '{typed}'" for typed in COMPLETIONS)
    environment = _environment()
    ended = subprocess.run(["fish", "--no-config", "-c", script], capture_output=True, text=True, env=environment)
    offered = [line.partition("\t")[0] for line in ended.stdout.splitlines()]
    assert offered == [words.split()[-1] for words in COMPLETIONS.values()]


def test_the_words_have_explanations(annals: Annals, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_ANNALS_COMPLETE", "complete_fish")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "annals log sh")
    ended = annals()
    assert ended == (0, "show\tPrint one event with the state of its entity after the event, as JSON.\n", "")


def _require(name: str) -> None:
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")


def _environment() -> dict[str, str]:
    """The environment of a shell that finds this `annals`, and prints plain text."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(Path.cwd()), "TERM": "dumb", "PS1": PROMPT, "LANG": "C.UTF-8"}


def _echoed_lines(command: list[str], script: str, typed_lines: list[str]) -> list[str]:
    """The completed line for each typed text, from an interactive shell."""
    controller, terminal = pty.openpty()
    shell = subprocess.Popen(
        command, stdin=terminal, stdout=terminal, stderr=terminal, env=_environment(), start_new_session=True
    )
    os.close(terminal)
    try:
        _read_prompt(controller)
        _type(controller, f"{script}\n")
        return [_ECHOED.findall(_type(controller, f"{typed}\t{ECHO_LINE}"))[-1] for typed in typed_lines]
    finally:
        shell.kill()
        shell.wait()
        os.close(controller)


def _type(terminal: int, keys: str) -> str:
    os.write(terminal, keys.encode())
    return _read_prompt(terminal)


def _read_prompt(terminal: int) -> str:
    """Reads the output of the shell up to its next prompt, after which the shell waits for input."""
    output, deadline = "", time.monotonic() + 60
    while True:
        readable, _, _ = select.select([terminal], [], [], 0.5 if output.endswith(PROMPT) else 60)
        if not readable and output.endswith(PROMPT):
            return output
        assert readable and time.monotonic() < deadline, output
        output += os.read(terminal, 4096).decode()
        output = re.sub(r"\x1b\[\?2004[hl]", "", output)  # zsh switches the mode for pasting after a prompt
