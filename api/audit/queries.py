"""Queries of the audit trail, for HTTP and the command line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from api.audit.request_params import AuditParams, requested_span
from commands.store.hashes import Interaction
from domain.errors import problems
from domain.errors.problems import BadRequest
from domain.values import xid as xids
from projections.audit.entity_diff import EntityDiff
from projections.audit.trail import Revision
from projections.entities.query import View

#: Other paths of the streams at the root.
_OTHER_NAMES: Final = {"/modelsource": xids.MODEL}


class ComparedMoments(NamedTuple):
    """Two moments, each as the last interaction that had ended by then, and the differences between them."""

    before: Interaction
    after: Interaction
    differences: Iterator[EntityDiff]


def xid_of(segments: Sequence[str]) -> str:
    """The xid of the entity or collection at a path. A meta is part of its Resource."""
    own = segments[:4] if len(segments) == 5 and segments[4] == "meta" else segments
    return _OTHER_NAMES.get(xid := xids.join(*own), xid)


def history_positions(view: View, xid: str, wanted: AuditParams, now: datetime, apart: bool = True) -> Iterator[int]:
    """Log positions of the revisions of an entity, and of everything below it if requested.

    apart: whether subscriptions and links count as below the registry. A collection has only the history of its
    members.
    Raises: NotFound for an entity that never existed, BadRequest.
    """
    below = _is_collection(xid) if wanted.below is None else wanted.below
    _check_known(view, xid, below)
    part = requested_span(wanted, view.log, now)
    return view.trail.of_tree(xid, part, apart) if below else view.trail.of_entity(xid, part)


def compare_moments(view: View, xid: str, wanted: AuditParams, now: datetime) -> ComparedMoments:
    """Two moments of an entity and, unless the request excludes it, of everything below it.

    Raises: NotFound for an entity that never existed, BadRequest.
    """
    if wanted.start is None:
        raise BadRequest(error_detail='"from" is missing: it names the moment to start from')
    below, log = wanted.below is not False, view.log
    _check_known(view, xid, below)
    before = log.as_of(wanted.start, now, "from")
    after = log.head() if wanted.end is None else log.as_of(wanted.end, now, "to")
    compared = view.diff(before.last, after.last)
    return ComparedMoments(before, after, (compared.of_tree if below else compared.of_entity)(xid))


def find_interaction(
    view: View, xregcorrelationid: str, wanted: AuditParams
) -> tuple[Interaction, Iterator[Revision]] | None:
    """One interaction and its events in order; None if no interaction has the id."""
    facts = None if "\0" in xregcorrelationid else view.log.interaction(xregcorrelationid)
    if facts is None:
        return None
    return facts, view.trail.revisions(range(facts.first, facts.last + 1), before="before" in wanted.images)


def _is_collection(xid: str) -> bool:
    return xid not in xids.ROOT_STREAMS and len(xids.segments(xid)) % 2 == 1


def _check_known(view: View, xid: str, below: bool) -> None:
    trail = view.trail
    if "\0" in xid or not (trail.has_existed(xid) or (below and trail.has_existed_below(xid))):
        raise problems.NotFound(xid)
