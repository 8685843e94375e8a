"""Wrong usage results in one line on stderr and exit code 2, in terminals and in logs, however the command starts."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from annals.api.cli.outcome import ExitCode
from tests.support.console import Annals

CASES = {
    "an unknown verb": ("serv", "no such command 'serv'. Did you mean 'serve'? See `annals --help`."),
    "a verb that is like none": ("nonsense", "no such command 'nonsense'. See `annals --help`."),
    "an unknown verb of a group": ("log tial", "no such command 'tial'. Did you mean 'tail'? See `annals log --help`."),
    "one of a group that is imported whole": ("secrets rotat", "Did you mean 'rotate'? See `annals secrets --help`."),
    "a group without a verb": ("log", "missing command. See `annals log --help`."),
    "another group without a verb": ("secrets", "missing command. See `annals secrets --help`."),
    "an unknown option": ("serve --prt 1", "no such option: --prt (Possible options: --port). See `annals serve"),
    "an unknown option before the verb": ("--nope", "no such option: --nope. See `annals --help`."),
    "an option without its value": ("log tail -n", "option '-n' requires an argument."),
    "a number that is none": ("serve --port x", "invalid value for '--port': Input should be a valid integer"),
    "a number out of range": ("log show 0", "greater than or equal to 1. See `annals log show --help`."),
    "a moment that is none": (
        "log history / --from yesterday",
        "'--from': it is neither a position, nor an RFC 3339 time, nor a correlation id. See `annals log history",
    ),
    "a time that is none": ("log history --until 2026-02-30T00:00:00Z", "'--until': "),
    "a moment of a comparison": ("log diff --from 1 --to tomorrow", "'--to': it is neither a position"),
    "a moment of a hash": ("log hash --asof 01kd3yh5rz9m4t7c2x8v6b1nq", "'--asof': it is neither a position"),
    "a moment of an archive": ("log archive --before x --to a", "'--before': it is neither a position"),
    "a state that is none": ("subscriptions list --state foo", "'--state': 'foo' is not one of 'active', 'paused', "),
    "a value of no choice": ("rebuild --engine x", "'--engine': 'x' is not one of 'process', 'spark'."),
    "a file that is not there": ("import missing.json", "'missing.json' does not exist. See `annals import --help`."),
    "a missing argument": (
        "import",
        "'FILE...': name documents, or a registry with --from-confluent. See `annals import --help`.",
    ),
    "a missing choice": ("completion", "Choose from: bash, zsh, fish. See `annals completion --help`."),
    "a missing option": ("publish", "missing option '--kafka'. See `annals publish --help`."),
    "too many arguments": ("config extra", "got unexpected extra argument(s) (extra). See `annals config --help`."),
    "a setting out of range": ("serve --port 70000", "ANNALS_PORT: Input should be less than or equal to 65535"),
}
FRAME = re.compile("[\u2500-\u257f\x1b]")


@pytest.mark.parametrize(("words", "message"), CASES.values(), ids=CASES.keys())
def test_one_line(annals: Annals, words: str, message: str) -> None:
    ended = annals(*words.split())
    assert (ended.code, ended.out) == (ExitCode.USAGE, "")
    assert ended.err.startswith("annals: ") and message in ended.err
    assert ended.err.count("\n") == 1 and not FRAME.search(ended.err)


@pytest.mark.parametrize("word", ["a\nb", "\x1b[31mred"])
def test_what_was_typed_cannot_write_to_the_terminal(annals: Annals, word: str) -> None:
    for words in ([word], ["log", word], ["import", word], [f"--{word}"]):
        ended = annals(*words)
        assert (ended.code, ended.err.count("\n"), "\x1b" in ended.err) == (ExitCode.USAGE, 1, False)


def test_the_same_line_in_a_terminal(folder: Path) -> None:
    controller, terminal = pty.openpty()
    ended = subprocess.run([*STARTS[0], "serv"], stdin=terminal, stdout=terminal, stderr=terminal, check=False)
    os.close(terminal)
    printed = os.read(controller, 4096).decode()
    os.close(controller)
    assert ended.returncode == ExitCode.USAGE
    assert printed == f"annals: {CASES['an unknown verb'][1]}\r\n"


STARTS = [str(Path(sys.executable).with_name("annals"))], [sys.executable, "-m", "annals"]


@pytest.mark.parametrize(
    "words", ["", "--version", "--help", "log --help", "serv", "log tail --database sqlite:///no.db"]
)
def test_the_module_is_the_command(folder: Path, words: str) -> None:
    script, module = (
        subprocess.run([*start, *words.split()], capture_output=True, text=True, check=False) for start in STARTS
    )
    assert (module.returncode, module.stdout, module.stderr) == (script.returncode, script.stdout, script.stderr)
    assert module.stdout or module.stderr.startswith("annals: ")


def test_ctrl_c_is_the_end_of_a_verb_that_follows_the_log(annals: Annals, folder: Path) -> None:
    (folder / "data.json").write_text('{"schemagroups": {"g": {}}}')
    assert annals("import", "data.json").code == ExitCode.DONE
    process = subprocess.Popen(
        [*STARTS[0], "log", "tail", "-f"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # A process that a script starts in the background ignores SIGINT, and so do its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout and process.stdout.readline()
    process.send_signal(signal.SIGINT)
    assert (process.wait(timeout=60), process.stderr and process.stderr.read()) == (ExitCode.DONE, b"")
    process.communicate()


def test_the_command_alone_prints_its_help(annals: Annals) -> None:
    ended = annals()
    assert (ended.code, ended.err, ended.out) == (ExitCode.DONE, "", annals("--help").out)
