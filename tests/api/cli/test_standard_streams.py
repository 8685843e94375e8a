"""Standard streams that are closed or full: one line or none, a documented exit code, and never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from annals.api.cli.outcome import ExitCode
from tests.support.console import Annals

COMMAND = str(Path(sys.executable).with_name("annals"))
FULL = "annals: cannot write to stdout: No space left on device.\n"
#: Each writes in another way: rows, lines, chunks of JSON, one JSON text, long help, and bytes.
WRITES = [
    "log tail",
    "log tail --json",
    "log verify",
    "log history --json",
    "log show 1",
    "config",
    "--help",
    "--version",
    "completion bash",
    "export",
]


@pytest.fixture
def store(annals: Annals, folder: Path) -> None:
    (folder / "data.json").write_text('{"schemagroups": {"g": {}}}')
    assert annals("import", "data.json").code == ExitCode.DONE


def run(words: str, redirections: str, *, is_buffered: bool = True) -> subprocess.CompletedProcess[str]:
    """How a shell ends the command with redirections. It has no terminal."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return subprocess.run(
        ["sh", "-c", f'exec "$0" "$@" {redirections}', COMMAND, *words.split()],
        env=environment if is_buffered else {**environment, "PYTHONUNBUFFERED": "1"},
        capture_output=True,
        text=True,
        check=False,
        start_new_session=True,
    )


@pytest.mark.parametrize("words", WRITES)
@pytest.mark.usefixtures("store")
def test_a_full_disk_is_one_line(words: str) -> None:
    ended = run(words, ">/dev/full")
    assert (ended.returncode, ended.stderr.splitlines(keepends=True)[-1]) == (ExitCode.USAGE, FULL)
    assert "Traceback" not in ended.stderr and "Exception" not in ended.stderr


@pytest.mark.parametrize("words", ["log history", "--help"])
@pytest.mark.usefixtures("store")
def test_a_full_disk_without_a_buffer_is_the_same_line(words: str) -> None:
    ended = run(words, ">/dev/full", is_buffered=False)
    assert (ended.returncode, ended.stderr) == (ExitCode.USAGE, FULL)


@pytest.mark.parametrize("redirections", ["2>/dev/full", ">/dev/full 2>&1", ">&- 2>&-"])
def test_an_error_that_nobody_can_read_keeps_its_code(folder: Path, redirections: str) -> None:
    assert run("serv", redirections).returncode == ExitCode.USAGE


@pytest.mark.parametrize("words", ["export", "log tail", "log verify", "log history", "--version"])
@pytest.mark.usefixtures("store")
def test_a_closed_stdout_is_the_null_device(words: str) -> None:
    ended = run(words, ">&-")
    assert (ended.returncode, "Traceback" in ended.stderr) == (ExitCode.DONE, False)


def test_no_file_of_a_verb_takes_the_place_of_a_closed_stream(annals: Annals, folder: Path) -> None:
    (folder / "data.json").write_text('{"schemagroups": {"g": {}}}')
    assert run("import data.json", "<&- >&- 2>&-").returncode == ExitCode.DONE
    assert annals("log", "verify").code == ExitCode.DONE


@pytest.mark.parametrize("words", ["passwd bob", "subscriptions create -"])
@pytest.mark.usefixtures("store")
def test_a_closed_stdin_is_empty(words: str) -> None:
    ended = run(words, "<&-")
    assert (ended.returncode, ended.stdout, "Traceback" in ended.stderr) == (ExitCode.REFUSED, "", False)
    assert ended.stderr.splitlines()[-1].startswith("annals: ")


@pytest.mark.usefixtures("store")
def test_a_closed_pipe_ends_without_a_line() -> None:
    # The reader is gone before the command writes, and all output fits the buffer of the command.
    reader, writer = os.pipe()
    os.close(reader)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    ended = subprocess.run(
        [COMMAND, "log", "history", "--json"], stdout=writer, stderr=subprocess.PIPE, env=environment, check=False
    )
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (ExitCode.REFUSED, b"")


def test_the_command_gives_stdout_back(annals: Annals) -> None:
    before = sys.stdout
    assert annals("--version").out.startswith("annals ")
    assert annals("serv").code == ExitCode.USAGE
    assert sys.stdout is before
