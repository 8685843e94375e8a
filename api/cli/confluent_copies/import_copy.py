"""`annals import` from another schema registry: one run, or one after another until a signal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from typing import Final, NamedTuple, TextIO

import typer

from annals.api.cli.outcome import Interrupted, InvalidInput, StoreError, UsageError, sentence
from annals.api.cli.progress import WorkProgress, work_progress
from annals.api.cli.setup.notices import print_notice
from annals.projections.confluent_copy.import_run import ImportRun
from annals.projections.confluent_copy.read_copies import SubjectSource, no_report
from annals.projections.confluent_copy.report import CopyReport
from annals.projections.confluent_copy.rest_api import RestApi, RestError
from annals.projections.confluent_copy.selection import SubjectSelection, source_name
from annals.projections.confluent_copy.stoppable import CopyStopped, result_or_stop, stoppable_report

#: What a single copy says that was ended early.
INTERRUPTED: Final = "stopped by a signal; what is copied stays, and the same command copies the rest."


class ImportOptions(NamedTuple):
    """interval: seconds between two runs; None for a single one."""

    selection: SubjectSelection
    is_dry: bool = False
    report: Path | None = None
    interval: float | None = None


class NamedSource(NamedTuple):
    """A source, and the name by which later runs know what a copy has written from it."""

    name: str
    subjects: SubjectSource


#: Reads a source from its beginning.
OpenSource = Callable[[], NamedSource]


def import_copy(source: OpenSource, target: RestApi, options: ImportOptions, stop: Event) -> None:
    """Copies, and prints the counts. stop: ends it early; requests then raise CopyStopped.

    Raises: InvalidInput if something was refused; Interrupted for a single copy that is ended early; StoreError,
    UsageError.
    """
    with open_report(options.report) as file, work_progress() as work:
        report = CopyReport(file)
        try:
            _run_once(source, target, options, report, stop, work)
            typer.echo(report.summary())
            if options.interval is not None:
                _follow(source, target, options, report, stop)
        except CopyStopped:
            if options.interval is None:
                raise Interrupted(INTERRUPTED) from None
            # a signal is the usual end of a copy that follows its source
        report.close()
    check_complete(report, options.report)


def check_complete(report: CopyReport, path: Path | None) -> None:
    """Raises: InvalidInput if something was refused. path: of the report, if it has a file."""
    if not report.is_complete:
        where = f"{path} says" if path is not None else "--report FILE says"
        raise InvalidInput(f"a part was not copied; {where} which one and why.")


def _follow(source: OpenSource, target: RestApi, options: ImportOptions, report: CopyReport, stop: Event) -> None:
    """Runs again and again. A source that does not answer is tried again later."""
    while not stop.wait(options.interval):
        report.begin_round()
        try:
            _run_once(source, target, options, report, stop)
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
    source: OpenSource,
    target: RestApi,
    options: ImportOptions,
    report: CopyReport,
    stop: Event,
    work: WorkProgress | None = None,
) -> None:
    try:
        place, subjects = result_or_stop(source, stop)
        run = ImportRun(
            subjects,
            source_name(place, options.selection),
            target,
            report,
            options.selection,
            deletes=options.interval is not None,
            is_dry=options.is_dry,
        )
        steps = [work.step(name, "subjects") if work is not None else no_report for name in ("read", "written")]
        run.run(*(stoppable_report(step, stop) for step in steps))
    except RestError as error:
        raise StoreError(sentence(str(error))) from None


@contextmanager
def open_report(path: Path | None) -> Iterator[TextIO | None]:
    """The file of a report, None without a path. Raises: UsageError."""
    if path is None:
        yield None
        return
    try:
        # Names may have lone surrogates, which UTF-8 cannot encode; a backslash escape is what JSON writes for them.
        with path.open("w", encoding="utf-8", errors="backslashreplace") as file:
            yield file
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}.") from None
