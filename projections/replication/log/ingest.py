"""Imports interactions of another log in batches, each interaction exactly once."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Final

from annals.domain.decisions.commands import Follow
from annals.domain.decisions.replication.append_foreign import model_events
from annals.domain.errors.http_errors import Diverged
from annals.domain.replication.foreign_interaction import ForeignInteraction
from annals.domain.replication.link import Link
from annals.projections.replication.link_worker import LinkWorkerContext
from annals.projections.replication.remote.remote_client import RemoteClient, RemoteError

#: Largest number of events that are recorded together, unless one interaction has more.
BATCH_EVENTS: Final = 2000
#: Largest size in bytes of documents held in memory, unless one interaction has more.
BATCH_BYTES: Final = 64 << 20


class LogIngester:
    """Imports the interactions of one link. cursor: position of the other log up to which all are imported."""

    def __init__(self, link: Link, context: LinkWorkerContext, remote: RemoteClient | None = None) -> None:
        """Finds the cursor. remote: the other registry, from which the cursor of a link without state is derived.

        Raises: RemoteError, Diverged.
        """
        self._link = link
        self._context = context
        cursor = context.states.read(link.id).cursor
        self.cursor = cursor if cursor is not None else self._starting_position(remote)

    def ingest(self, interactions: Iterable[ForeignInteraction | None]) -> None:
        """Imports interactions in the order of the other log. Some may have been imported before.

        A None among them means: record everything so far without waiting for more.
        Raises: Diverged, and what the iterator raises. What came before the error is recorded.
        """
        batch: list[ForeignInteraction] = []
        events = size = 0
        try:
            for interaction in interactions:
                if interaction is None:
                    self._record_batch(batch)
                    batch, events, size = [], 0, 0
                    continue
                if model_events(interaction, self._link):  # record what precedes a new model first
                    self._record_batch(batch)
                    batch, events, size = [], 0, 0
                batch.append(interaction)
                events += len(interaction.events)
                size += sum(map(len, interaction.documents.values()))
                if events >= BATCH_EVENTS or size >= BATCH_BYTES:
                    self._record_batch(batch)
                    batch, events, size = [], 0, 0
        finally:
            self._record_batch(batch)

    def _record_batch(self, batch: list[ForeignInteraction]) -> None:
        if not batch:
            return
        self._context.execute(self._link, Follow(self._link.xid, tuple(batch)))
        self.cursor = batch[-1].last
        last_time = batch[-1].time.isoformat()
        self._context.states.update(self._link.id, self.cursor, taken=last_time, lastcontact=time.time(), error=None)

    def _starting_position(self, remote: RemoteClient | None) -> int:
        """The other log's position at the last common interaction of the tree; 0 if there is none."""
        view = self._context.readers.quick_view()
        if remote is None or not self._link.scope.is_whole:
            return 0
        (last_interaction,) = view.log.tree_interactions(1, backwards=True)
        try:
            remote_head = remote.request(
                "GET", "/-/log/head", params={"asof": last_interaction.xregcorrelationid}
            ).json()
        except RemoteError as error:
            if error.status != 400:
                raise
            if len(view.log.tree_interactions(2)) < 2:  # nothing was ever written to this registry
                return 0
            raise Diverged(
                self._link.xid,
                error_detail=f"{self._link.url} does not have {last_interaction.xregcorrelationid}, the last "
                "interaction here",
            ) from None
        return int(remote_head["position"])
