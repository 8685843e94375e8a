"""What the Subscriptions API asks of those who deliver, and what it says while nobody does.

What the log holds is no business of theirs: a pause, a replay or a redelivery is recorded first, and they follow the
log. The methods are synchronous, as they look at tables; the API calls them in threads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from domain.subscriptions.subscription import Subscription

#: A status, or a dead letter: the members of its JSON object.
JsonObject = Mapping[str, Any]


class Deliveries(Protocol):
    """The state of deliveries."""

    def status(self, subscription: Subscription) -> JsonObject:
        """`state` and whatever else is known (SUB-841)."""

    def replaying(self, subscription: Subscription) -> bool:
        """Whether a replay runs, one that was asked for and has not begun included (SUB-834)."""

    def deadletters(self, id: str, after: str, limit: int) -> Sequence[JsonObject]:
        """Dead letters in their order, beyond a `sequence`, which each of them has as a member."""

    def deadletter(self, id: str, sequence: str) -> JsonObject | None:
        """One dead letter."""

    def redeliver(self, id: str, sequence: str) -> None:
        """Gives a dead letter a fresh set of attempts. It has been recorded already, so this may do nothing."""

    def discard(self, id: str, sequence: str) -> None:
        """Forgets a dead letter. It has been recorded already, so this may do nothing."""

    def heard(self, subscription: Subscription) -> bool:
        """Whether whoever delivers knows what the log says by a subscription's position; waits a moment for that.

        Answers to what stops deliveries wait for it, because no attempt starts after them (SUB-504, SUB-833).
        """

    def consent(self, id: str, secret: str, rate: int | None) -> bool:
        """Whether a callback's secret was good; then the sink has consented, to a rate if it says one (SUB-714)."""


class NoDeliveries:
    """What can be said from the log alone."""

    def status(self, subscription: Subscription) -> JsonObject:
        """See Deliveries."""
        return {"state": "paused" if subscription.paused else "active", "position": subscription.starts - 1}

    def replaying(self, subscription: Subscription) -> bool:
        """See Deliveries."""
        return False

    def deadletters(self, id: str, after: str, limit: int) -> Sequence[JsonObject]:
        """See Deliveries."""
        return ()

    def deadletter(self, id: str, sequence: str) -> JsonObject | None:
        """See Deliveries."""
        return None

    def redeliver(self, id: str, sequence: str) -> None:
        """See Deliveries."""

    def discard(self, id: str, sequence: str) -> None:
        """See Deliveries."""

    def heard(self, subscription: Subscription) -> bool:
        """See Deliveries."""
        return True

    def consent(self, id: str, secret: str, rate: int | None) -> bool:
        """See Deliveries."""
        return False
