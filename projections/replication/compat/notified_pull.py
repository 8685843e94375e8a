"""Copies from a legacy API whose registry sends events: each event triggers a fetch of the object it names.

Rules LEG-911 to LEG-913.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any, Final

from annals.domain.compat.legacy_apis import LegacyApi
from annals.domain.compat.uris import entity_path
from annals.domain.replication.link import Link
from annals.projections.replication.compat.client import LegacyClient
from annals.projections.replication.compat.local_registry import LegacyLocalRegistry
from annals.projections.replication.compat.mirror import Mirror
from annals.projections.replication.link_conflicts import SUBJECT, LinkConflicts
from annals.projections.replication.link_state import ALL_SUBJECTS
from annals.projections.replication.link_worker import LinkWorkerContext
from annals.projections.replication.remote.remote_subscription import CHECK_SECONDS, RemoteSubscription, group_filters

_EVENT_ACTIONS: Final = ("updated.v1", "deleted.v1")


class NotifiedLegacyPull:
    """Runs a link that copies from a legacy API after notifications.

    Everything is fetched at the start and after each interval, in case events were lost.
    """

    def __init__(self, link: Link, context: LinkWorkerContext) -> None:
        self._link = link
        self._context = context

    def run(self) -> None:
        """See `LinkWorker`. Also raises: NoPublicUrl."""
        link, context, local_registry = self._link, self._context, LegacyLocalRegistry(self._link, self._context)
        conflicts = LinkConflicts(link.id, context.states, SUBJECT)
        root = link.url.removesuffix(local_registry.family.base)
        with closing(context.connect(link)) as remote, closing(context.connect(link, root)) as registry_client:
            subscription = RemoteSubscription(
                link, context, registry_client, event_selection(link, local_registry.family)
            )
            mirror = Mirror(LegacyClient(remote, local_registry.family), local_registry, conflicts)
            try:
                subscription.ensure()  # before the first fetch, so that every later change causes an event
                while not context.stopping.is_set():
                    fetched_at = time.monotonic()
                    context.states.take_subjects(link.id)
                    mirror.copy_all(context.stopping.is_set)
                    if context.stopping.is_set():  # an interrupted pass has not met all conflicts
                        return
                    conflicts.save()
                    self._listen(subscription, mirror, conflicts, fetched_at)
            finally:
                subscription.delete_if_unused()

    def _listen(
        self, subscription: RemoteSubscription, mirror: Mirror, conflicts: LinkConflicts, fetched_at: float
    ) -> None:
        """Copies what events name, until it is time to fetch everything. fetched_at: when the last fetch began."""
        deadline = time.monotonic() + self._link.interval
        while (remaining := deadline - time.monotonic()) > 0 and not self._context.stopping.is_set():
            if self._context.wait_for_event(min(remaining, CHECK_SECONDS), fetched_at):
                fetched_at = time.monotonic()
                subjects = self._context.states.take_subjects(self._link.id)
                if ALL_SUBJECTS in subjects:
                    return
                mirror.copy_subjects(subjects)
                conflicts.save()
            elif subscription.ensure():
                return


def event_selection(link: Link, family: LegacyApi) -> dict[str, Any]:
    """The members of a subscription that select a link's events. The source is the URL of the link."""
    types = [f"{family.events}.{action}" for action in _EVENT_ACTIONS]
    return {"source": link.url, "types": types, "filters": group_filters(list(_scope_subjects(link)))}


def _scope_subjects(link: Link) -> Iterator[str]:
    """The paths of what the scope names; empty if filters select others too."""
    scope = link.attributes["scope"]
    if not scope.get("filters"):
        for xid in (*scope.get("groups", ()), *scope.get("resources", ())):
            with suppress(ValueError):  # no legacy API shows this
                yield entity_path(xid)
