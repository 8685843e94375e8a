"""The phases of a large command, and how far each of them is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

#: What has been done with some of the documents, entities or events of a command, in the order of the phases.
Phase = Literal["checked", "validated", "built", "recorded", "indexed"]
#: Called with a phase, how many of its items are done, and how many there are.
ReportPhase = Callable[[Phase, int, int], None]

#: The number of items between two reports: often enough to show a change, and too seldom to cost anything.
REPORT_EVERY: Final = 1000


class PhaseCounter:
    """Counts the items of one phase, and reports at every thousandth and at the last one; without `report`, nothing."""

    def __init__(self, report: ReportPhase | None, phase: Phase, total: int = 0) -> None:
        self._report = report
        self._phase = phase
        self._done = self._reported = 0
        self.total = total

    def add(self, items: int = 1) -> None:
        """Counts items that are done."""
        if not items:
            return  # they have been reported
        self._done += items
        if self._report and (self._done - self._reported >= REPORT_EVERY or self._done == self.total):
            self._reported = self._done
            self._report(self._phase, self._done, self.total)
