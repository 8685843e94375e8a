"""Imports the parts of its log that another registry pushes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from annals.domain.errors.http_errors import Diverged, LogGap, NotReceiving, RemoteUnavailable
from annals.domain.errors.problems import Problem
from annals.domain.replication.foreign_interaction import ForeignInteraction
from annals.domain.replication.link import RECEIVE, Link
from annals.projections.replication.link_worker import LinkWorkerContext
from annals.projections.replication.log.earlier_copies import check_earlier_copies
from annals.projections.replication.log.ingest import LogIngester
from annals.projections.replication.log.link_status import NOT_COMPARED
from annals.projections.replication.log.log_lines import BrokenFeed, parse_interactions
from annals.projections.replication.log.widened_scope import fetch_widened_scope
from annals.projections.replication.refusals import reason_of
from annals.projections.replication.remote.remote_client import RemoteError
from annals.projections.replication.standard.comparable import BrokenEntity


def receive(link: Link, context: LinkWorkerContext, after: int, state: str, lines: Iterable[bytes]) -> int:
    """Imports a batch of the other log. Returns the position there up to which everything is imported.

    after: position before the batch. Interactions that were imported before are skipped, so a batch may arrive twice or
    late. state: state hash of the other registry after that position, in hex; empty if it is not known.
    lines: in the format of a log feed with documents. If they break off, everything before that is imported.
    Raises: NotReceiving, LogGap, BrokenFeed, Diverged, RemoteUnavailable if the other registry cannot be read although
    the scope was widened or there are copies of an earlier link, and what the lines raise.
    """
    if link.mode != RECEIVE or link.is_promoted or not link.is_enabled:
        raise NotReceiving(link.xid)
    is_first = context.states.read(link.id).cursor is None
    _prepare(link, context)
    ingester = LogIngester(link, context)
    if after > ingester.cursor:
        raise LogGap(link.xid, after=after, position=ingester.cursor, extensions={"position": ingester.cursor})
    interactions = parse_interactions(lines, context.max_interaction_bytes)
    try:
        ingester.check_state(after, state)
        ingester.ingest(_new_interactions(ingester, interactions))
    except NotReceiving:
        raise  # the link has ended meanwhile, which is no failure
    except Problem as problem:
        diverged = True if isinstance(problem, Diverged) else None
        context.states.update(link.id, error=reason_of(problem), failed=time.time(), diverged=diverged)
        raise
    outdated = NOT_COMPARED if is_first else {}  # nothing compares a link that receives again by itself
    context.states.update(link.id, lastcontact=time.time(), error=None, failed=None, diverged=None, **outdated)
    return ingester.cursor


def _new_interactions(
    ingester: LogIngester, interactions: Iterable[ForeignInteraction]
) -> Iterator[ForeignInteraction]:
    """The interactions after the cursor. Raises: Diverged if those before it are not the ones that were read."""
    for interaction in interactions:
        if interaction.last > ingester.cursor:
            yield interaction
        else:
            ingester.check_state(interaction.last, interaction.state.hex())


def _prepare(link: Link, context: LinkWorkerContext) -> None:
    """Compares earlier copies, and fetches what a widened scope lacks. Raises: Diverged, RemoteUnavailable."""
    try:
        check_earlier_copies(link, context)
        fetch_widened_scope(link, context)
    except (RemoteError, BrokenFeed, BrokenEntity, LookupError) as error:
        reason = f"the Groups of its scope cannot be compared or fetched, so nothing is received: {error}"
        problem = RemoteUnavailable(link.xid, error_detail=reason)
        context.states.update(link.id, error=reason_of(problem), failed=time.time())
        raise problem from None
    except Diverged as problem:
        context.states.update(link.id, error=reason_of(problem), failed=time.time(), diverged=True)
        raise
