"""Taking in what another registry pushes of its log."""

from __future__ import annotations

import time
from collections.abc import Iterable

from domain.errors.http_errors import Diverged, LogGap, NotReceiving, RemoteUnavailable
from domain.errors.problems import Problem
from domain.replication.link import RECEIVE, Link
from projections.replication.ingest import LogIngester
from projections.replication.link_worker import LinkWorkerContext
from projections.replication.log_lines import BrokenFeed, parse_interactions
from projections.replication.remote_client import RemoteError
from projections.replication.standard.comparable import BrokenEntity
from projections.replication.widened_scope import fetch_widened_scope


def receive(link: Link, tools: LinkWorkerContext, after: int, lines: Iterable[bytes]) -> int:
    """Takes in a piece of the other log; gives the position there up to which all is here.

    after: position beyond which the piece begins. What is here already is passed over, so a piece may come twice, or
    behind one that came later. lines: as a feed of the log with documents has them; what comes before one that breaks
    off is taken in. Raises: NotReceiving, LogGap, BrokenFeed, Diverged, RemoteUnavailable where the scope
    has become wider and the other registry cannot be asked, and what the lines raise.
    """
    if link.mode != RECEIVE or link.promoted or not link.enabled:
        raise NotReceiving(link.xid)
    _check_complete(link, tools)
    intake = LogIngester(link, tools)
    if after > intake.cursor:
        raise LogGap(link.xid, after=after, position=intake.cursor, extensions={"position": intake.cursor})
    try:
        intake.take(each for each in parse_interactions(lines) if each.last > intake.cursor)
    except Problem as problem:
        diverged = True if isinstance(problem, Diverged) else None
        tools.states.note(link.id, error=problem.text(), failed=time.time(), diverged=diverged)
        raise
    tools.states.note(link.id, lastcontact=time.time(), error=None, failed=None, diverged=None)
    return intake.cursor


def _check_complete(link: Link, tools: LinkWorkerContext) -> None:
    """Brings what a wider scope has first. Raises: Diverged, RemoteUnavailable."""
    try:
        fetch_widened_scope(link, tools)
    except (RemoteError, BrokenFeed, BrokenEntity, LookupError) as error:
        reason = f"what its wider scope has cannot be fetched, so nothing is taken in: {error}"
        problem = RemoteUnavailable(link.xid, error_detail=reason)
        tools.states.note(link.id, error=problem.text(), failed=time.time())
        raise problem from None
    except Diverged as problem:
        tools.states.note(link.id, error=problem.text(), failed=time.time(), diverged=True)
        raise
