"""docs/explanation/architecture.md names all folders, and the functions that a PUT calls, in order."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import annals
from tests.support.registries.in_process import create, serving

Step = tuple[str, str]

ROOT = Path(__file__).resolve().parents[1]
TEXT = (ROOT / "docs" / "explanation" / "architecture.md").read_text()
ROOMS = ("domain", "commands", "projections", "api", "spark_projections")
_ROW = re.compile(r"^\| `([a-z_]+/[a-z_]+)` \|", re.MULTILINE)
_STEP = re.compile(r"^\d+\. `([a-z_/]+\.py)` `([A-Za-z_.]+)`", re.MULTILINE)
_FILE = re.compile(r"`((?:domain|commands|projections|api|spark_projections|tests)/[a-z_/]+\.py)`")


def test_the_rooms_are_the_folders() -> None:
    found = [f"{room}/{folder.parent.name}" for room in ROOMS for folder in sorted((ROOT / room).glob("*/__init__.py"))]
    assert sorted(_ROW.findall(TEXT)) == sorted(found)


def test_files_that_are_named_are_there() -> None:
    assert [name for name in _FILE.findall(TEXT) if not (ROOT / name).is_file()] == []


class Calls:
    """The functions of some steps in the order of their first calls, in this thread and those started in the block."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.made: list[Step] = []
        self._steps = frozenset(steps)

    def __enter__(self) -> Calls:
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        step = frame.f_code.co_filename, frame.f_code.co_qualname
        if event == "call" and step in self._steps and step not in self.made:
            self.made.append(step)


def test_a_put_goes_this_way(sqlite_url: str) -> None:
    """Each function of the list is called, and the first calls are in the order of the list."""
    steps = [(str(Path(annals.__path__[0], file)), name) for file, name in _STEP.findall(TEXT)]
    assert len(steps) > 9
    create(sqlite_url)
    with Calls(steps) as calls, serving(sqlite_url) as api:
        calls.made.clear()  # opening a registry may write too
        answer = api.send("PUT", "/dirs/d/files/f$details", {"name": "n"})
        made = list(calls.made)
    assert answer.status_code == 201, answer.text
    assert made == steps
