"""The stored record of one subscription's deliveries."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, Final, Literal, NamedTuple, get_args

import orjson

from annals.projections.subscriptions.decisions.delivery_queue import PendingEvent

#: Why nothing is attempted, besides a pause. `unauthorized` does not stop attempts; it describes the last one.
StopReason = Literal["", "gone", "suspended", "unauthorized", "credentialexpired"]
#: The states of a subscription.
STATES: Final = ("active", "paused", "retrying", "pendingvalidation", *filter(None, get_args(StopReason)))


@dataclass(slots=True)
class DeliveryRecord:
    """The record of one subscription's deliveries. Times are seconds since 1970, 0 for never.

    epoch, since, sink: the version of the subscription that was applied last; sink is a hash of the address.
    reach: see DeliveryQueue.
    stored: whether the peer that acknowledged the last event stores events, where settings do not say so.
    dead: dead letters since the last success.
    failing: time since which all attempts have failed, without a long time between two of them; 0 after a success.
    failed: time of the last attempt that failed.
    hold: no request before this time.
    bucket: see TokenBucket.
    expires: expiry time of a renewed token.
    pending: number of pending events.
    consent: "" until the first request for consent has ended, then `validated` or `unvalidated`.
    rate: requests a minute that the sink allows, 0 for unlimited.
    refusals: consecutive refusals of consent.
    reason: why the last request for consent got none, for the owner.
    checked: a day before the next request for consent: the time of the last one, if the sink has answered.
    replay: `from`, `to`, `cursor`, `reach` and `parallel` of the running replay.
    attempts: number of attempts of single events up to now.
    hour: the hour of the last attempt, since 1970; outcomes: the number of attempts in it by outcome.
    """

    state: StopReason = ""
    epoch: int = 0
    since: int = 0
    sink: str = ""
    reach: int = 0
    lastsuccess: float = 0.0
    stored: bool = False
    lastattempt: float = 0.0
    lasterror: dict[str, Any] | None = None
    dead: int = 0
    failing: float = 0.0
    failed: float = 0.0
    hold: float = 0.0
    bucket: list[float] | None = None
    expires: float = 0.0
    pending: int = 0
    retrying: bool = False
    nextattempt: float = 0.0
    consent: str = ""
    rate: int = 0
    refusals: int = 0
    reason: str = ""
    checked: float = 0.0
    waiting: bool = False
    replay: dict[str, Any] | None = None
    attempts: int = 0
    hour: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)

    def note_error(self, code: str, message: str, now: float) -> None:
        """Records the last error, for the owner. message: without secrets."""
        self.lasterror = {"time": now, "code": code, "message": message}

    def to_json(self) -> str:
        """The record as stored JSON."""
        return orjson.dumps({name: getattr(self, name) for name in _NAMES}).decode()

    @classmethod
    def from_json(cls, text: str) -> DeliveryRecord:
        """The inverse of `to_json`. Ignores members that other releases stored and this one does not know.

        Raises: ValueError for damaged text.
        """
        members = orjson.loads(text)
        if not isinstance(members, dict):
            raise ValueError("the facts have to be an object")
        return cls(**{name: value for name, value in members.items() if name in _NAMES})


_NAMES: Final = frozenset(each.name for each in fields(DeliveryRecord))


class SavedDelivery(NamedTuple):
    """The stored state of one subscription. pending: pending events by queue number."""

    revision: int
    position: int
    cursor: int
    record: DeliveryRecord
    pending: dict[int, list[PendingEvent]]


class DeadLetter(NamedTuple):
    """An event that was given up, by reference (SUB-831)."""

    sequence: int
    reason: str
    code: str
    message: str
    attempts: int
    first: float
    last: float


class AttemptRecord(NamedTuple):
    """One attempt to deliver one event, by reference (UI-111).

    number: 1 for the first attempt of the subscription. time: when it began. duration: in seconds. next: when the event
    is attempted again; None if it is not.
    """

    number: int
    time: float
    sequence: int
    outcome: str
    code: str
    duration: float
    next: float | None
