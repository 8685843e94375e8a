"""If the archive of a store cannot be read, `annals log verify` says what to do about the archive."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.archives import forget_cached_files
from tests.support.console import Annals
from tests.support.registries.in_process import create, serving


def test_an_archive_that_was_moved_away(
    sqlite_url: str, annals: Annals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANNALS_DATABASE", sqlite_url)
    create(sqlite_url)
    with serving(sqlite_url) as api:
        for number in range(20):
            api.done("PUT", "/dirs/d", {"name": f"n{number}"})
    for before in ("10", "18"):
        assert annals("log", "archive", "--before", before, "--to", "old").code == 0
    (tmp_path / "old").rename(tmp_path / "new")
    forget_cached_files(monkeypatch)
    lost = annals("log", "verify")
    assert (lost.code, lost.out.count("which cannot be read"), lost.err.count("\n")) == (3, 2, 1)
    assert lost.err == (
        "annals: 2 findings; make the archive readable; if its files are at another place now, record that with annals"
        " log archive --moved-to.\n"
    )
    with closing(sqlite3.connect(tmp_path / "annals.db", isolation_level=None)) as connection:
        connection.execute("UPDATE head SET hash = x'00' WHERE position = (SELECT max(position) FROM head)")
    both = annals("log", "verify")
    assert both.code == 3 and both.err.endswith("record that with annals log archive --moved-to; then verify again.\n")
    assert annals("log", "archive", "--moved-to", "new").code == 0
    damaged = annals("log", "verify")
    assert damaged.code == 3 and damaged.err.endswith("1 finding; restore the store from a backup.\n")
