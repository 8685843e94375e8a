"""Copies everything from a legacy API, at the start and after each interval (LEG-913)."""

from __future__ import annotations

from contextlib import closing

from annals.domain.replication.link import Link
from annals.projections.replication.compat.client import LegacyClient
from annals.projections.replication.compat.local_registry import LegacyLocalRegistry
from annals.projections.replication.compat.mirror import Mirror
from annals.projections.replication.link_conflicts import SUBJECT, LinkConflicts
from annals.projections.replication.link_worker import LinkWorkerContext


class LegacyPull:
    """Runs a link that copies from a legacy API at intervals."""

    def __init__(self, link: Link, context: LinkWorkerContext) -> None:
        self._link = link
        self._context = context

    def run(self) -> None:
        """See `LinkWorker`."""
        local_registry, conflicts = (
            LegacyLocalRegistry(self._link, self._context),
            LinkConflicts(self._link.id, self._context.states, SUBJECT),
        )
        with closing(self._context.connect(self._link)) as remote:
            mirror = Mirror(LegacyClient(remote, local_registry.family), local_registry, conflicts)
            while not self._context.stopping.is_set():
                mirror.copy_all(self._context.stopping.is_set)
                if self._context.stopping.is_set():  # an interrupted pass has not met all conflicts
                    return
                conflicts.save()
                self._context.stopping.wait(self._link.interval)
