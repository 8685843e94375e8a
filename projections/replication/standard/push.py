"""Writes this registry's own entities to a server of the standard API: everything at first, then each change.

Each entity is compared before it is written, so a restarted process does not write it again. What came from the other
registry never goes back (LEG-906), and remote entities that others wrote stay unchanged (LEG-907).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Final

from annals.commands.store.mapper import EventMapper
from annals.domain.decisions.replication.copy_rights import link_of_copy
from annals.domain.registry.events import EntityDeleted, EntityEvent, EntityRefreshed, EntityUpdated
from annals.domain.replication import LINK
from annals.domain.replication.link import Link
from annals.domain.values import xid as xids
from annals.projections.entities.view import View
from annals.projections.events.feed import interactions
from annals.projections.replication.link_conflicts import XID, LinkConflicts
from annals.projections.replication.link_worker import LinkWorkerContext
from annals.projections.replication.remote.remote_client import RemoteClient, RemoteError
from annals.projections.replication.standard.comparable import (
    BrokenEntity,
    ComparableGroup,
    ComparableResource,
    map_xref,
)
from annals.projections.replication.standard.local_registry import LocalRegistry
from annals.projections.replication.standard.response_checks import is_about_entity
from annals.projections.replication.standard.source import StandardSource
from annals.projections.replication.standard.target import StandardTarget

#: Interactions that are handled together.
BATCH_INTERACTIONS: Final = 200
#: The fact with the position of the link's event since which everything up to the cursor was sent. Each change of the
#: link sends everything again: its scope may be another one, and a pause is how an operator asks for it.
SENT_KEY: Final = "sent"
#: Attributes of a Group that change when its contents are created or deleted.
_TOUCH_ATTRIBUTES: Final = frozenset(("epoch", "modifiedat"))
_LOG: Final = logging.getLogger("annals.replication")
_TAKEN_REASON: Final = "the entity of this name there does not come from here"


class StandardPush:
    """Runs a link that writes to a server of the standard API."""

    def __init__(self, link: Link, context: LinkWorkerContext) -> None:
        self._link = link
        self._context = context
        self._mapping = link.mapping
        self._mapper = EventMapper()
        progress = context.states.read(link.id)
        self._cursor = progress.cursor
        self._sent_at = progress.status.get(SENT_KEY)
        self._conflicts = LinkConflicts(link.id, context.states, XID)
        self._checked_groups: set[str] = set()  # of the requests since the last refresh

    def run(self) -> None:
        """See `LinkWorker`."""
        with closing(self._context.connect(self._link)) as remote:
            source, has_old_error = StandardSource(remote), True
            while not self._context.stopping.is_set():
                self.send_once(remote, source)
                if has_old_error:  # if there was nothing to send, nothing else removes it
                    self._context.states.update(self._link.id, error=None, failed=None)
                    has_old_error = False
                self._context.wait(self._link.interval)

    def send_once(self, remote: RemoteClient, source: StandardSource) -> None:
        """Writes everything that the other registry lacks. Raises: RemoteError, BrokenEntity."""
        view = self._context.readers.quick_view()
        self._source = source
        if (self._cursor or 0) > (head := view.log.head().last):
            _LOG.warning(
                "the link %s has sent up to position %d, but the log ends at %d; it sends everything again",
                self._link.id,
                self._cursor,
                head,
            )
            self._sent_at = None
        if self._cursor is None or self._sent_at != self._link.position or self._conflicts.needs_full_pass:
            position = view.log.head().last
            self._conflicts.clear()
            self._refresh(remote, view)
            self._send(self._all_xids())
            if self._cursor is not None:
                self._send(self._deleted_xids(position))
            self._save_progress(position)
        while not self._context.stopping.is_set():
            batch = view.log.interactions(self._cursor or 0, BATCH_INTERACTIONS)
            if not batch:
                self._retry_conflicts(remote, view)
                return
            events = [self._mapper.event_of_row(row) for row in view.log.events(batch[0].first, batch[-1].last)]
            self._refresh(remote, view)
            self._send(dict.fromkeys(xid for event in events for xid in _affected_xids(event)))
            self._save_progress(batch[-1].last)

    def _refresh(self, remote: RemoteClient, view: View) -> None:
        """Reads the current types and links."""
        self._local_registry = LocalRegistry(view)
        self._links = list(view.links.all())
        self._source.model = self._local_registry.model
        self._target = StandardTarget(remote, self._local_registry.model)
        self._checked_groups.clear()

    def _save_progress(self, position: int) -> None:
        if self._context.stopping.is_set():
            return
        self._cursor, self._sent_at = position, self._link.position
        self._conflicts.save(position, **{SENT_KEY: self._sent_at})

    def _retry_conflicts(self, remote: RemoteClient, view: View) -> None:
        """Writes again what could not be written, because the cause may have disappeared; not all at once."""
        if conflicting_xids := self._conflicts.first_subjects():
            self._refresh(remote, view)
            self._send(conflicting_xids)
            self._conflicts.save()

    def _all_xids(self) -> Iterable[str]:
        for group in list(self._local_registry.groups()):
            if self._link.scope.reaches_into(group.lower()):
                yield group
                yield from [xid for xid, _ in self._local_registry.resources(group)]

    def _deleted_xids(self, until: int) -> Iterator[str]:
        """Deleted Groups and Resources in scope, from the log up to a position.

        They may have been deleted while they were out of scope.
        """
        readers = self._context.readers
        for _, rows in interactions(lambda: readers.quick_view().log, 0, until):
            for event in map(self._mapper.event_of_row, rows):
                is_deletion = isinstance(event, EntityDeleted) and event.xid in _affected_xids(event)
                if is_deletion and self._link.scope.has(event.xid) and readers.quick_view().entity(event.xid) is None:
                    yield event.xid

    def _send(self, local_xids: Iterable[str]) -> None:
        """Writes each of some Groups and Resources in its current state."""
        for xid in local_xids:
            if self._context.stopping.is_set():
                return
            if not self._link.scope.has(xid):
                continue
            try:
                reason = self._write_entity(xid) if self._local_registry.has_type(xid) else "the type no longer exists"
            except RemoteError as error:
                if not is_about_entity(error):
                    raise  # the error is about the server, so the link retries later
                reason = str(error)
            except BrokenEntity as error:
                reason = f"the entity there cannot be read: {error}"
            if reason:
                self._conflicts.add(xid, reason)
            else:
                self._conflicts.resolve(xid)

    def _write_entity(self, xid: str) -> str | None:
        """Writes a Group or a Resource in its current state. Returns the reason if it must not be written."""
        if is_group := len(xids.segments(xid)) == 2:
            self._checked_groups.add(xid)
        local_entity = self._local_registry.group(xid) if is_group else self._local_registry.resource(xid)
        if local_entity is None:
            return self._delete_remote(xid)
        if self._is_copied_from_remote(xid, local_entity.link):
            return None
        remote_xid = self._mapping.to_remote(xid)
        remote_entity = self._source.group(remote_xid) if is_group else self._source.resource(remote_xid)
        comparable = (
            local_entity.comparable
            if isinstance(local_entity.comparable, ComparableGroup)
            else map_xref(local_entity.comparable, self._mapping.remote_xids)
        )
        if remote_entity is not None and not self._is_known(xid, remote_entity):
            return None if _are_copies(comparable, remote_entity) else _TAKEN_REASON
        if isinstance(comparable, ComparableResource):
            assert remote_entity is None or isinstance(remote_entity, ComparableResource)
            if remote_entity is None:
                self._write_group_of(xid)
            self._target.write_resource(remote_xid, comparable, remote_entity)
        elif remote_entity != comparable:
            self._target.write_group(remote_xid, comparable)
        return None

    def _write_group_of(self, xid: str) -> None:
        """Writes the Group of a Resource if it is missing there, where it would be created without its attributes."""
        group = xids.join(*xids.segments(xid)[:2])
        if group not in self._checked_groups and self._link.scope.has(group):
            self._write_entity(group)

    def _delete_remote(self, xid: str) -> str | None:
        last = next(self._local_registry.creation_records(xid), None)
        remote_xid = self._mapping.to_remote(xid)
        if last is None or self._is_copied_from_remote(xid, last.link):
            return None
        remote_entity = (
            self._source.group(remote_xid) if len(xids.segments(xid)) == 2 else self._source.resource(remote_xid)
        )
        if remote_entity is None:
            return None
        if not self._is_known(xid, remote_entity):
            return _TAKEN_REASON
        self._target.delete(remote_xid)
        return None

    def _is_known(self, xid: str, remote_entity: ComparableGroup | ComparableResource) -> bool:
        """Whether a remote entity is one that exists or existed in this registry; always True for a pointer."""
        createdat = remote_entity.createdat
        return createdat is None or any(
            createdat == record.createdat for record in self._local_registry.creation_records(xid)
        )

    def _is_copied_from_remote(self, xid: str, link: str | None) -> bool:
        source_link = link_of_copy(xid, self._links, {LINK: link})
        return source_link is not None and source_link.url == self._link.url


def _are_copies(
    comparable: ComparableGroup | ComparableResource, remote_entity: ComparableGroup | ComparableResource
) -> bool:
    if isinstance(comparable, ComparableResource) and isinstance(remote_entity, ComparableResource):
        return comparable.is_copy_of(remote_entity)
    return comparable == remote_entity


def _affected_xids(event: EntityEvent) -> list[str]:
    """The Group or Resource that an event changes, if it changes anything that is copied."""
    parts = xids.segments(event.xid)
    if len(parts) < 2 or xids.is_outside_tree(event.stream) or isinstance(event, EntityRefreshed):
        return []
    if len(parts) == 2 and isinstance(event, EntityUpdated):
        counts = {name for name in event.changed if name.endswith("count") or f"{name}count" in event.changed}
        if not set(event.changed) - _TOUCH_ATTRIBUTES - counts:
            return []
    return [xids.join(*parts[:4])]
