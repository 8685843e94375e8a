"""Following the log of another registry when that says that something has happened.

What events say is not looked at: each of them has all of the log fetched that is not here yet, and so has the interval
of the link, for events that were lost. Rules LEG-912 and LEG-913.
"""

from __future__ import annotations

import time
from contextlib import closing

from domain.links.link import Link
from projections.replication.intake import Intake
from projections.replication.pull import fetch
from projections.replication.remote import Remote
from projections.replication.runner import Tools
from projections.replication.subscribing import CARE, Subscribed, about
from projections.replication.watching import Watch, watching
from projections.replication.widening import widen


class LogEvents:
    """See the module."""

    def __init__(self, link: Link, tools: Tools) -> None:
        self._link = link
        self._tools = tools

    def run(self) -> None:
        """See `Runner`. Raises: NoPublicUrl as well."""
        link, tools = self._link, self._tools
        with closing(tools.remote(link)) as remote:
            subscribed = Subscribed(link, tools, remote, {"filters": about(_groups(link))})
            with watching(link, tools, remote) as watch:
                try:
                    subscribed.keep()  # before the first look: what happens after that is told
                    self._take(remote, watch, subscribed)
                finally:
                    subscribed.end()

    def _take(self, remote: Remote, watch: Watch, subscribed: Subscribed) -> None:
        widen(self._link, self._tools, remote)
        intake = Intake(self._link, self._tools, remote)
        while not self._tools.stopping.is_set():
            watch.look(intake)
            fetch(remote, intake, self._tools)
            watch.reached(intake)
            self._wait(subscribed)

    def _wait(self, subscribed: Subscribed) -> None:
        """Returns when there may be something to fetch; sees to it meanwhile that the subscription stays."""
        until = time.monotonic() + self._link.interval
        while (left := until - time.monotonic()) > 0:
            if self._tools.hear(min(left, CARE)) or subscribed.keep():
                return


def _groups(link: Link) -> list[str]:
    """The Groups that the scope names, as it spells them; none where it has others as well."""
    scope = link.attributes["scope"]
    return [] if scope.get("filters") else list(scope.get("groups", ()))
