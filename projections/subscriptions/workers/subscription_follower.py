"""Follows the changes of subscriptions up to the end of the log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from threading import Lock

from annals.projections.subscriptions.state import delivery_queries, subscription_changes
from annals.projections.subscriptions.state.delivery_record import SavedDelivery
from annals.projections.subscriptions.state.subscription_changes import SubscriptionChange
from annals.projections.subscriptions.workers.threads import ReaderThread


class SubscriptionFollower:
    """Follows the subscriptions.

    last_changes: the last change of each live subscription, up to the position `head`.
    on_change: called for each change after `load`, in order, before `last_changes` contains it.
    """

    def __init__(self, watcher: ReaderThread, on_change: Callable[[SubscriptionChange], None]) -> None:
        self.head = 0
        self.last_changes: dict[str, SubscriptionChange] = {}
        self._watcher = watcher
        self._on_change = on_change
        self._lock = asyncio.Lock()
        self._commit_count = 0
        self._count_lock = Lock()
        self._applied_commits = -1

    def committed(self) -> None:
        """Called after each commit, before the client gets its answer; from any thread."""
        with self._count_lock:  # a lost increment would hide a commit from `catch_up`
            self._commit_count += 1

    async def load(self) -> None:
        """Loads all live subscriptions."""
        self.head, changes = await self._watcher.run(self._read_all)
        self.last_changes = {change.id: change for change in changes}
        self._applied_commits = 0 if self._commit_count == 0 else -1

    async def follow(self) -> None:
        """Applies the changes of subscriptions up to the end of the log."""
        async with self._lock:
            await self._follow()

    async def catch_up(self) -> None:
        """Returns when all changes are applied whose commands were answered before (SUB-833)."""
        target = self._commit_count  # those of later commits need not be waited for
        if self._applied_commits < target:
            async with self._lock:
                if self._applied_commits < target:  # otherwise another caller has applied them
                    await self._follow()

    async def _follow(self) -> None:
        commits = self._commit_count
        head, changes = await self._watcher.read(self._read_changes, self.head)
        for change in changes:
            self._on_change(change)
            if change.subscription is None:
                self.last_changes.pop(change.id, None)
            else:
                self.last_changes[change.id] = change
        self.head = head  # not before: after a failure, the changes are read again; applied ones change nothing
        self._applied_commits = commits

    async def load_histories(
        self, ids: Sequence[str], on_loaded: Callable[[str, list[SubscriptionChange], SavedDelivery | None], None]
    ) -> None:
        """Calls `on_loaded` with each subscription's id, its changes since its saved state, and that state.

        Each call comes before any later change of the subscription.
        """
        deliveries = await self._watcher.run(self._load_saved, ids)
        async with self._lock:
            revisions = {id: deliveries[id].revision if id in deliveries else 0 for id in ids}
            changes_by_id = await self._watcher.run(self._read_histories, revisions)
            for id in ids:
                if id in self.last_changes:
                    on_loaded(id, [*changes_by_id.get(id, ()), self.last_changes[id]], deliveries.get(id))

    # --- in the watcher's thread -------------------------------------------------------------------------------------

    def _read_all(self) -> tuple[int, list[SubscriptionChange]]:
        # The head is read first: a change between the two reads is followed later, and applied once.
        head = self._watcher.log_end()
        return head, subscription_changes.read_living(self._watcher.database())

    def _read_changes(self, after: int) -> tuple[int, list[SubscriptionChange]]:
        head = self._watcher.log_end()
        return head, subscription_changes.read_changes(self._watcher.database(), after, head) if head > after else []

    def _load_saved(self, ids: Sequence[str]) -> dict[str, SavedDelivery]:
        return delivery_queries.load_deliveries(self._watcher.database(), ids)

    def _read_histories(self, revisions: Mapping[str, int]) -> dict[str, list[SubscriptionChange]]:
        head, db = self.head, self._watcher.database()
        newest_revisions = {id: change.revision for id, change in self.last_changes.items()}
        return {
            id: subscription_changes.read_history(db, id, revision, head)
            for id, revision in revisions.items()
            if newest_revisions.get(id, revision) > revision
        }
