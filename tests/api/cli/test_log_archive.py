"""`annals log archive` and `annals log unarchive`: their output, and one line for each refusal."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.archives import flip_byte, forget_cached_files
from tests.support.console import Annals
from tests.support.registries.in_process import create, serving

#: The beginning of correlation ids; two digits follow.
IDS = "0" * 24


@pytest.fixture
def url(sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a store in which one entity has changed twenty times."""
    for name in [name for name in os.environ if name.startswith("ANNALS_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANNALS_DATABASE", sqlite_url)
    create(sqlite_url)
    with serving(sqlite_url, ids=IDS) as api:
        for number in range(20):
            api.done("PUT", "/dirs/d", {"name": f"n{number}"})
    return sqlite_url


def test_a_log_is_archived_read_and_brought_back(
    url: str, annals: Annals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert annals("log", "archive").out == "no archive\n"
    before = annals("log", "history", "/dirs/d", "--json").out
    done = annals("log", "archive", "--before", "18", "--to", "old")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("1 new segments; ") and done.out.endswith(f"positions 1 to 17 are in {tmp_path}/old\n")
    printed = annals("log", "archive").out
    shorter = annals("log", "archive", "--before", "10").out
    assert shorter.startswith("0 new segments; ") and shorter.endswith(f"positions 1 to 17 are in {tmp_path}/old\n")
    assert printed.startswith("1 segments, ") and printed.endswith(f"positions 1 to 17, {tmp_path}/old\n")
    assert annals("log", "history", "/dirs/d", "--json").out == before
    assert annals("log", "verify").code == 0
    assert annals("log", "archive", "--before", f"{IDS}20").out.startswith("1 new segments; ")
    assert annals("log", "archive", "--before", "2100-01-01T00:00:00Z").code == 1
    (tmp_path / "old").rename(tmp_path / "new")
    forget_cached_files(monkeypatch)
    lost = annals("log", "show", "5")
    assert lost.code == 3 and lost.err.count("\n") == 1
    assert f'positions 1 to 17 of the log are needed, and the archive "{tmp_path}/old"' in lost.err
    assert annals("log", "tail", "-n", "1").code == 0
    found = annals("log", "verify")
    assert found.code == 3 and "which cannot be read" in found.out
    assert annals("log", "unarchive").code == 3
    assert annals("log", "archive", "--moved-to", "new").out == f"the archive is {tmp_path}/new\n"
    assert annals("log", "history", "/dirs/d", "--json").out == before
    back = annals("log", "unarchive")
    assert back.code == 0 and back.out.endswith(
        f"states moved back; the files in {tmp_path}/new are no longer needed\n"
    )
    again = annals("log", "unarchive")
    assert (again.code, again.out) == (0, "no archive\n")
    assert annals("log", "archive").out == "no archive\n"
    assert annals("log", "history", "/dirs/d", "--json").out == before


#: Arguments, exit code, and a part of the line.
REFUSED = {
    "no place": (["--before", "10"], 2, "--to is needed"),
    "no moment": (["--to", "old"], 2, "--before is needed"),
    "a position beyond the log": (["--before", "1000", "--to", "old"], 1, "the log ends at position"),
    "no moment at all": (["--before", "yesterday", "--to", "old"], 2, "'--before': it is neither a position"),
    "an unknown id": (["--before", "01kd3yh5rz9m4t7c2x8v6b1nqw", "--to", "old"], 1, "names no moment of this registry"),
    "before everything": (["--before", "1", "--to", "old"], 1, "--before 1: nothing of the log ended before it"),
    "credentials": (
        ["--before", "10", "--to", "s3://key:secret@bucket/x"],
        2,
        "credentials belong into the environment",
    ),
    "no filesystem": (["--before", "10", "--to", "ftp://host/x"], 2, "this cannot be the place of an archive"),
    "a file": (["--before", "10", "--to", "annals.db"], 2, "cannot be read or written"),
    "two things at once": (["--before", "10", "--moved-to", "new"], 2, "--moved-to goes with no other option"),
    "moved without an archive": (["--moved-to", "new"], 1, "the store has no archive"),
}


@pytest.mark.parametrize(("arguments", "code", "line"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_archived_is_refused(
    url: str, annals: Annals, tmp_path: Path, arguments: list[str], code: int, line: str
) -> None:
    ended = annals("log", "archive", *arguments)
    assert (ended.code, ended.out) == (code, "")
    assert line in ended.err and ended.err.count("\n") == 1
    assert annals("log", "archive").out == "no archive\n"
    assert not (tmp_path / "old").exists()


def test_another_place_is_refused(url: str, annals: Annals, tmp_path: Path) -> None:
    annals("log", "archive", "--before", "10", "--to", "old")
    ended = annals("log", "archive", "--before", "15", "--to", "other")
    assert ended.code == 1 and f"the archive of the store is {tmp_path}/old; annals log unarchive" in ended.err
    assert not (tmp_path / "other").exists()


def test_a_damaged_copy_is_refused(url: str, annals: Annals, tmp_path: Path) -> None:
    annals("segments", "write", "--folder", "old")
    [file] = (tmp_path / "old" / "log").iterdir()
    flip_byte(file)
    ended = annals("log", "archive", "--before", "15", "--to", "old")
    assert ended.code == 3 and "The database keeps everything" in ended.err
    assert annals("log", "archive").out == "no archive\n"
