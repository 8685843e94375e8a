"""What deliveries have found out about one subscription, as it is kept between two runs."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Final, Literal, NamedTuple

import orjson

from projections.subscriptions.decisions.delivery_queue import PendingEvent

#: Why nothing is attempted, beside a pause; `unauthorized` only tells of the last attempt.
StopReason = Literal["", "gone", "suspended", "unauthorized", "credentialexpired"]


@dataclass(slots=True)
class DeliveryRecord:
    """Times are seconds since 1970; 0 where there was none.

    epoch, since, sink: what was known of the subscription last; the sink is a hash of where it is. reach: see
    DeliveryQueue. stored: whether the last event that arrived was stored by who acknowledged it, where settings do not
    say so. dead: dead letters since the last success; failing: since when no attempt has succeeded. hold: no request
    before. bucket: see TokenBucket. expires: of a renewed token. pending: events on their way. consent: "" as long as
    nobody has asked, then `validated` or `unvalidated`; rate: requests a minute that it allows, 0 for any number;
    refusals: in a row; checked: when it was asked last. replay: `from`, `to`, `cursor`, `reach` and `parallel` of the
    one that runs.
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
    hold: float = 0.0
    bucket: list[float] | None = None
    expires: float = 0.0
    pending: int = 0
    retrying: bool = False
    nextattempt: float = 0.0
    consent: str = ""
    rate: int = 0
    refusals: int = 0
    checked: float = 0.0
    waiting: bool = False
    replay: dict[str, Any] | None = None

    def json(self) -> str:
        """As it is stored."""
        return orjson.dumps({name: getattr(self, name) for name in _NAMES}).decode()

    @classmethod
    def of(cls, text: str) -> DeliveryRecord:
        """The inverse of `json`; what another release kept and this one does not know is left out.

        Raises: ValueError for a text that is damaged.
        """
        kept = orjson.loads(text)
        if not isinstance(kept, dict):
            raise ValueError("facts are an object")
        return cls(**{name: value for name, value in kept.items() if name in _NAMES})


_NAMES: Final = frozenset(each.name for each in fields(DeliveryRecord))


class SavedDelivery(NamedTuple):
    """What is stored of one subscription. pending: by lane."""

    revision: int
    position: int
    cursor: int
    facts: DeliveryRecord
    pending: dict[int, list[PendingEvent]]


class DeadLetter(NamedTuple):
    """An event that nobody tries to deliver any more, by reference (SUB-831)."""

    sequence: int
    reason: str
    code: str
    message: str
    attempts: int
    first: float
    last: float
