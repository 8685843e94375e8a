"""Pulls the log of another registry whenever that registry sends an event.

The contents of events are ignored: each event starts a fetch of everything that is missing. So does the link's
interval, in case events were lost. Rules LEG-912 and LEG-913.
"""

from __future__ import annotations

import time
from contextlib import closing

from annals.domain.replication.link import Link
from annals.projections.replication.link_worker import LinkWorkerContext
from annals.projections.replication.log.earlier_copies import check_earlier_copies
from annals.projections.replication.log.ingest import LogIngester
from annals.projections.replication.log.link_status import LinkStatusRecorder, record_status
from annals.projections.replication.log.log_pull import fetch_interactions
from annals.projections.replication.log.widened_scope import fetch_widened_scope
from annals.projections.replication.remote.remote_client import RemoteClient
from annals.projections.replication.remote.remote_subscription import CHECK_SECONDS, RemoteSubscription, group_filters


class NotifiedLogPull:
    """Runs a link that pulls a log after notifications."""

    def __init__(self, link: Link, context: LinkWorkerContext) -> None:
        self._link = link
        self._context = context

    def run(self) -> None:
        """See `LinkWorker`. Also raises: NoPublicUrl."""
        link, context = self._link, self._context
        with closing(context.connect(link)) as remote:
            subscription = RemoteSubscription(link, context, remote, {"filters": group_filters(_scope_groups(link))})
            with record_status(link, context, remote) as recorder:
                try:
                    subscription.ensure()  # before the first fetch, so that every later change causes an event
                    self._handle(remote, recorder, subscription)
                finally:
                    subscription.delete_if_unused()

    def _handle(self, remote: RemoteClient, recorder: LinkStatusRecorder, subscription: RemoteSubscription) -> None:
        check_earlier_copies(self._link, self._context, remote)
        fetch_widened_scope(self._link, self._context, remote)
        ingester = LogIngester(self._link, self._context, remote)
        while not self._context.stopping.is_set():
            fetched_at = time.monotonic()
            recorder.note_head()
            fetch_interactions(remote, ingester, self._context)
            recorder.note_caught_up(ingester)
            self._wait(subscription, fetched_at)

    def _wait(self, subscription: RemoteSubscription, fetched_at: float) -> None:
        """Returns when there may be something to fetch, and checks the subscription meanwhile."""
        deadline = time.monotonic() + self._link.interval
        while (remaining := deadline - time.monotonic()) > 0:
            if self._context.wait_for_event(min(remaining, CHECK_SECONDS), fetched_at) or subscription.ensure():
                return


def _scope_groups(link: Link) -> list[str]:
    """The Groups that the scope names, in its spelling; empty if filters select others too."""
    scope = link.attributes["scope"]
    return [] if scope.get("filters") else list(scope.get("groups", ()))
