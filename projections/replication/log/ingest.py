"""Imports interactions of another log in batches, each interaction exactly once."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, Final

from annals.domain.decisions.commands import Follow
from annals.domain.decisions.replication.append_foreign import model_events
from annals.domain.errors.http_errors import Diverged
from annals.domain.replication.foreign_interaction import ForeignInteraction
from annals.domain.replication.link import Link
from annals.projections.replication.link_worker import LinkWorkerContext
from annals.projections.replication.log.comparison import log_position, remote_snapshot
from annals.projections.replication.remote.remote_client import RemoteClient, RemoteError

#: Largest number of events that are recorded together, unless one interaction has more.
BATCH_EVENTS: Final = 2000
#: The fact with a position of the other log and the state there, by which a log that was replaced is noticed.
READ_STATE_KEY: Final = "readstate"
#: Largest size in bytes of documents held in memory, unless one interaction has more.
BATCH_BYTES: Final = 64 << 20


def read_state(position: int, state: str) -> dict[str, Any] | None:
    """The fact about a position that was read. state: in hex; None without one, because not every caller sees it."""
    return {"position": position, "state": state} if state else None


class LogIngester:
    """Imports the interactions of one link. cursor: position of the other log up to which all are imported."""

    def __init__(self, link: Link, context: LinkWorkerContext, remote: RemoteClient | None = None) -> None:
        """Finds the cursor. remote: the other registry, from which the cursor of a link without state is derived.

        Raises: RemoteError; Diverged also if the log of the other registry is not the one that was read so far.
        """
        self._link = link
        self._context = context
        progress = context.states.read(link.id)
        if remote is not None and (read_state := progress.status.get(READ_STATE_KEY)) is not None:
            self._check_same_log(remote, read_state["position"], read_state["state"])
        self.cursor = progress.cursor if progress.cursor is not None else self._starting_position(remote)

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
        last_interaction = batch[-1]
        self.cursor = last_interaction.last
        facts = {
            "taken": last_interaction.time.isoformat(),
            READ_STATE_KEY: read_state(last_interaction.last, last_interaction.state.hex()),
        }
        self._context.states.update(self._link.id, self.cursor, **facts, lastcontact=time.time(), error=None)

    def _check_same_log(self, remote: RemoteClient, position: int, state: str) -> None:
        """Checks that the other registry has the same state as before after an interaction that was read.

        A registry that was restored from a backup may have another one there. A log that ends before is noticed later.
        Raises: RemoteError, Diverged.
        """
        snapshot = remote_snapshot(remote, position)
        if snapshot.position == position and snapshot.state and snapshot.state != state:
            detail = f"{self._link.url} has another log than before: it differs at position {position}, which was read"
            raise Diverged(self._link.xid, error_detail=f"{detail} already; a repair continues from there")

    def _starting_position(self, remote: RemoteClient | None) -> int:
        """The other log's position at the last common interaction of the tree; 0 if there is none."""
        view = self._context.readers.quick_view()
        if remote is None or not self._link.scope.is_whole:
            return 0
        (last_interaction,) = view.log.tree_interactions(1, backwards=True)
        try:
            return log_position(remote, last_interaction.xregcorrelationid)
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
