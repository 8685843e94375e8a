"""Following the log of another registry when that says that something has happened.

What events say is not looked at: each of them has all of the log fetched that is not here yet, and so has the interval
of the link, for events that were lost. Rules LEG-912 and LEG-913.
"""

from __future__ import annotations

import time
from contextlib import closing

from domain.replication.link import Link
from projections.replication.ingest import LogIngester
from projections.replication.link_status import LinkStatusRecorder, record_status
from projections.replication.link_worker import LinkWorkerContext
from projections.replication.log_pull import fetch_interactions
from projections.replication.remote_client import RemoteClient
from projections.replication.remote_subscription import CHECK_SECONDS, RemoteSubscription, group_filters
from projections.replication.widened_scope import fetch_widened_scope


class NotifiedLogPull:
    """See the module."""

    def __init__(self, link: Link, tools: LinkWorkerContext) -> None:
        self._link = link
        self._tools = tools

    def run(self) -> None:
        """See `Runner`. Raises: NoPublicUrl as well."""
        link, tools = self._link, self._tools
        with closing(tools.remote(link)) as remote:
            subscribed = RemoteSubscription(link, tools, remote, {"filters": group_filters(_scope_groups(link))})
            with record_status(link, tools, remote) as watch:
                try:
                    subscribed.keep()  # before the first look: what happens after that is told
                    self._take(remote, watch, subscribed)
                finally:
                    subscribed.end()

    def _take(self, remote: RemoteClient, watch: LinkStatusRecorder, subscribed: RemoteSubscription) -> None:
        fetch_widened_scope(self._link, self._tools, remote)
        intake = LogIngester(self._link, self._tools, remote)
        while not self._tools.stopping.is_set():
            watch.look(intake)
            fetch_interactions(remote, intake, self._tools)
            watch.reached(intake)
            self._wait(subscribed)

    def _wait(self, subscribed: RemoteSubscription) -> None:
        """Returns when there may be something to fetch; sees to it meanwhile that the subscription stays."""
        until = time.monotonic() + self._link.interval
        while (left := until - time.monotonic()) > 0:
            if self._tools.hear(min(left, CHECK_SECONDS)) or subscribed.keep():
                return


def _scope_groups(link: Link) -> list[str]:
    """The Groups that the scope names, as it spells them; none where it has others as well."""
    scope = link.attributes["scope"]
    return [] if scope.get("filters") else list(scope.get("groups", ()))
