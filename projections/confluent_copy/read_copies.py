"""Reads the selected subjects of a source into a spool, from which they are written in an order of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol

from annals.domain.confluent.subjects import Subject
from annals.projections.confluent_copy.copy_spool import CopySpool
from annals.projections.confluent_copy.latest_references import numbered_copies
from annals.projections.confluent_copy.report import CONFLICT, FAILED, CopyReport
from annals.projections.confluent_copy.rest_api import RestError
from annals.projections.confluent_copy.selection import SubjectSelection
from annals.projections.confluent_copy.subject_copy import SubjectCopy

_SAME_NAME: Final = "a subject of another context has this name"
#: Receives how many subjects are done, and how many there are.
ReportAmount = Callable[[int, int], None]


def no_report(done: int, total: int) -> None:
    """A `ReportAmount` that nobody reads."""
    del done, total


class SubjectSource(Protocol):
    """Where subjects are copied from."""

    def subjects(self) -> Iterable[Subject]:
        """All contexts and subjects, also soft-deleted ones; some maybe twice. Raises: RestError."""

    def read_all(self, subjects: Iterable[Subject]) -> Iterator[tuple[Subject, SubjectCopy | RestError]]:
        """These subjects, or why one cannot be read. One may come twice; the later one counts.

        Raises: RestError if the source does not answer any more.
        """


def read_copies(
    source: SubjectSource, selection: SubjectSelection, report: CopyReport, spool: CopySpool, report_read: ReportAmount
) -> set[Subject]:
    """Reads all selected subjects; returns those that are there and cannot be read, under the names of copies.

    Contexts that are moved into one may have subjects of the same name, and then only the first one is copied.
    Raises: RestError if the source does not answer.
    """
    subjects = dict.fromkeys(subject for subject in source.subjects() if selection.includes(subject))
    read: set[Subject] = set()
    unread: set[Subject] = set()
    origins: dict[Subject, Subject] = {}
    for subject, outcome in source.read_all(subjects):
        read.add(subject)
        report_read(len(read), len(subjects))
        copy = selection.moved(outcome if isinstance(outcome, SubjectCopy) else SubjectCopy(subject))
        is_first = origins.setdefault(copy.subject, subject) == subject
        if isinstance(outcome, RestError):
            report.add_subject(subject, FAILED, str(outcome))
            unread.add(copy.subject)
            if is_first:
                spool.discard(copy.subject)
        elif is_first and not copy.is_empty:
            spool.add(copy)
        elif not copy.is_empty:
            report.add_refusal(copy, CONFLICT, _SAME_NAME)
    spool.outlines.update({copy.subject: copy for copy in numbered_copies(spool.outlines)})
    return unread
