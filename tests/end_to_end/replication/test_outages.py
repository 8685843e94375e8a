"""Links whose database is unavailable for a while: they wait for it, and their server logs the outage once."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.support.polling import until
from tests.support.registries.restarted import Registry, registries, wait_until_equal_logs


@contextmanager
def locked(registry: Registry) -> Iterator[None]:
    """Holds the write lock of a registry's SQLite file."""
    with closing(sqlite3.connect(registry.database.removeprefix("sqlite:///"), isolation_level=None)) as holder:
        holder.execute("PRAGMA busy_timeout = 10000")
        holder.execute("BEGIN IMMEDIATE")
        yield
        holder.execute("ROLLBACK")


def lines(registry: Registry) -> list[str]:
    """The log lines of links about the database of their server. Checks that there is no traceback."""
    printed = (registry.home / "serve.log").read_text()
    assert "Traceback" not in printed
    return [line for line in printed.splitlines() if "the database can" in line]


@pytest.mark.long
def test_a_locked_database_is_named_once_when_it_begins_and_once_when_it_ends(tmp_path: Path) -> None:
    """LEG-901: a link that cannot write continues once it can; a lock of another process causes no traceback."""
    with registries(tmp_path, "a", "b") as (a, b):
        b.link("a", a.url)
        b.link("rests", "http://127.0.0.1:1", scope={"groups": ["/schemagroups/x"]}, mode="push")
        a.write("g/s/1")
        wait_until_equal_logs(a, b)
        for number in (1, 2):
            with locked(b):
                a.write(f"g/s/later{number}")
                until(partial(lambda number: len(lines(b)) == 2 * number - 1, number))
                time.sleep(3)
                assert len(lines(b)) == 2 * number - 1
                assert "locked" in lines(b)[-1]
            until(partial(lambda number: len(lines(b)) == 2 * number, number))
            assert "again" in lines(b)[-1]
            wait_until_equal_logs(a, b)
        assert b.status("a")["state"] == "active"


def test_a_short_lock_is_not_worth_a_word(tmp_path: Path) -> None:
    """LEG-901: a short lock, as of a large import, is not logged."""
    with registries(tmp_path, "a", "b") as (a, b):
        b.link("a", a.url)
        a.write("g/s/1")
        wait_until_equal_logs(a, b)
        with locked(b):
            time.sleep(1)
        a.write("g/s/2")
        wait_until_equal_logs(a, b)
        assert lines(b) == []
