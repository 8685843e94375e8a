"""Writes this registry's changes to another registry through a legacy API."""

from __future__ import annotations

from contextlib import closing
from typing import Final

from commands.store.mapper import EventMapper
from domain.replication.link import Link
from projections.events.feed import interactions
from projections.replication.compat.client import LegacyClient
from projections.replication.compat.conflicts import LegacyConflicts
from projections.replication.compat.local_registry import LegacyLocalRegistry, definition_of
from projections.replication.compat.sender import LegacySender
from projections.replication.compat.sent_objects import SentObjects
from projections.replication.link_worker import LinkWorkerContext

_MAPPER: Final = EventMapper()


class PushNeedsPublicUrl(Exception):
    """A push needs this registry's public URL, because written objects name their origin."""

    def __init__(self) -> None:
        super().__init__("a link that pushes needs a public URL of this registry, set as ANNALS_PUBLIC_URL")


class LegacyPush:
    """Sends everything at the start, then each change in the log.

    It uses nothing but the legacy API of the other registry.
    """

    def __init__(self, link: Link, tools: LinkWorkerContext) -> None:
        self._link = link
        self._tools = tools
        self._here = LegacyLocalRegistry(link, tools)

    def run(self) -> None:
        """See `LinkWorker`."""
        if not self._tools.public_url:
            raise PushNeedsPublicUrl
        findings = LegacyConflicts(self._link.id, self._tools.states)
        stopping = self._tools.stopping
        with closing(self._tools.connect(self._link)) as remote:
            there = LegacyClient(remote, self._here.family)
            sending = LegacySender(there, self._here, SentObjects(self._link.id, self._tools.states), findings)
            cursor = self._end()
            sending.send_all(stopping.is_set)
            while not stopping.is_set():
                findings.save(cursor)
                self._tools.wait(self._link.interval)
                until = self._end()
                self._send(sending, cursor, until)
                cursor = until

    def _send(self, sending: LegacySender, after: int, until: int) -> None:
        """Sends the current state of everything that changed between two log positions."""
        touched = self._changed_xids(after, until)
        for xid in sorted(touched, key=lambda xid: -xid.count("/")):  # contents first, so that a deleted Group is empty
            if self._tools.stopping.is_set():
                return
            sending.send(xid)

    def _changed_xids(self, after: int, until: int) -> set[str]:
        """The Groups and definitions that events are about, directly or through their contents."""
        prefix = f"/{self._here.family.groups}/"
        log = self._tools.readers.quick_view
        return {
            definition_of(_MAPPER.event_of_row(row).xid)
            for _, rows in interactions(lambda: log().log, after, until)
            for row in rows
            if row.stream.startswith(prefix)
        }

    def _end(self) -> int:
        return self._tools.readers.quick_view().position()
