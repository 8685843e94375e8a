"""Whether the owner of a subscription may read the subject of an event, when the event occurs (SUB-911)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from domain.access.roles import CONSOLE, Caller, Role
from projections.subscriptions.state.subscriptions import StoredSubscriptions

#: Seconds for which the rights of an owner are cached.
CACHE_SECONDS = 5.0


class OwnerRights:
    """The port `MayRead` of the deliverer.

    named: returns the callers with a name, from the current token list; None if there is no token list. An owner with a
    JWT has the rights that it had when it last wrote a subscription.
    """

    def __init__(
        self,
        named: Callable[[str], Sequence[Caller]] | None,
        subscriptions: Callable[[], StoredSubscriptions],
        issued: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._callers_named = named
        self._subscriptions = subscriptions
        self._issued = issued
        self._clock = clock
        self._cache: dict[str, tuple[float, Sequence[Caller]]] = {}

    def __call__(self, owner: str, xid: str) -> bool:
        """Whether an owner may read an entity."""
        if self._callers_named is None and not self._issued:
            return True
        return any(caller.can_read(xid) for caller in self._callers(owner))

    def _callers(self, owner: str) -> Sequence[Caller]:
        since, found = self._cache.get(owner, (0.0, None))
        now = self._clock()
        if found is None or now - since >= CACHE_SECONDS:
            found = self._looked_up(owner)
            self._cache[owner] = now, found
        return found

    def _looked_up(self, owner: str) -> Sequence[Caller]:
        if owner == CONSOLE.name:
            return (CONSOLE,)
        listed = self._callers_named(owner) if self._callers_named else ()
        if listed or not self._issued:
            return listed
        own = (found.subscription for found in self._subscriptions().all() if found.subscription.owner == owner)
        last = max(own, key=lambda subscription: subscription.position, default=None)
        if last is None:
            return ()
        if last.groups is None:
            return (Caller(owner, Role.READER),)
        return (Caller(owner, None, dict.fromkeys(last.groups, Role.READER)),)
