"""Interactions of another log on their way in: many at a time, each exactly once."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Final

from domain.decisions.commands import Follow
from domain.decisions.links.append_foreign import model_events
from domain.errors.http_errors import Diverged
from domain.replication.foreign_interaction import ForeignInteraction
from domain.replication.link import Link
from projections.replication.link_worker import LinkWorkerContext
from projections.replication.remote_client import RemoteClient, RemoteError

#: Events that are recorded together at most, unless one interaction alone has more.
BATCH_EVENTS: Final = 2000
#: Bytes of documents that are held at most, unless one interaction alone has more.
BATCH_BYTES: Final = 64 << 20


class LogIngester:
    """What comes over one link. cursor: position of the other log up to which all is taken in."""

    def __init__(self, link: Link, tools: LinkWorkerContext, remote: RemoteClient | None = None) -> None:
        """remote: the other registry, which is asked where this one's log goes on when nothing is known of the link.

        Raises: RemoteError, Diverged.
        """
        self._link = link
        self._tools = tools
        known = tools.states.read(link.id).cursor
        self.cursor = known if known is not None else self._found(remote)

    def take(self, interactions: Iterable[ForeignInteraction | None]) -> None:
        """Takes in interactions in the order of the other log, those that are here already included.

        None among them: what came up to there is not to wait for more.
        Raises: Diverged, and what ends the interactions: what came before it is taken in.
        """
        waiting: list[ForeignInteraction] = []
        events = size = 0
        try:
            for each in interactions:
                if each is None:
                    self._record(waiting)
                    waiting, events, size = [], 0, 0
                    continue
                if model_events(each, self._link):  # what comes under another model is looked up as it stands before
                    self._record(waiting)
                    waiting, events, size = [], 0, 0
                waiting.append(each)
                events += len(each.events)
                size += sum(map(len, each.documents.values()))
                if events >= BATCH_EVENTS or size >= BATCH_BYTES:
                    self._record(waiting)
                    waiting, events, size = [], 0, 0
        finally:
            self._record(waiting)

    def _record(self, waiting: list[ForeignInteraction]) -> None:
        if not waiting:
            return
        self._tools.do(self._link, Follow(self._link.xid, tuple(waiting)))
        self.cursor = waiting[-1].last
        last = waiting[-1].time.isoformat()
        self._tools.states.note(self._link.id, self.cursor, taken=last, lastcontact=time.time(), error=None)

    def _found(self, remote: RemoteClient | None) -> int:
        """Where the other log stood at the last interaction of the tree that both have; 0 where they have none."""
        quick = self._tools.readers.quick()
        if remote is None or not self._link.scope.whole:
            return 0
        (last,) = quick.log.of_tree(1, backwards=True)
        try:
            known = remote.ask("GET", "/-/log/head", params={"asof": last.xregcorrelationid}).json()
        except RemoteError as error:
            if error.status != 400:
                raise
            if len(quick.log.of_tree(2)) < 2:  # nothing was ever written here
                return 0
            raise Diverged(
                self._link.xid,
                error_detail=f"{self._link.url} knows nothing of {last.xregcorrelationid}, the last interaction here",
            ) from None
        return int(known["position"])
