"""Imports interactions of another log in batches, each interaction exactly once."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
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
        self._read_state = progress.status.get(READ_STATE_KEY)
        self.cursor = progress.cursor if progress.cursor is not None else self._starting_position(remote)
        if remote is not None:
            self.resume_after_last_read(remote)

    def resume_after_last_read(self, remote: RemoteClient) -> None:
        """Sets the cursor to the last interaction that was read; checks that the other registry has its state there.

        The cursor may be after events that the other registry hides. If that was restored from a backup, others may be
        in their place, or another state after the interaction.
        Raises: Diverged; RemoteError also for a log that ends before, because a replica that is behind may have
        answered.
        """
        if self._read_state is None:
            return
        position = self._read_state["position"]
        snapshot = remote_snapshot(remote, position)
        self.check_state(snapshot.position, snapshot.state)
        if snapshot.position < position < self.check_end(remote, position):  # no interaction ends there any more
            raise self._other_log(position)
        self.cursor = position

    def check_end(self, remote: RemoteClient, position: int) -> int:
        """Checks that the other log does not end before a position that was read; returns its end.

        Raises: RemoteError, also if it does.
        """
        end = remote_snapshot(remote).position
        if end < position:
            raise RemoteError(
                f"{self._link.url}: the log ends at position {end}, before position {position}, which was read "
                "already. It was probably restored from a backup; then a repair continues from there. Or a replica "
                "that is behind has answered"
            )
        return end

    def check_state(self, position: int, state: str) -> None:
        """Checks the state in hex of the other registry at a position of its log; empty if it is not known.

        Does nothing if it is not the position that was read last. Raises: Diverged.
        """
        read = self._read_state
        if read is not None and state and position == read["position"] and state != read["state"]:
            raise self._other_log(position)

    def _other_log(self, position: int) -> Diverged:
        detail = f"{self._link.url} has another log than before: it differs at position {position}, which was read"
        return Diverged(self._link.xid, error_detail=f"{detail} already; a repair continues from there")

    def ingest(self, interactions: Iterable[ForeignInteraction | None]) -> None:
        """Imports interactions in the order of the other log. Some may have been imported before.

        A None among them means: record everything so far without waiting for more.
        Raises: Diverged, and what the iterator raises. What came before the error is recorded.
        """
        batch = _Batch()
        try:
            for interaction in interactions:
                if interaction is None:
                    self._record(batch.take())
                    continue
                if model_events(interaction, self._link):  # record what precedes a new model first
                    self._record(batch.take())
                batch.add(interaction)
                if batch.is_full:
                    self._record(batch.take())
        finally:
            self._record(batch.take())

    def _record(self, interactions: Sequence[ForeignInteraction]) -> None:
        """Records interactions together; if they are refused, one by one, so that those before the refused one stay."""
        if not interactions:
            return
        try:
            self._context.execute(self._link, Follow(self._link.xid, tuple(interactions)))
        except Diverged:
            if len(interactions) == 1:
                raise
            for interaction in interactions:
                self._record([interaction])
        last_interaction = interactions[-1]
        self.cursor = last_interaction.last
        self._read_state = read_state(last_interaction.last, last_interaction.state.hex())
        facts = {"taken": last_interaction.time.isoformat(), READ_STATE_KEY: self._read_state}
        self._context.states.update(self._link.id, self.cursor, **facts, lastcontact=time.time(), error=None)

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


class _Batch:
    """Interactions that are recorded together."""

    def __init__(self) -> None:
        self._interactions: list[ForeignInteraction] = []
        self._events = self._bytes = 0

    @property
    def is_full(self) -> bool:
        return self._events >= BATCH_EVENTS or self._bytes >= BATCH_BYTES

    def add(self, interaction: ForeignInteraction) -> None:
        self._interactions.append(interaction)
        self._events += len(interaction.events)
        self._bytes += sum(map(len, interaction.documents.values()))

    def take(self) -> list[ForeignInteraction]:
        """The interactions of the batch, which is empty then."""
        interactions, self._interactions, self._events, self._bytes = self._interactions, [], 0, 0
        return interactions
