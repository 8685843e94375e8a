"""What the handlers of subscription requests share: their dependencies, and access checks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from annals.api.feeds.rights import check_reads_something
from annals.api.registry.open_registry import Registry
from annals.api.subscriptions.ports import Deliveries, NoDeliveries
from annals.commands.store.clock import format_time
from annals.domain.access.roles import ANONYMOUS_READER, Caller
from annals.domain.decisions.subscriptions import COLLECTION, can_see_subscription
from annals.domain.errors import problems
from annals.domain.errors.http_errors import Forbidden
from annals.domain.model.validation.rfc3339 import to_utc
from annals.domain.subscriptions.subscription import Subscription
from annals.domain.subscriptions.subscription_document import SubscriptionSupport
from annals.projections.entities.view import View
from annals.projections.log.reader import Log
from annals.projections.outgoing.resolver import Resolver

_MAX_TIME: Final = datetime.max.replace(tzinfo=UTC)
_TIME_RESOLUTION: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class SubscriptionApiContext:
    """The dependencies of the Subscriptions API.

    read_support: returns what this server supports; called on first need. resolver: resolves the addresses of sinks.
    max_owned: maximum number of subscriptions of one caller. max_body: maximum size of a request body in bytes.
    """

    registry: Registry
    read_support: Callable[[], SubscriptionSupport]
    resolver: Resolver
    deliveries: Deliveries = field(default_factory=NoDeliveries)
    max_owned: int = 1000
    max_body: int = 1 << 16

    def position_of_time(self, time: str) -> int:
        """`position_of_time` in the log as it is now."""
        return position_of_time(self.registry.readers.quick_view().log, time)


def check_caller(caller: Caller) -> None:
    """Checks that the caller has a role. Raises: Forbidden for a caller without any role, or one who only reads
    because nobody needs a credential for that (ACC-123).
    """
    check_reads_something(caller)
    if caller == ANONYMOUS_READER:
        raise Forbidden(caller=caller.name)


def check_writer(caller: Caller) -> None:
    """Checks that the caller may write. Raises: Forbidden for a caller that may write nowhere."""
    if not caller.writes_somewhere:
        raise Forbidden(caller=caller.name)


def can_see(caller: Caller, subscription: Subscription) -> bool:
    """Whether a caller may see a subscription (SUB-911)."""
    return can_see_subscription(subscription.owner, caller.name, is_admin=caller.is_admin)


def find_subscription(view: View, id: str, caller: Caller) -> Subscription:
    """A subscription that the caller may see. Raises: NotFound."""
    subscription = view.subscriptions.get(id)
    if subscription is None or not can_see(caller, subscription):
        raise problems.NotFound(subscription_xid(id))
    return subscription


def subscription_xid(id: str) -> str:
    """The xid of a subscription."""
    return f"{COLLECTION}/{id}"


def position_of_time(log: Log, time: str) -> int:
    """The first log position whose time is not before a time; past the end of the log if there is none (SUB-835).

    time: RFC 3339 in UTC. Fractions finer than a microsecond are rounded up, so that no earlier event is included.
    """
    seconds, _, fraction = to_utc(time).removesuffix("Z").partition(".")
    instant = datetime.fromisoformat(f"{seconds}.{fraction[:6]:0<6}+00:00")
    previous_instant = (
        instant - _TIME_RESOLUTION
        if not fraction[6:].strip("0") and instant > datetime.min.replace(tzinfo=UTC)
        else instant
    )
    return log.as_of(format_time(previous_instant), _MAX_TIME).last + 1
