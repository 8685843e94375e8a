"""Fetches what a link to a log lacks after its scope was widened, before the link continues."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from functools import partial
from typing import Final

from annals.commands.store.mapper import EventMapper
from annals.domain.errors.http_errors import Diverged
from annals.domain.registry.events import EntityDeleted
from annals.domain.replication.link import Link
from annals.domain.replication.scope import LinkScope
from annals.domain.values import xid as xids
from annals.projections.audit.hash_comparison import HashDifference
from annals.projections.entities.view import View
from annals.projections.log.reader import Log
from annals.projections.replication.link_state import LinkProgress
from annals.projections.replication.link_worker import LinkWorkerContext
from annals.projections.replication.log.advanced_cursor import advanced_cursor
from annals.projections.replication.log.comparison import (
    UNKNOWN_POSITION,
    remote_snapshot,
)
from annals.projections.replication.log.repair import apply_differences
from annals.projections.replication.log.scope_roots import roots_in_both
from annals.projections.replication.remote.remote_client import RemoteClient, RemoteError

#: The fact with the position of the link's event up to which its scope is complete, as of the cursor.
COMPLETE_KEY: Final = "complete"
#: Largest number of a link's changes that are examined.
_MAX_EVENTS: Final = 1000
_MAPPER: Final = EventMapper()


def fetch_widened_scope(link: Link, context: LinkWorkerContext, remote: RemoteClient | None = None) -> None:
    """Fetches the Groups that were added to a link's scope, as they were at the link's cursor.

    Their interactions up to the cursor were either imported for other Groups already or will never arrive. So they are
    recorded as one interaction of this registry. Entities that left the scope stay, and may be written.
    remote: an open client for the other registry. Without one, a client is opened only if something may be missing.
    Raises: RemoteError, BrokenFeed, BrokenEntity, Diverged if a Group of this registry's own is in the way.
    """
    progress = context.states.read(link.id)
    if progress.status.get(COMPLETE_KEY) == link.position:
        return
    earlier_scopes = _earlier_scopes(link, progress, context.readers.quick_view().log)
    if earlier_scopes and (link.scope.group_filter is not None or _missing_groups(link.scope.groups, earlier_scopes)):
        with nullcontext(remote) if remote else closing(context.connect(link)) as client:
            log = context.readers.quick_view().log
            snapshot = remote_snapshot(client, advanced_cursor(link, log, client, progress.cursor or 0))
            with context.readers.view() as view:
                roots = roots_in_both(link, view, client, snapshot.position)
            if groups := _missing_groups(roots, earlier_scopes):
                narrowed_link = replace(link, scope=LinkScope(groups))
                apply_differences(narrowed_link, context, client, partial(_check_origin, link, client))
    context.states.update(link.id, None, **{COMPLETE_KEY: link.position})


def _earlier_scopes(link: Link, progress: LinkProgress, log: Log) -> list[LinkScope]:
    """The other scopes of a link since its scope was last complete; empty before the first import.

    Without a record of when that was, no check has ever run, so each earlier scope may have left something out.
    """
    if not progress.cursor or link.scope.is_whole:
        return []
    rows = [
        row
        for row in log.latest(xids.stream(link.xid), _MAX_EVENTS)
        if row.position >= progress.status.get(COMPLETE_KEY, 0)
    ]
    events = [event for event in map(_MAPPER.event_of_row, rows) if not isinstance(event, EntityDeleted)]
    scopes = [event.attributes["scope"] for event in events]
    return [LinkScope.from_members(scope) for scope in scopes if scope != link.attributes["scope"]]


def _missing_groups(groups: Iterable[str], scopes: Sequence[LinkScope]) -> frozenset[str]:
    """The groups that at least one of the scopes lacks."""
    return frozenset(group for group in groups if not all(scope.has(group) for scope in scopes))


def _check_origin(link: Link, remote: RemoteClient, view: View, differences: Sequence[HashDifference]) -> None:
    """Raises: Diverged if a local entity that differs did not come over the link."""
    for difference in differences:
        if difference.here is not None and not _came_over_link(difference.xid, link, view, remote):
            detail = f"{difference.xid} of the wider scope exists here already and differs from {link.url}"
            advice = "repair the link, or narrow its scope and delete the entity"
            raise Diverged(link.xid, error_detail=f"{detail}; {advice}", extensions={"xid": difference.xid})


def _came_over_link(xid: str, link: Link, view: View, remote: RemoteClient) -> bool:
    """Whether the last event of an entity came over the link, at any time."""
    (last_event,) = view.log.latest(xids.stream(xid), 1)
    (interaction,) = view.log.interactions(last_event.position - 1, 1)
    if interaction.caller == f"links/{link.id}":
        return True
    try:
        remote.request("GET", "/-/log/head", params={"asof": interaction.xregcorrelationid})
    except RemoteError as error:
        if error.status != UNKNOWN_POSITION:
            raise
        return False
    return True
