"""Copies subjects of another registry into this one, over the route that records a subject whole.

It needs no state of its own: what is here already is found by the registry, so that a second run does what is missing.
Rules CSR-1001 to CSR-1006, CSR-1011.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final, Protocol
from urllib.parse import quote

from annals.domain.confluent.subjects import Subject
from annals.projections.confluent_copy.report import CONFLICT, CREATED, DELETED, FAILED, KEPT, CopyReport
from annals.projections.confluent_copy.rest_api import RestAnswer, RestApi, RestError, refusal
from annals.projections.confluent_copy.rest_reader import RestReader
from annals.projections.confluent_copy.selection import SubjectSelection
from annals.projections.confluent_copy.subject_copy import SubjectCopy
from annals.projections.confluent_copy.write_order import write_waves

#: The path of the route that records a subject, and the code with which it refuses one that contradicts what is here.
IMPORT_PATH: Final = "/-/import"
CONFLICT_CODE: Final = 40902
#: The number of requests at once.
WORKERS: Final = 8
_GONE: Final = "the source has deleted it since"
_NOT_ALL_VERSIONS: Final = "an earlier part of this subject was refused"
_SAME_NAME: Final = "a subject of another context has this name"
_OTHER_SETTING: Final = "another value is set here, which stays"
_NOT_CHECKED: Final = "not checked in a dry run, because it refers to schemas that are not here yet"
_INVALID: Final = 42201
_MISSING_REFERENCE: Final = "No schema reference found"

ReportAmount = Callable[[int, int], None]


class SubjectSource(Protocol):
    """Where subjects are copied from; any number of threads may read."""

    def subjects(self) -> Iterable[Subject]:
        """All contexts and subjects, also soft-deleted ones. Raises: RestError."""

    def read(self, subject: Subject) -> SubjectCopy:
        """One of them. Raises: RestError."""


def _no_report(done: int, total: int) -> None:
    del done, total


@dataclass(frozen=True)
class ImportRun:
    """One run. source_name: by which later runs know what they have written. target: this registry's own API.

    deletes: soft-delete what an earlier run wrote and the source has deleted since. is_dry: record nothing.
    """

    source: SubjectSource
    source_name: str
    target: RestApi
    report: CopyReport
    selection: SubjectSelection = field(default_factory=SubjectSelection)
    deletes: bool = False
    is_dry: bool = False

    def run(self, report_read: ReportAmount = _no_report, report_written: ReportAmount = _no_report) -> None:
        """Copies everything that is missing. report_read, report_written: receive the numbers of subjects.

        Raises: RestError if the source or the target does not answer.
        """
        copies = self._distinct(self._read_all(report_read))
        gone = self._gone_subjects(copies)
        live = {copy.subject: [one.number for one in copy.versions if not one.is_deleted] for copy in copies}
        total, done = len(copies) + len(gone), 0
        refused: set[Subject] = set()
        with ThreadPoolExecutor(WORKERS) as pool:
            for wave in [*write_waves(copies), gone]:
                writes = pool.map(lambda one: self._write(one, live.get(one.subject, []), refused), wave)
                for copy, is_written in zip(wave, writes, strict=True):
                    if not is_written:
                        refused.add(copy.subject)
                    done += 1
                    report_written(min(done, total), total)

    def _read_all(self, report_read: ReportAmount) -> list[SubjectCopy]:
        subjects = [subject for subject in self.source.subjects() if self.selection.includes(subject)]
        copies = []
        with ThreadPoolExecutor(WORKERS) as pool:
            for number, copy in enumerate(pool.map(self._read, subjects), 1):
                if copy is not None and not copy.is_empty:
                    copies.append(self.selection.moved(copy))
                report_read(number, len(subjects))
        return copies

    def _read(self, subject: Subject) -> SubjectCopy | None:
        try:
            return self.source.read(subject)
        except RestError as error:
            if not error.status:
                raise  # the next one would get no answer either
            self.report.add_subject(subject, FAILED, str(error))
            return None

    def _gone_subjects(self, copies: Sequence[SubjectCopy]) -> list[SubjectCopy]:
        """The subjects here that an earlier run may have written, and that are not at the source any more."""
        there = {copy.subject for copy in copies}
        found = [one for one in RestReader(self.target).subjects() if one.name and one not in there]
        into = self.selection.into
        contexts = {one.context for one in there} if into is None else {into}
        selected = [one for one in found if one.context in contexts and one.name.startswith(self.selection.prefix)]
        return [SubjectCopy(subject) for subject in selected] if not self.is_dry else []

    def _distinct(self, copies: Iterable[SubjectCopy]) -> list[SubjectCopy]:
        """One copy for each subject: contexts that are moved into one may have subjects of the same name."""
        found: dict[Subject, SubjectCopy] = {}
        for copy in copies:
            if found.setdefault(copy.subject, copy) is not copy:
                self._report_refusal(copy, CONFLICT, _SAME_NAME)
        return list(found.values())

    # --- writing -----------------------------------------------------------------------------------------------------

    def _write(self, copy: SubjectCopy, live: Sequence[int], refused: set[Subject]) -> bool:
        """Whether nothing was refused. live: the numbers of all live versions at the source."""
        if copy.subject in refused:
            self._report_refusal(copy, CONFLICT, _NOT_ALL_VERSIONS)
            return False
        path = f"{IMPORT_PATH}/{quote(_scope(copy.subject), safe='')}"
        try:
            answer = self.target.send("POST", path + ("?dryrun" if self.is_dry else ""), self._body(copy, live))
        except RestError as error:
            if not error.status:
                raise
            self._report_refusal(copy, FAILED, str(error))
            return False
        if answer.status != 200:
            self._report_failure(copy, answer, refusal("POST", path, answer))
            return False
        self._report_outcomes(copy, answer.body)
        return True

    def _body(self, copy: SubjectCopy, live: Sequence[int]) -> dict[str, Any]:
        return {
            "source": self.source_name,
            "live": live,
            "versions": [version.members() for version in copy.versions],
            "config": dict(copy.config),
            "mode": copy.mode,
            "deletes": self.deletes,
        }

    def _report_failure(self, copy: SubjectCopy, answer: RestAnswer, error: RestError) -> None:
        message = answer.body.get("message") if isinstance(answer.body, dict) else None
        reason = message if isinstance(message, str) else str(error)
        if self.is_dry and error.code == _INVALID and _MISSING_REFERENCE in reason:
            self._report_refusal(copy, CREATED, _NOT_CHECKED)
        else:
            self._report_refusal(copy, CONFLICT if error.code == CONFLICT_CODE else FAILED, reason)

    def _report_refusal(self, copy: SubjectCopy, outcome: str, reason: str) -> None:
        for version in copy.versions:
            self.report.add_version(copy.subject, version.number, version.id, outcome, reason)
        if not copy.versions:
            self.report.add_setting(copy.subject, "config", outcome, reason)

    def _report_outcomes(self, copy: SubjectCopy, body: Mapping[str, Any]) -> None:
        ids = {version.number: version.id for version in copy.versions}
        for text, outcome in body["versions"].items():
            number = int(text)
            reason = _GONE if outcome in (KEPT, DELETED) else ""
            self.report.add_version(copy.subject, number, ids.get(number), outcome, reason)
        for setting in ("config", "mode"):
            if setting in body:
                reason = _OTHER_SETTING if body[setting] == CONFLICT else ""
                self.report.add_setting(copy.subject, setting, body[setting], reason)


def _scope(subject: Subject) -> str:
    """The subject or context as the path names it."""
    return subject.qualified if subject.name else f":{subject.context}:"
