"""Which rows of pending events have to be written, so that a write costs what changed and not what waits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from annals.projections.subscriptions.decisions.delivery_queue import DeliveryQueue
from annals.projections.subscriptions.state.delivery_queries import PendingEvents, PendingKey


class PendingChanges:
    """The changes of one subscription's pending events since they were written.

    stored_keys: keys of the events in the table.
    """

    def __init__(self, stored_keys: Iterable[PendingKey]) -> None:
        #: Also those of writes that have not ended, or failed: such a write may have reached the table.
        self._stored_keys = set(stored_keys)
        self._changed_keys: set[PendingKey] = set()
        #: Keys of updates that are not in the table yet.
        self._unwritten_keys: set[PendingKey] = set()

    def mark_queue(self, number: int) -> None:
        """Records that a queue was removed or replaced by another one."""
        self._changed_keys |= {key for key in self._stored_keys if key[0] == number}

    def collect(self, queues: Mapping[int, DeliveryQueue]) -> PendingEvents:
        """The changes to write. They are returned again until `mark_written`."""
        for number, queue in queues.items():
            self._changed_keys.update((number, sequence) for sequence in queue.take_changed())
        self._unwritten_keys |= self._changed_keys
        self._changed_keys.clear()
        events: PendingEvents = {
            (number, sequence): queues[number].stored_form(sequence) if number in queues else None
            for number, sequence in self._unwritten_keys
        }
        # An event that came and went between two writes has no row to delete.
        changes = {key: event for key, event in events.items() if event is not None or key in self._stored_keys}
        self._unwritten_keys = set(changes)
        self._stored_keys |= changes.keys()
        return changes

    def mark_written(self, changes: PendingEvents) -> None:
        """Records that changes are in the table."""
        self._unwritten_keys -= changes.keys()
        self._stored_keys -= {key for key, event in changes.items() if event is None}
