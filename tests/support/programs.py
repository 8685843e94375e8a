"""Which external programs a test needs, and which tests are fast enough to run at each save.

A test names its programs with `@pytest.mark.uses("Kafka")`; PostgreSQL and Spark are recognized by their fixtures. The
run prints the number of tests by program at its end. With `--every-program`, a program without a test is a failure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from types import ModuleType
from typing import Final

import pytest

PROGRAMS: Final = (
    *("PostgreSQL", "Kafka", "Mosquitto", "NATS", "RabbitMQ", "Artemis", "S3Proxy", "Spark"),
    *("nginx", "Chromium", "Node.js", "Java", "Go", "zsh", "fish"),
)
#: All but PostgreSQL, which has one server for all workers.
_BY_START: Final = ("Spark", *(name for name in PROGRAMS if name not in ("Spark", "PostgreSQL")))
#: Tests of a module that imports one of these need processes that take seconds to start.
_SLOW_MODULES: Final = (
    *("tests.support.serving", "tests.support.forks", "tests.support.brokers", "tests.support.downloads"),
    "tests.support.guides",
    *(
        "tests.support.registries.restarted",
        "tests.support.registries.linked",
        "subprocess",
        "multiprocessing",
        "pyspark",
    ),
)
#: The folders of tests that run at each save.
FAST_FOLDERS: Final = ("tests/domain/", "tests/commands/", "tests/spec/")
_PROPERTIES: Final = "tests/spec/properties/"
#: Tests that write a hundred documents to a registry.
_PUBLISHED: Final = "tests/spec/published/"
#: Fixtures that create a store for one test, which takes longer than most tests.
_OWN_STORES: Final = frozenset(("sqlite_url", "store_url"))
_PROPERTY: Final = "program"


def programs_of(item: pytest.Item) -> list[str]:
    """The programs that a test needs. Raises: UsageError for an unknown one."""
    named = {name for marker in item.iter_markers("uses") for name in marker.args}
    if unknown := named.difference(PROGRAMS):
        raise pytest.UsageError(f"{item.nodeid} uses {unknown}, which tests/support/programs.py does not know")
    if "postgresql" in _parameters(item) or any("postgres" in name for name in _fixtures(item)):
        named.add("PostgreSQL")
    if "spark" in _fixtures(item):
        named.add("Spark")
    return [name for name in PROGRAMS if name in named]


def slowest_program(item: pytest.Item) -> str:
    """The program of a test that takes longest to start; empty without a program, or with PostgreSQL alone."""
    return next((name for name in _BY_START if name in programs_of(item)), "")


def is_fast(item: pytest.Item) -> bool:
    """Whether a test needs only this process and little time: no server, broker, browser, JVM, or store of its own."""
    slow_markers = ("uses", "long", "slow", "scale", "timeout")
    if programs_of(item) or any(map(item.get_closest_marker, slow_markers)) or _is_property(item):
        return False
    if _OWN_STORES.intersection(_fixtures(item)) or not item.nodeid.startswith(FAST_FOLDERS):
        return False
    if item.nodeid.startswith(_PUBLISHED):
        return False
    module = getattr(item, "module", None)
    return not any(map(_is_slow, vars(module).values() if module else ()))


def _is_property(item: pytest.Item) -> bool:
    """Whether hypothesis generates hundreds of examples for a test."""
    return item.nodeid.startswith(_PROPERTIES) or getattr(getattr(item, "function", None), "is_hypothesis_test", False)


def _is_slow(member: object) -> bool:
    name = member.__name__ if isinstance(member, ModuleType) else getattr(member, "__module__", None)
    return isinstance(name, str) and any(name == slow or name.startswith(f"{slow}.") for slow in _SLOW_MODULES)


def _parameters(item: pytest.Item) -> Iterator[object]:
    callspec = getattr(item, "callspec", None)
    return (value for value in callspec.params.values() if isinstance(value, str)) if callspec else iter(())


def _fixtures(item: pytest.Item) -> list[str]:
    return getattr(item, "fixturenames", [])


class ProgramCounts:
    """Counts the passed tests by program, in the reporting process.

    is_every_program_needed: the run fails if no test used a program.
    """

    def __init__(self, is_every_program_needed: bool) -> None:
        self._passed = Counter[str]()
        self._is_every_program_needed = is_every_program_needed

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self._passed["all"] += 1
            self._passed.update(str(value) for name, value in report.user_properties if name == _PROPERTY)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        if self._missing and exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("tests that passed, by program")
        for name in ("all", *PROGRAMS):
            terminalreporter.line(f"{self._passed[name]:7} {name}")
        for name in self._missing:
            terminalreporter.line(f"no test ran on {name}", red=True)

    @property
    def _missing(self) -> list[str]:
        return [name for name in PROGRAMS if not self._passed[name]] if self._is_every_program_needed else []


def note_programs(items: list[pytest.Item]) -> None:
    """Records the programs of each test, and marks fast tests, and tests with generated examples."""
    for item in items:
        item.user_properties += [(_PROPERTY, name) for name in programs_of(item)]
        if _is_property(item):
            item.add_marker("generated")
        if is_fast(item):
            item.add_marker("fast")
