"""Long verbs show their progress: bars in a terminal, lines without one, and nothing for short work."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from rich.progress import Progress

from annals.api.cli.progress import LINE_SECONDS, WorkProgress, amount_text
from tests.support.console import Annals
from tests.support.serving import environment

#: Schemas with two Versions each, in one group.
SCHEMAS: Final = 600
ENTITIES: Final = 1 + 3 * SCHEMAS
EVENTS: Final = ENTITIES + 1  # the registry, whose count of groups changes
IMPORTED: Final = f"all.json: {EVENTS} events, "
_RATE: Final = r"(, [\d.]+/s)?(, (\d+ min )?\d+ s left)?"


@pytest.fixture
def document(folder: Path) -> Path:
    version = {"format": "JsonSchema/draft-07", "schema": {"type": "object"}}
    versions = [{"1": {**version, "name": str(number)}, "2": version} for number in range(SCHEMAS)]
    schemas = {f"s{number}": {"versions": entry} for number, entry in enumerate(versions)}
    path = folder / "all.json"
    path.write_text(json.dumps({"schemagroups": {"g": {"schemas": schemas}}}))
    return path


@pytest.fixture
def every_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prints each report of progress as a line."""
    monkeypatch.setenv(LINE_SECONDS, "0")


def steps(printed: str) -> dict[str, list[tuple[int, int]]]:
    """The amounts and totals that lines show, by step, without the line about ids that an export ends with."""
    found: dict[str, list[tuple[int, int]]] = {}
    for line in (line for line in printed.splitlines() if " ids of schemas" not in line):
        match = re.fullmatch(rf"annals: (\w+) (\d+)(?: of (\d+))? (\w+){_RATE}", line)
        assert match, line
        found.setdefault(f"{match[1]} {match[4]}", []).append((int(match[2]), int(match[3] or 0)))
    return found


@pytest.mark.usefixtures("every_line")
def test_an_import_counts_entities_in_each_phase(annals: Annals, document: Path) -> None:
    ended = annals("import", document)
    assert (ended.code, ended.out.startswith(str(document))) == (0, True)
    phases = steps(ended.err)
    assert list(phases)[-4:] == ["validated entities", "built events", "recorded events", "indexed events"]
    assert phases["validated entities"] == [(1000, ENTITIES), (ENTITIES, ENTITIES)]
    assert phases["recorded events"] == [(1000, EVENTS), (EVENTS, EVENTS)]
    assert phases["built events"][-1] == phases["indexed events"][-1] == (EVENTS, EVENTS)


@pytest.mark.usefixtures("every_line")
def test_an_import_checks_its_documents_before_it_is_decided(annals: Annals, folder: Path) -> None:
    """The model is known before the first write, so that nothing is validated twice."""
    schemas = {
        f"s{number}": {"format": "JsonSchema/draft-07", "schema": {"title": f"{number}"}} for number in range(20)
    }
    path = folder / "all.json"
    path.write_text(json.dumps({"schemagroups": {"g": {"schemas": schemas}}}))
    phases = steps(annals("import", path).err)
    assert list(phases)[:2] == ["checked documents", "validated entities"]
    # each document is checked by its format, and to compute its id in Confluent's API
    assert phases["checked documents"] == [(40, 40)]
    assert phases["validated entities"] == [(21, 21)]


@pytest.mark.usefixtures("every_line")
@pytest.mark.parametrize(
    ("verb", "step", "total"),
    [
        (("log", "verify"), "verified events", EVENTS + 3),
        (("rebuild",), "applied events", EVENTS + 3),
        (("segments", "write", "--folder", "segments"), "wrote events", EVENTS + 3),
        (("segments", "verify", "--folder", "segments"), "verified events", EVENTS + 3),
        (("export", "--output", "copy.json"), "exported MB", 0),
    ],
)
def test_a_long_verb_counts(annals: Annals, document: Path, verb: tuple[str, ...], step: str, total: int) -> None:
    annals("import", document)
    annals("segments", "write", "--folder", "segments" if verb[1:2] == ("verify",) else "other")
    ended = annals(*verb)
    assert ended.code == 0
    reports = steps(ended.err)[step]
    assert reports[-1][1] == total
    assert reports[-1][0] == total or not total
    assert len(reports) > 1, "also within one large interaction"


def test_short_work_prints_nothing(annals: Annals, document: Path) -> None:
    assert annals("import", document).err == ""
    assert annals("rebuild").err == ""


def test_a_terminal_shows_bars(document: Path) -> None:
    """Bars appear in the terminal of stderr; the output of the verb goes to stdout only."""
    controller, terminal = pty.openpty()
    command = [sys.executable, "-m", "annals", "import", document.name]
    env = {**environment(), "TERM": "xterm"}
    with subprocess.Popen(command, cwd=document.parent, env=env, stdout=subprocess.PIPE, stderr=terminal) as process:
        os.close(terminal)
        terminal_output = _read_all(controller)
        assert process.stdout is not None
        assert process.stdout.read().decode().startswith(IMPORTED)
    assert process.returncode == 0
    for step in (f"validated .* {ENTITIES} of {ENTITIES} entities", f"indexed .* {EVENTS} of {EVENTS} events"):
        assert re.search(step, terminal_output), terminal_output
    assert "━" in terminal_output
    assert IMPORTED not in terminal_output


def _read_all(controller: int) -> str:
    """The output of a terminal, until its last writer ends."""
    chunks: list[bytes] = []
    try:
        while chunk := os.read(controller, 65536):
            chunks.append(chunk)
    except OSError:  # Linux reports the end of a terminal as an error
        pass
    finally:
        os.close(controller)
    return b"".join(chunks).decode()


@pytest.mark.parametrize(
    ("amounts", "total", "text"),
    [
        ((0, 4300, 8600), 500_000, "8600 of 500000 entities, 4300/s, 1 min 55 s left"),
        ((0, 4, 8), 36_008, "8 of 36008 entities, 4.0/s, 2 h 30 min left"),
        ((0, 50, 100), 110, "100 of 110 entities, 50/s, 1 s left"),
        ((0, 50, 100), 100, "100 of 100 entities, 50/s"),
        ((0, 50, 100), 0, "100 entities, 50/s"),
        ((100, 50), 0, "50 entities"),
    ],
)
def test_amounts(amounts: tuple[int, ...], total: int, text: str) -> None:
    """The rate is measured over the last seconds. A step that starts again has no rate at first."""
    seconds = iter(range(1000))
    now = 0.0
    progress = Progress(disable=True, get_time=lambda: now)
    report = WorkProgress(progress, None).step("imported", "entities")
    for amount in amounts:
        now = float(next(seconds))
        report(amount, total)
    assert amount_text(progress.tasks[0]) == text
