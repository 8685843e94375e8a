"""`annals export` to another schema registry."""

from __future__ import annotations

from typing import Final

import typer

from annals.api.cli.confluent_copies.copy_options import CopyOptions
from annals.api.cli.confluent_copies.import_copy import INTERRUPTED, check_complete, open_report
from annals.api.cli.outcome import Interrupted, InvalidInput, StoreError, sentence
from annals.api.cli.progress import work_progress
from annals.api.cli.stop_signals import stop_event
from annals.projections.confluent_copy.export_run import ExportRun, IdsNotKept
from annals.projections.confluent_copy.report import CopyReport
from annals.projections.confluent_copy.rest_api import RestApi, RestError
from annals.projections.confluent_copy.rest_reader import RestReader
from annals.projections.confluent_copy.stoppable import CopyStopped, StoppableApi, stoppable_report

#: Seconds for each of the last requests about a subject after a signal; one puts its mode back.
_GRACE_SECONDS: Final = 5.0


def export_copy(own: RestApi, other: RestApi, options: CopyOptions, asof: str | None, *, new_ids: bool) -> None:
    """Copies, and prints the counts. asof: a moment in the past. new_ids: the other registry gives its own.

    Raises: InvalidInput if something was refused; Interrupted by a signal; StoreError, UsageError.
    """
    selection = options.selection()
    with open_report(options.report) as file, work_progress() as work, stop_event() as stop:
        report = CopyReport(file)
        source, target = RestReader(own, asof), StoppableApi(other, stop, _GRACE_SECONDS)
        run = ExportRun(source, target, report, selection, new_ids=new_ids, is_dry=options.dry_run)
        try:
            run.run(*(stoppable_report(work.step(name, "subjects"), stop) for name in ("read", "written")))
        except CopyStopped:
            raise Interrupted(INTERRUPTED) from None
        except IdsNotKept as error:
            raise InvalidInput(
                f"the other registry does not keep ids: {error}. With --new-ids it gives its own, so that data which "
                "was written with the old ids cannot be read with it."
            ) from None
        except RestError as error:
            raise StoreError(sentence(str(error))) from None
        report.close()
    typer.echo(report.summary())
    check_complete(report, options.report)
