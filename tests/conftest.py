"""Fixtures of stores, the order of tests, settings of hypothesis and httpx, and options of Spark's JVM."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import islice

import pytest
from httpx._config import DEFAULT_TIMEOUT_CONFIG
from hypothesis import HealthCheck, settings

from tests.support import spark_archive
from tests.support.examples import examples
from tests.support.failures import FailuresAtOnce
from tests.support.long_tests import mark_long
from tests.support.programs import ProgramCounts, note_programs, slowest_program
from tests.support.stores import (
    postgres_server,
    postgres_url,
    quiet_postgres_url,
    shared_store_url,
    sqlite_url,
    store_url,
)

__all__ = ["postgres_server", "postgres_url", "quiet_postgres_url", "shared_store_url", "sqlite_url", "store_url"]

# No deadline: the time for an example depends on the machine and its load.
settings.register_profile(
    "annals", max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("annals")

# The default of 5 seconds is too short for a response of a server on a busy machine.
for phase in ("connect", "read", "write", "pool"):
    setattr(DEFAULT_TIMEOUT_CONFIG, phase, 60.0)

os.environ.setdefault(spark_archive.OPTIONS, spark_archive.options())


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--every-program", action="store_true", help="fail when no test ran on one of the programs")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # only in the main process, which gets the reports of all workers
        config.pluginmanager.register(ProgramCounts(config.getoption("--every-program")))
        config.pluginmanager.register(FailuresAtOnce(config))


@pytest.hookimpl(wrapper=True, tryfirst=True)  # begins before pytest selects tests by markers, and ends after it
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Iterator[None]:
    """Records the programs of the tests, and orders the selected tests so that programs start rarely.

    Each worker gets a run of consecutive tests, all runs of the same length. A worker that has finished takes tests
    from the ends of other runs. All tests of a program are at the beginning of one run, so that the program starts
    once and not once for each worker. Tests with a timeout of their own follow, then the others in the order of files,
    so that fixtures of files are created once.
    """
    mark_long(items)
    note_programs(items)
    yield
    runs = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    by_program: dict[str, list[pytest.Item]] = {}
    for item in items:
        by_program.setdefault(slowest_program(item), []).append(item)
    others = by_program.pop("", [])
    slow = sorted((item for item in others if item.get_closest_marker("timeout")), key=_seconds, reverse=True)
    usual = iter([item for item in others if not item.get_closest_marker("timeout")])
    starts = [list[pytest.Item]() for _ in range(runs)]
    for members in sorted(by_program.values(), key=_seconds_of_all, reverse=True):
        min(starts, key=_seconds_of_all).extend(sorted(members, key=_seconds, reverse=True))
    ordered: list[pytest.Item] = []
    for run, start in enumerate(starts):
        ordered += (*start, *slow[run::runs])
        ordered += islice(usual, max(len(items) * (run + 1) // runs - len(ordered), 0))
    items[:] = [*ordered, *usual]


def _seconds_of_all(items: Iterable[pytest.Item]) -> float:
    return sum(map(_seconds, items))


def _seconds(item: pytest.Item) -> float:
    """The timeout of a test, or 5 seconds if it has none of its own."""
    marker = item.get_closest_marker("timeout")
    return float(marker.args[0]) if marker else 5.0
