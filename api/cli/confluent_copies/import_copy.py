"""`annals import` from another schema registry: one run, or one after another until a signal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import NamedTuple, TextIO

import typer

from annals.api.cli.outcome import InvalidInput, StoreError, UsageError
from annals.api.cli.progress import WorkProgress, work_progress
from annals.api.cli.setup.notices import print_notice
from annals.projections.confluent_copy.import_run import ImportRun
from annals.projections.confluent_copy.read_copies import SubjectSource
from annals.projections.confluent_copy.report import CopyReport
from annals.projections.confluent_copy.rest_api import RestApi, RestError
from annals.projections.confluent_copy.selection import SubjectSelection


class CopyStopped(Exception):
    """Raised instead of a further request once a signal has stopped the copy."""


class ImportOptions(NamedTuple):
    """interval: seconds between two runs; None for a single one."""

    selection: SubjectSelection
    is_dry: bool = False
    report: Path | None = None
    interval: float | None = None


class ImportSource(NamedTuple):
    """name: by which later runs know what they have written. open: reads the source from its beginning."""

    name: str
    open: Callable[[], SubjectSource]


def import_copy(source: ImportSource, target: RestApi, options: ImportOptions, stop: Event) -> None:
    """Copies, and prints the counts. stop: ends copies that have an interval; then requests may raise CopyStopped.

    Raises: InvalidInput if something was refused; StoreError, UsageError.
    """
    with open_report(options.report) as file, work_progress() as work:
        report = CopyReport(file)
        try:
            _run_once(source, target, options, report, work)
            typer.echo(report.summary())
            if options.interval is not None:
                _follow(source, target, options, report, stop)
        except CopyStopped:
            pass  # a signal is the end of a copy that follows its source
        report.close()
    check_complete(report, options.report)


def stoppable_wait(stop: Event) -> Callable[[float], None]:
    """Waits some seconds before a request. The function raises CopyStopped as soon as the event is set."""

    def wait(seconds: float) -> None:
        if stop.wait(seconds):
            raise CopyStopped

    return wait


def check_complete(report: CopyReport, path: Path | None) -> None:
    """Raises: InvalidInput if something was refused. path: of the report, if it has a file."""
    if not report.is_complete:
        where = f"{path} says" if path is not None else "--report FILE says"
        raise InvalidInput(f"a part was not copied; {where} which one and why.")


def _follow(source: ImportSource, target: RestApi, options: ImportOptions, report: CopyReport, stop: Event) -> None:
    """Runs again and again. A source that does not answer is tried again later."""
    while not stop.wait(options.interval):
        report.begin_round()
        try:
            _run_once(source, target, options, report, None)
        except CopyStopped:
            report.abandon_round()
            raise
        except StoreError as error:
            report.abandon_round()
            print_notice(str(error))
            continue
        if report.changes:
            typer.echo(report.summary())


def _run_once(
    source: ImportSource, target: RestApi, options: ImportOptions, report: CopyReport, work: WorkProgress | None
) -> None:
    try:
        run = ImportRun(
            source.open(),
            source.name,
            target,
            report,
            options.selection,
            deletes=options.interval is not None,
            is_dry=options.is_dry,
        )
        run.run(*((work.step("read", "subjects"), work.step("written", "subjects")) if work is not None else ()))
    except RestError as error:
        raise StoreError(f"{error}.") from None


@contextmanager
def open_report(path: Path | None) -> Iterator[TextIO | None]:
    """The file of a report, None without a path. Raises: UsageError."""
    if path is None:
        yield None
        return
    try:
        with path.open("w", encoding="utf-8") as file:
            yield file
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}.") from None
