"""Writes this registry's changes to another registry through a legacy API."""

from __future__ import annotations

from contextlib import closing
from typing import Final

from annals.commands.store.mapper import EventMapper
from annals.domain.replication.link import Link
from annals.projections.events.feed import interactions
from annals.projections.replication.compat.client import LegacyClient
from annals.projections.replication.compat.local_registry import LegacyLocalRegistry, definition_of
from annals.projections.replication.compat.sender import LegacySender
from annals.projections.replication.compat.sent_objects import SentObjects
from annals.projections.replication.link_conflicts import SUBJECT, LinkConflicts
from annals.projections.replication.link_worker import LinkWorkerContext

_MAPPER: Final = EventMapper()


class PushNeedsPublicUrl(Exception):
    """A push needs this registry's public URL, because written objects name their origin."""

    def __init__(self) -> None:
        super().__init__("a link that pushes needs a public URL of this registry, set as ANNALS_PUBLIC_URL")


class LegacyPush:
    """Compares and sends everything at the start, then sends each change in the log.

    It uses nothing but the legacy API of the other registry.
    """

    def __init__(self, link: Link, context: LinkWorkerContext) -> None:
        self._link = link
        self._context = context
        self._local_registry = LegacyLocalRegistry(link, context)

    def run(self) -> None:
        """See `LinkWorker`."""
        if not self._context.public_url:
            raise PushNeedsPublicUrl
        conflicts = LinkConflicts(self._link.id, self._context.states, SUBJECT)
        stopping = self._context.stopping
        with closing(self._context.connect(self._link)) as remote:
            client = LegacyClient(remote, self._local_registry.family)
            sender = LegacySender(
                client,
                self._local_registry,
                SentObjects(self._link.id, self._context.states),
                conflicts,
                stopping.is_set,
                self._context.checked,
            )
            cursor = self._log_end()
            sender.send_all()
            while not stopping.is_set():
                conflicts.save(cursor)
                self._context.wait(self._link.interval)
                end = self._log_end()
                self._write_changes(sender, cursor, end)
                cursor = end

    def _write_changes(self, sender: LegacySender, after: int, until: int) -> None:
        """Sends the current state of everything that changed between two log positions."""
        changed_xids = self._changed_xids(after, until)
        for xid in sorted(
            changed_xids, key=lambda xid: -xid.count("/")
        ):  # contents first, so that a deleted Group is empty
            if self._context.stopping.is_set():
                return
            sender.send(xid)

    def _changed_xids(self, after: int, until: int) -> set[str]:
        """The Groups and definitions that events are about, directly or through their contents."""
        prefix = f"/{self._local_registry.family.groups}/"
        open_view = self._context.readers.quick_view
        return {
            definition_of(_MAPPER.event_of_row(row).xid)
            for _, rows in interactions(lambda: open_view().log, after, until)
            for row in rows
            if row.stream.startswith(prefix)
        }

    def _log_end(self) -> int:
        return self._context.readers.quick_view().position()
