"""Fetches what a link to a log lacks after its scope was widened, before the link continues."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any, Final

from annals.commands.store.mapper import EventMapper
from annals.domain.decisions.commands import ReplaceModel
from annals.domain.errors.http_errors import Diverged
from annals.domain.registry.events import EntityDeleted
from annals.domain.replication.link import Link
from annals.domain.replication.merged_models import merge_models
from annals.domain.replication.scope import LinkScope
from annals.domain.values import xid as xids
from annals.domain.values.json_text import loads
from annals.projections.audit.hash_comparison import HashDifference
from annals.projections.entities.view import View
from annals.projections.log.reader import Log
from annals.projections.replication.link_state import LinkProgress
from annals.projections.replication.link_worker import LinkWorkerContext
from annals.projections.replication.log.advanced_cursor import advanced_cursor
from annals.projections.replication.log.comparison import (
    UNKNOWN_POSITION,
    RemoteSnapshot,
    find_differences,
    remote_snapshot,
    scope_roots,
)
from annals.projections.replication.log.repair import apply_differences
from annals.projections.replication.remote.bounded_responses import MAX_RESPONSE_BYTES
from annals.projections.replication.remote.json_answers import request_object
from annals.projections.replication.remote.remote_client import RemoteClient, RemoteError
from annals.projections.replication.standard.cached_responses import CachedResponses

#: The fact with the position of the link's event up to which its scope is complete, as of the cursor.
COMPLETE_KEY: Final = "complete"
#: Largest number of a link's changes that are examined.
_MAX_EVENTS: Final = 1000
#: Groups in a page.
_PAGE_SIZE: Final = 1000
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
            if groups := _missing_groups(_groups_in_scope(link, context, client, snapshot), earlier_scopes):
                _fetch_groups(replace(link, scope=LinkScope(groups)), link, context, client, snapshot)
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


def _groups_in_scope(
    link: Link, context: LinkWorkerContext, remote: RemoteClient, snapshot: RemoteSnapshot
) -> set[str]:
    """The Groups in scope: those it names, and local and remote ones that pass its filters."""
    with context.readers.view() as view:
        candidates = set(scope_roots(link, view))
    if link.scope.group_filter is None:
        return candidates
    responses = CachedResponses(remote)
    for plural in _fetch_modelsource(remote, snapshot.position).get("groups") or {}:
        ids = responses.members(f"/{plural}?asof={snapshot.position}&limit={_PAGE_SIZE}")
        candidates |= {group for id, _ in ids if link.scope.has(group := xids.stream(xids.join(plural, id)))}
    return candidates


def _fetch_groups(
    narrowed_link: Link, link: Link, context: LinkWorkerContext, remote: RemoteClient, snapshot: RemoteSnapshot
) -> None:
    """Fetches Groups. narrowed_link: the link with only those Groups in scope."""
    check = partial(_check_origin, link, remote)
    with context.readers.background_view() as view:  # checked before the model is changed for Groups that cannot come
        check(view, list(find_differences(narrowed_link, view, remote, snapshot)))
    _extend_model(narrowed_link, context, remote, snapshot.position)
    apply_differences(narrowed_link, context, remote, check)


def _extend_model(narrowed_link: Link, context: LinkWorkerContext, remote: RemoteClient, position: int) -> None:
    """Extends this registry's model with the types of Groups in scope, as they were at a position of the other log."""
    with context.readers.view() as view:
        model = view.entity(xids.MODEL)
    own_model = loads(model.attributes)["modelsource"] if model else {}
    if (
        merged_model := merge_models(own_model, _fetch_modelsource(remote, position), narrowed_link.scope)
    ) != own_model:
        context.execute(narrowed_link, ReplaceModel(merged_model))


def _fetch_modelsource(remote: RemoteClient, position: int) -> dict[str, Any]:
    params = {"asof": str(position)}
    return request_object(remote, "GET", "/modelsource", max_bytes=MAX_RESPONSE_BYTES, params=params)


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
