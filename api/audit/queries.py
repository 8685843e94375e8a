"""Queries of the audit trail, for HTTP and the command line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final, NamedTuple

from annals.api.audit.request_params import AuditParams, requested_range
from annals.commands.store.hashes import Interaction
from annals.domain.errors import problems
from annals.domain.errors.problems import BadRequest
from annals.domain.values import xid as xids
from annals.projections.audit.entity_diff import EntityDiff
from annals.projections.audit.trail import Revision
from annals.projections.entities.view import View

#: Other paths of the streams at the root.
_XID_ALIASES: Final = {"/modelsource": xids.MODEL}


class ComparedMoments(NamedTuple):
    """Two moments, each as the last interaction that had ended by then, and the differences between them."""

    before: Interaction
    after: Interaction
    differences: Iterator[EntityDiff]


def xid_of(segments: Sequence[str]) -> str:
    """The xid of the entity or collection at a path. A meta is part of its Resource."""
    entity_segments = segments[:4] if len(segments) == 5 and segments[4] == "meta" else segments
    return _XID_ALIASES.get(xid := xids.join(*entity_segments), xid)


def history_positions(
    view: View, xid: str, audit_params: AuditParams, now: datetime, includes_outside_tree: bool = True
) -> Iterator[int]:
    """Log positions of the revisions of an entity, and of everything below it if requested.

    includes_outside_tree: whether subscriptions and links count as below the registry. A collection has only the
    history of its members.
    Raises: NotFound for an entity that never existed, BadRequest.
    """
    includes_descendants = _is_collection(xid) if audit_params.below is None else audit_params.below
    _check_existed(view, xid, includes_descendants)
    log_range = requested_range(audit_params, view.log, now)
    positions = (
        view.trail.tree_positions(xid, log_range, includes_outside_tree)
        if includes_descendants
        else view.trail.entity_positions(xid, log_range)
    )
    return positions if audit_params.caller is None else view.trail.positions_by(audit_params.caller, positions)


def compare_moments(view: View, xid: str, audit_params: AuditParams, now: datetime) -> ComparedMoments:
    """Two moments of an entity and, unless the request excludes it, of everything below it.

    Raises: NotFound for an entity that never existed, BadRequest.
    """
    if audit_params.start is None:
        raise BadRequest(error_detail='"from" is missing: it names the moment to start from')
    includes_descendants, log = audit_params.below is not False, view.log
    _check_existed(view, xid, includes_descendants)
    earlier = log.as_of(audit_params.start, now, "from")
    later = log.head() if audit_params.end is None else log.as_of(audit_params.end, now, "to")
    comparison = view.diff(earlier.last, later.last)
    return ComparedMoments(
        earlier, later, (comparison.tree_differences if includes_descendants else comparison.entity_differences)(xid)
    )


def find_interaction(
    view: View, xregcorrelationid: str, audit_params: AuditParams
) -> tuple[Interaction, Iterator[Revision]] | None:
    """One interaction and its events in order, after the position that the request names; None without such an id."""
    interaction = None if "\0" in xregcorrelationid else view.log.interaction(xregcorrelationid)
    if interaction is None:
        return None
    first = max(interaction.first, (audit_params.after or 0) + 1)
    return interaction, view.trail.revisions(range(first, interaction.last + 1), before="before" in audit_params.images)


def _is_collection(xid: str) -> bool:
    return xid not in xids.ROOT_STREAMS and len(xids.segments(xid)) % 2 == 1


def _check_existed(view: View, xid: str, includes_descendants: bool) -> None:
    trail = view.trail
    if "\0" in xid or not (trail.has_existed(xid) or (includes_descendants and trail.has_existed_below(xid))):
        raise problems.NotFound(xid)
