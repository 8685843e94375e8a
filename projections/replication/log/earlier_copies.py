"""Checks what a link over some Groups finds here before it imports: copies of an earlier link, or what differed last.

A whole replica has a state hash after each interaction, by which its import notices each difference. Some Groups have
none, so an import would overwrite what was written here after a former link had ended.
"""

from __future__ import annotations

from contextlib import closing, nullcontext

from annals.domain.errors.http_errors import Diverged
from annals.domain.replication.link import Link
from annals.projections.entities.view import View
from annals.projections.replication.link_worker import LinkWorkerContext
from annals.projections.replication.log.advanced_cursor import advanced_cursor
from annals.projections.replication.log.comparison import find_differences, remote_snapshot
from annals.projections.replication.log.link_status import DIFFERS
from annals.projections.replication.log.scope_roots import scope_roots
from annals.projections.replication.remote.remote_client import RemoteClient


def check_earlier_copies(link: Link, context: LinkWorkerContext, remote: RemoteClient | None = None) -> None:
    """Checks that the Groups of a link are here as they were there after the last interaction that is recorded here.

    Does nothing if the link has imported before and found no difference, or if there are none of its Groups here.
    remote: an open client for the other registry. Without one, a client is opened if there is something to compare.
    Raises: Diverged, RemoteError, BrokenFeed.
    """
    progress = context.states.read(link.id)
    is_new = progress.cursor is None
    if link.scope.is_whole or not (is_new or progress.status.get("verdict") == DIFFERS):
        return
    with context.readers.background_view() as view:
        if is_new and not _has_groups(link, view):
            return
        with nullcontext(remote) if remote else closing(context.connect(link)) as client:
            cursor = advanced_cursor(link, view.log, client, progress.cursor or 0, stops_at_missing=True)
            if cursor == 0:  # nothing of it ever came from there, and the import refuses to create what exists
                return
            roots = scope_roots(link, view) if is_new else None  # a new link reads its other Groups from the log
            difference = next(find_differences(link, view, client, remote_snapshot(client, cursor), roots), None)
    if difference is not None:
        detail = f"{difference.xid} differs from what it was at {link.url} after the last interaction that is here"
        raise Diverged(link.xid, error_detail=detail, extensions={"xid": difference.xid})


def _has_groups(link: Link, view: View) -> bool:
    return any(view.entity_in_any_case(group) is not None for group in scope_roots(link, view))
