"""Copies subjects of another registry into this one, over the route that records subjects whole.

It needs no state of its own: what is here already is found by the registry, so that a second run does what is missing.
Subjects are sent many at a time, so that the registry writes them in one transaction; each remains a change of its own.
Rules CSR-1001 to CSR-1006, CSR-1011.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final

from annals.domain.confluent.subjects import Subject
from annals.projections.confluent_copy.bounded_map import bounded_map
from annals.projections.confluent_copy.copy_spool import CopySpool
from annals.projections.confluent_copy.read_copies import ReportAmount, SubjectSource, no_report, read_copies
from annals.projections.confluent_copy.report import CONFLICT, CREATED, DELETED, FAILED, KEPT, OUTCOMES, CopyReport
from annals.projections.confluent_copy.rest_api import NO_DOCUMENT, RestApi, RestError, ask
from annals.projections.confluent_copy.rest_reader import RestReader
from annals.projections.confluent_copy.selection import SubjectSelection
from annals.projections.confluent_copy.subject_copy import SubjectCopy
from annals.projections.confluent_copy.write_order import write_waves

#: The path of the route that records subjects, and the code with which it refuses one that contradicts what is here.
IMPORT_PATH: Final = "/-/import"
CONFLICT_CODE: Final = 40902
#: The number of requests at once, and what is in each of them at the most: subjects, and about how many bytes.
WRITERS: Final = 4
BATCH: Final = 100
BATCH_BYTES: Final = 1_000_000
_SETTINGS: Final = ("config", "mode")
#: The number of a version in an answer.
_NUMBER: Final = re.compile("[0-9]{1,10}")
_GONE: Final = "the source has deleted it"
_NOT_ALL_VERSIONS: Final = "an earlier part of this subject was refused"
_OTHER_SETTING: Final = "another value is set here, which stays"
_NOT_CHECKED: Final = "not checked in a dry run, because it refers to schemas that are not here yet"
_INVALID: Final = 42201
_MISSING_REFERENCE: Final = "No schema reference found"


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

    def run(self, report_read: ReportAmount = no_report, report_written: ReportAmount = no_report) -> None:
        """Copies everything that is missing. report_read, report_written: receive the numbers of subjects.

        Raises: RestError if the source or the target does not answer.
        """
        with CopySpool() as spool:
            unread = read_copies(self.source, self.selection, self.report, spool, report_read)
            copies = list(spool.outlines.values())
            gone = self._gone_subjects({*spool.outlines, *unread})
            total, done = len(copies) + len(gone), 0
            refused: set[Subject] = set()
            with ThreadPoolExecutor(WRITERS) as pool:
                for wave in [*write_waves(copies), gone]:
                    batches = _batches(wave, spool)
                    for batch in bounded_map(pool, WRITERS, lambda one: self._write(one, spool, refused), batches):
                        done += batch
                        report_written(min(done, total), total)

    def _gone_subjects(self, there: Collection[Subject]) -> list[SubjectCopy]:
        """The subjects here that an earlier run may have written, and that are not at the source any more.

        Their whole context may be gone there.
        """
        if self.is_dry:
            return []
        found = [one for one in RestReader(self.target).subjects() if one.name and one not in there]
        context = self.selection.context if self.selection.into is None else self.selection.into
        selected = [
            one for one in found if context in (None, one.context) and one.name.startswith(self.selection.prefix)
        ]
        return [SubjectCopy(subject) for subject in dict.fromkeys(selected)]

    # --- writing -----------------------------------------------------------------------------------------------------

    def _write(self, batch: Sequence[SubjectCopy], spool: CopySpool, refused: set[Subject]) -> int:
        """Writes subjects; returns their number. refused: those of which a part was refused, to which it adds."""
        copies = []
        for outline in batch:
            if outline.subject in refused:
                self.report.add_refusal(outline, CONFLICT, _NOT_ALL_VERSIONS)
            else:
                copies.append(spool.complete(outline))
        answers = self._send(copies, spool)
        for copy, answer in zip(copies, answers, strict=True):
            if "error_code" in answer:
                refused.add(copy.subject)
                self._report_failure(copy, answer["error_code"], answer["message"])
            else:
                self._report_outcomes(copy, answer)
        return len(batch)

    def _send(self, copies: Sequence[SubjectCopy], spool: CopySpool) -> list[Mapping[str, Any]]:
        """The answer for each subject: its outcomes, or an error. Raises: RestError if there is no answer at all."""
        if not copies:
            return []
        path = IMPORT_PATH + ("?dryrun" if self.is_dry else "")
        body = {
            "source": self.source_name,
            "deletes": self.deletes,
            "subjects": [_members(copy, spool.outlines.get(copy.subject)) for copy in copies],
        }
        try:
            response = ask(self.target, "POST", path, body)
        except RestError as error:
            if not error.status:
                raise
            if len(copies) > 1:  # one of them may be the cause
                half = len(copies) // 2
                return [*self._send(copies[:half], spool), *self._send(copies[half:], spool)]
            return [{"error_code": error.code, "message": str(error)}]
        answers = response.get("subjects") if isinstance(response, dict) else None
        if not isinstance(answers, list) or len(answers) != len(copies) or not all(map(_is_answer, answers)):
            raise RestError(f"POST {IMPORT_PATH}: {NO_DOCUMENT}")
        return answers

    def _report_failure(self, copy: SubjectCopy, code: int, reason: str) -> None:
        if self.is_dry and code == _INVALID and _MISSING_REFERENCE in reason:
            self.report.add_refusal(copy, CREATED, _NOT_CHECKED)
        else:
            self.report.add_refusal(copy, CONFLICT if code == CONFLICT_CODE else FAILED, reason)

    def _report_outcomes(self, copy: SubjectCopy, body: Mapping[str, Any]) -> None:
        ids = {version.number: version.id for version in copy.versions}
        for text, outcome in body["versions"].items():
            number = int(text)
            if outcome == DELETED and not self.deletes:
                outcome = CREATED  # by a copy that was interrupted before it soft-deleted
            reason = _GONE if outcome in (KEPT, DELETED) else ""
            self.report.add_version(copy.subject, number, ids.get(number), outcome, reason)
        for setting in _SETTINGS:
            if setting in body:
                reason = _OTHER_SETTING if body[setting] == CONFLICT else ""
                self.report.add_setting(copy.subject, setting, body[setting], reason)


def _is_answer(answer: Any) -> bool:
    """Whether the answer for one subject is an error, or has outcomes by number of the version and by setting."""
    if not isinstance(answer, dict):
        return False
    if "error_code" in answer:
        return isinstance(answer["error_code"], int) and isinstance(answer.get("message"), str)
    versions, settings = answer.get("versions"), [answer[name] for name in _SETTINGS if name in answer]
    if not isinstance(versions, dict) or not all(map(_NUMBER.fullmatch, versions)):
        return False
    return all(outcome in OUTCOMES for outcome in (*versions.values(), *settings))


def _batches(wave: Iterable[SubjectCopy], spool: CopySpool) -> Iterator[list[SubjectCopy]]:
    """Subjects that go into one request each; at least one, and not too many bytes."""
    batch: list[SubjectCopy] = []
    size = 0
    for outline in wave:
        added = spool.size(outline.subject)
        if batch and (len(batch) == BATCH or size + added > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(outline)
        size += added
    if batch:
        yield batch


def _members(copy: SubjectCopy, whole: SubjectCopy | None) -> dict[str, Any]:
    """A subject in the body of a request. whole: the subject with all versions at the source; None if it is gone."""
    live = [version.number for version in whole.versions if not version.is_deleted] if whole is not None else []
    return {
        "subject": copy.subject.qualified if copy.subject.name else f":{copy.subject.context}:",
        "live": live,
        "versions": [version.members() for version in copy.versions],
        "config": dict(copy.config),
        "mode": copy.mode,
    }
