"""The attempts of one subscription that are not stored yet, and the number of attempts in each hour (UI-111)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from annals.projections.subscriptions.state.delivery_record import AttemptRecord, DeliveryRecord
from annals.projections.subscriptions.state.tables import ATTEMPT_SLOTS, OUTCOMES

HOUR_SECONDS: Final = 3600


class HourCounts(NamedTuple):
    """The attempts in an hour. hour: since 1970. counts: in the order of `OUTCOMES`."""

    hour: int
    counts: tuple[int, ...]


class AttemptLog:
    """Records attempts in memory until they are written with the state. record: keeps the counts across restarts."""

    def __init__(self, record: DeliveryRecord) -> None:
        self._record = record
        self._attempts: list[AttemptRecord] = []
        self._past_hours: dict[int, HourCounts] = {}
        self._written = record.attempts

    def add(
        self, sequence: int, outcome: str, code: str, started: float, ended: float, next_attempt: float | None
    ) -> None:
        """Records an attempt. sequence: of its event. started, ended, next_attempt: seconds since 1970."""
        record, hour = self._record, int(ended) // HOUR_SECONDS
        if hour != record.hour:
            if record.attempts != self._written:
                self._past_hours[record.hour] = self._current_hour()
            record.hour, record.outcomes = hour, {}
        record.attempts += 1
        record.outcomes[outcome] = record.outcomes.get(outcome, 0) + 1
        duration = max(0.0, ended - started)
        self._attempts.append(AttemptRecord(record.attempts, started, sequence, outcome, code, duration, next_attempt))
        if len(self._attempts) >= 2 * ATTEMPT_SLOTS:
            del self._attempts[:-ATTEMPT_SLOTS]  # they would replace each other in the table

    def unwritten(self) -> tuple[Sequence[AttemptRecord], Sequence[HourCounts]]:
        """The attempts to write, and the hours whose numbers changed."""
        if self._record.attempts == self._written:
            return (), ()
        return tuple(self._attempts[-ATTEMPT_SLOTS:]), (*self._past_hours.values(), self._current_hour())

    def mark_written(self, attempts: Sequence[AttemptRecord], hours: Sequence[HourCounts]) -> None:
        """Records that these are in the tables."""
        if attempts:
            self._written = attempts[-1].number
            self._attempts = [attempt for attempt in self._attempts if attempt.number > self._written]
        for counts in hours:
            if self._past_hours.get(counts.hour) == counts:
                del self._past_hours[counts.hour]

    def _current_hour(self) -> HourCounts:
        return HourCounts(self._record.hour, tuple(self._record.outcomes.get(outcome, 0) for outcome in OUTCOMES))
