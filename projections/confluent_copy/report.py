"""The report of a copy: a JSON line for each version and each setting, and the counts last (CSR-1006)."""

from __future__ import annotations

import json
from collections import Counter
from threading import Lock
from typing import Final, TextIO

from annals.domain.confluent.subjects import Subject
from annals.projections.confluent_copy.subject_copy import SubjectCopy

CREATED: Final = "created"
EQUAL: Final = "equal"
CONFLICT: Final = "conflict"
FAILED: Final = "failed"
#: The source deleted it; here it stays.
KEPT: Final = "kept"
#: The source deleted it, and so did the copy.
DELETED: Final = "deleted"
OUTCOMES: Final = (CREATED, EQUAL, CONFLICT, FAILED, KEPT, DELETED)
#: The outcomes after which something is missing.
REFUSED: Final = (CONFLICT, FAILED)


class CopyReport:
    """Writes lines and counts them; any number of threads may use it. file: None for the counts only."""

    def __init__(self, file: TextIO | None = None) -> None:
        self._file = file
        self._lock = Lock()
        self._last_lines: dict[str, str] = {}
        self.counts: Counter[str] = Counter()
        self._counts_before: Counter[str] = Counter()
        self.changes = 0

    def begin_round(self) -> None:
        """Begins another run: it counts from zero, and writes only the lines that differ from those before."""
        self._counts_before = self.counts.copy()
        self.counts.clear()
        self.changes = 0

    def abandon_round(self) -> None:
        """Ends a run that did not reach its end: the counts of the one before are valid again.

        If this one refused something too, its own counts stay.
        """
        if self.is_complete:
            self.counts = self._counts_before.copy()

    def add_version(self, subject: Subject, number: int, id: int | None, outcome: str, reason: str = "") -> None:
        """Adds the line of a version. id: None if it is not known."""
        self._add(outcome, {"context": subject.context, "subject": subject.name, "version": number, "id": id}, reason)

    def add_setting(self, subject: Subject, setting: str, outcome: str, reason: str = "") -> None:
        """Adds the line of a setting. setting: `config` or `mode`."""
        self._add(outcome, {"context": subject.context, "subject": subject.name, "setting": setting}, reason)

    def add_subject(self, subject: Subject, outcome: str, reason: str) -> None:
        """Adds the line of a subject whose versions are not known."""
        self._add(outcome, {"context": subject.context, "subject": subject.name}, reason)

    def add_refusal(self, copy: SubjectCopy, outcome: str, reason: str) -> None:
        """Adds the lines of a subject of which nothing is copied."""
        for version in copy.versions:
            self.add_version(copy.subject, version.number, version.id, outcome, reason)
        if not copy.versions:
            self.add_setting(copy.subject, "config", outcome, reason)

    def close(self) -> None:
        """Writes the counts."""
        if self._file is not None:
            print(json.dumps({"counts": dict(sorted(self.counts.items()))}), file=self._file, flush=True)

    @property
    def is_complete(self) -> bool:
        """Whether nothing was refused."""
        return not any(self.counts[outcome] for outcome in REFUSED)

    def summary(self) -> str:
        """The counts in words."""
        return ", ".join(f"{count} {outcome}" for outcome, count in sorted(self.counts.items())) or "nothing to copy"

    def _add(self, outcome: str, members: dict[str, object], reason: str) -> None:
        shown = {name: value for name, value in members.items() if value is not None}
        line = {**shown, "outcome": outcome, **({"reason": reason} if reason else {})}
        key, text = json.dumps(shown), json.dumps(line, ensure_ascii=False)
        settled = text.replace(f'"outcome": "{CREATED}"', f'"outcome": "{EQUAL}"')
        with self._lock:
            self.counts[outcome] += 1
            is_known = self._last_lines.get(key) == settled and outcome != CREATED
            self._last_lines[key] = settled
            if is_known:
                return
            self.changes += 1
            if self._file is not None:
                print(text, file=self._file)
