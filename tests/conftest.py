"""Stores, the order of tests, how patient those are that make up their examples, and how Spark's Java is started."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

from tests.support import spark_archive
from tests.support.programs import ProgramCounts, note_programs
from tests.support.stores import postgres_server, postgres_url, shared_store_url, sqlite_url, store_url

__all__ = ["postgres_server", "postgres_url", "shared_store_url", "sqlite_url", "store_url"]

# How long an example takes is a matter of the machine, and of what else it does.
settings.register_profile("annals", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("annals")

os.environ.setdefault(spark_archive.OPTIONS, spark_archive.options())


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--every-program", action="store_true", help="fail when no test ran on one of the programs")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # where the reports of all workers arrive
        config.pluginmanager.register(ProgramCounts(config.getoption("--every-program")))


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Those that may take longest begin first, so that no worker is left with one of them while others have nothing.

    Each worker gets a run of tests that follow one another, and takes from others what they have not begun. So each run
    has its share of the long ones, and the rest in the order of files, whose fixtures are made once.
    """
    note_programs(items)
    runs = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    long = sorted(filter(_seconds, items), key=_seconds, reverse=True)
    rest = [item for item in items if not _seconds(item)]
    cuts = [len(rest) * run // runs for run in range(runs + 1)]
    items[:] = [item for run in range(runs) for item in (*long[run::runs], *rest[cuts[run] : cuts[run + 1]])]


def _seconds(item: pytest.Item) -> float:
    marker = item.get_closest_marker("timeout")
    return float(marker.args[0]) if marker else 0.0
