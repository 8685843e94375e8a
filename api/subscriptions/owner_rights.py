"""Whether the owner of a subscription may read the subject of an event, when the event occurs (SUB-911)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from annals.api.auth.callers import Authenticator
from annals.api.auth.identity import LISTING
from annals.api.feeds.rights import VisibilityTest, visible_subjects
from annals.api.registry.bounded_cache import BoundedCache
from annals.domain.access.roles import CONSOLE, Caller, Role
from annals.domain.subscriptions.subscription import Subscription

#: Seconds for which the rights of an owner are cached.
CACHE_SECONDS = 1.0
#: Number of subscriptions whose owners' rights are cached.
CACHE_SIZE = 4096

#: Callers, of whom one has to have a right.
_Callers = Sequence[Caller]
#: What those callers see: of each sequence, one test has to hold.
_Tests = Sequence[Sequence[VisibilityTest]]


class OwnerRights:
    """The port `MayRead` of the deliverer: the rights that the credential which last wrote a subscription has now.

    The settings and the API keys list the rights of most credentials, and so of the sessions that these began. Of a
    JWT, of a sign-in at a provider, and of a token that another one of its name has replaced, the rights when it wrote
    are known; if something lists the name of their owner, they end where those of the list do. Grants add to both as
    they are now. has_issued_tokens: whether callers may have credentials that nothing lists.
    """

    def __init__(
        self,
        authenticator: Authenticator,
        has_issued_tokens: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._authenticator = authenticator
        self._has_issued_tokens = has_issued_tokens
        self._clock = clock
        self._cache = BoundedCache[str, tuple[int, float, _Tests]](CACHE_SIZE)

    def __call__(self, subscription: Subscription, xid: str) -> bool:
        """Whether the owner of a subscription may read the change events of an entity, as in the feed."""
        if not self._authenticator.names and not self._has_issued_tokens:
            return True
        return all(any(may_see(xid) for may_see in tests) for tests in self._cached_tests(subscription))

    def _cached_tests(self, subscription: Subscription) -> _Tests:
        position, loaded_at, tests = self._cache.get(subscription.id) or (0, 0.0, ())
        now = self._clock()
        if position != subscription.position or now - loaded_at >= CACHE_SECONDS:
            tests = [list(map(visible_subjects, callers)) for callers in self._find_callers(subscription)]
            self._cache.add(subscription.id, (subscription.position, now, tests))
        return tests

    def _find_callers(self, subscription: Subscription) -> Sequence[_Callers]:
        """All of whom have to have a right."""
        owner, authenticator = subscription.owner, subscription.authenticator
        if owner == CONSOLE.name:
            return ((CONSOLE,),)
        is_listed = authenticator in LISTING
        listed = self._authenticator.callers_named(owner, authenticator if is_listed else "")
        if is_listed and (own := _of_entry(subscription.entry, listed)):
            return (own,)
        writer = self._authenticator.with_current_grants(_caller_that_wrote(subscription))
        is_unlisted = not listed and not is_listed and self._has_issued_tokens
        return ((writer,),) if is_unlisted else ((writer,), listed)


def _of_entry(entry: str, listed: _Callers) -> _Callers:
    """The callers of one entry. A subscription of an older release has none; then the only one counts, if it is one."""
    if not entry and len({caller.entry for caller in listed}) == 1:
        return listed
    return [caller for caller in listed if caller.entry == entry]


def _caller_that_wrote(subscription: Subscription) -> Caller:
    """The owner with the rights of a credential when it last wrote a subscription, as far as reading is concerned."""
    owner, places = subscription.owner, subscription.groups
    if places is None:
        return Caller(owner, Role.READER, claims=subscription.claims)
    return Caller(owner, None, dict.fromkeys(places, Role.READER), claims=subscription.claims)
