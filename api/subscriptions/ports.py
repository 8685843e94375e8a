"""The port through which the Subscriptions API uses the deliverer, and its implementation without a deliverer.

A pause, a replay or a redelivery is recorded in the log first; the deliverer follows the log. The methods are
synchronous because they read tables; the API calls them in threads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from annals.domain.access.roles import CanRead
from annals.domain.subscriptions.subscription import Subscription

#: The members of the JSON object of a status or a dead letter.
JsonObject = Mapping[str, Any]


class Deliveries(Protocol):
    """The port: the state of deliveries, and actions on them."""

    def status(self, subscription: Subscription) -> JsonObject:
        """`state` and every other known member of the status (SUB-841)."""

    def is_replaying(self, subscription: Subscription) -> bool:
        """Whether a replay runs, or was requested and has not begun (SUB-834)."""

    def deadletters(self, id: str, after: str, limit: int, can_read: CanRead) -> Sequence[JsonObject]:
        """Dead letters in their order, after a `sequence`. Each dead letter has its `sequence` as a member.

        can_read: of the caller; what an event says is left out if the caller may not read its entity any more.
        """

    def deadletter(self, id: str, sequence: str, can_read: CanRead) -> JsonObject | None:
        """One dead letter; None if it does not exist."""

    def attempts(self, id: str, before: int | None, limit: int, can_read: CanRead) -> Sequence[JsonObject]:
        """Attempts, the newest first, before a `number`; None for the newest (UI-111)."""

    def hours(self, id: str) -> Sequence[JsonObject]:
        """The number of attempts in each hour, by outcome, the newest first."""

    def redeliver(self, id: str, sequence: str) -> None:
        """Gives a dead letter a fresh set of attempts. The log already has the request, so this may do nothing."""

    def discard(self, id: str, sequence: str) -> None:
        """Removes a dead letter. The log already has the request, so this may do nothing."""

    def wait_until_applied(self, subscription: Subscription, *, needs_row: bool = False) -> bool:
        """Whether the deliverer has read the log up to a subscription's position; waits briefly for that.

        A response to a request that stops deliveries waits for this, because no attempt may start after it (SUB-504,
        SUB-833).
        """

    def consent(self, id: str, secret: str, rate: int | None) -> bool:
        """Whether the secret of a consent callback was valid.

        If so, the sink has consented, at the rate that it gives (SUB-714).
        """


class NoDeliveries:
    """The port without a deliverer: it reports what the log alone shows."""

    def status(self, subscription: Subscription) -> JsonObject:
        """See Deliveries."""
        return {"state": "paused" if subscription.is_paused else "active", "position": subscription.first_position - 1}

    def is_replaying(self, subscription: Subscription) -> bool:
        """See Deliveries."""
        return False

    def deadletters(self, id: str, after: str, limit: int, can_read: CanRead) -> Sequence[JsonObject]:
        """See Deliveries."""
        return ()

    def deadletter(self, id: str, sequence: str, can_read: CanRead) -> JsonObject | None:
        """See Deliveries."""
        return None

    def attempts(self, id: str, before: int | None, limit: int, can_read: CanRead) -> Sequence[JsonObject]:
        """See Deliveries."""
        return ()

    def hours(self, id: str) -> Sequence[JsonObject]:
        """See Deliveries."""
        return ()

    def redeliver(self, id: str, sequence: str) -> None:
        """See Deliveries."""

    def discard(self, id: str, sequence: str) -> None:
        """See Deliveries."""

    def wait_until_applied(self, subscription: Subscription, *, needs_row: bool = False) -> bool:
        """See Deliveries."""
        return True

    def consent(self, id: str, secret: str, rate: int | None) -> bool:
        """See Deliveries."""
        return False
