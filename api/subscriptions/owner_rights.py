"""Whether the owner of a subscription may read the subject of an event, when the event occurs (SUB-911)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from annals.domain.access.roles import CONSOLE, Caller, Role
from annals.projections.subscriptions.state.subscriptions import StoredSubscriptions

#: Seconds for which the rights of an owner are cached.
CACHE_SECONDS = 5.0


class OwnerRights:
    """The port `MayRead` of the deliverer.

    listed_callers: returns the callers with a name that the settings list; None if callers need no credential. An owner
    with a JWT has the rights that it had when it last wrote a subscription.
    """

    def __init__(
        self,
        listed_callers: Callable[[str], Sequence[Caller]] | None,
        subscriptions: Callable[[], StoredSubscriptions],
        has_issued_tokens: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._listed_callers = listed_callers
        self._subscriptions = subscriptions
        self._has_issued_tokens = has_issued_tokens
        self._clock = clock
        self._cache: dict[str, tuple[float, Sequence[Caller]]] = {}

    def __call__(self, owner: str, xid: str) -> bool:
        """Whether an owner may read an entity."""
        if self._listed_callers is None and not self._has_issued_tokens:
            return True
        return any(caller.can_read(xid) for caller in self._cached_callers(owner))

    def _cached_callers(self, owner: str) -> Sequence[Caller]:
        loaded_at, callers = self._cache.get(owner, (0.0, None))
        now = self._clock()
        if callers is None or now - loaded_at >= CACHE_SECONDS:
            callers = self._find_callers(owner)
            self._cache[owner] = now, callers
        return callers

    def _find_callers(self, owner: str) -> Sequence[Caller]:
        if owner == CONSOLE.name:
            return (CONSOLE,)
        listed = self._listed_callers(owner) if self._listed_callers else ()
        if listed or not self._has_issued_tokens:
            return listed
        owned_subscriptions = (
            entry.subscription for entry in self._subscriptions().all() if entry.subscription.owner == owner
        )
        latest_subscription = max(owned_subscriptions, key=lambda subscription: subscription.position, default=None)
        if latest_subscription is None:
            return ()
        if latest_subscription.groups is None:
            return (Caller(owner, Role.READER),)
        return (Caller(owner, None, dict.fromkeys(latest_subscription.groups, Role.READER)),)
