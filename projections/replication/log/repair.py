"""Makes a copy that has diverged equal to its source again, overwriting local changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Final, NamedTuple
from urllib.parse import quote

from annals.domain.decisions.commands import ControlLink, Repair, ReplaceModel
from annals.domain.errors.http_errors import Diverged
from annals.domain.registry.events import EntityEvent
from annals.domain.replication.link import Link
from annals.domain.replication.merged_models import merge_models
from annals.domain.values import xid as xids
from annals.domain.values.json_text import loads
from annals.projections.audit.hash_comparison import HashDifference
from annals.projections.entities.view import View
from annals.projections.replication.link_worker import LinkWorkerContext
from annals.projections.replication.log.advanced_cursor import imported_snapshot
from annals.projections.replication.log.comparison import (
    RemoteSnapshot,
    find_differences,
    local_scope_hash,
    scope_hashes,
)
from annals.projections.replication.log.ingest import READ_STATE_KEY, read_state
from annals.projections.replication.log.link_status import (
    DIFFERS,
    EQUAL,
    check_comparable,
    comparison_fact,
    facts_to_record,
)
from annals.projections.replication.log.log_lines import NDJSON, parse_first_event
from annals.projections.replication.log.scope_roots import fetch_modelsource
from annals.projections.replication.remote.json_answers import position_of, request_json
from annals.projections.replication.remote.remote_client import RemoteClient, RemoteError

#: Attempts to repair while others write to this registry.
_MAX_ROUNDS: Final = 5
_NOT_FOUND: Final = 404

#: Raises an error if some of the differences must not be overwritten.
DifferenceCheck = Callable[[View, Sequence[HashDifference]], None]


class AppliedDifferences(NamedTuple):
    """Differences that were recorded. snapshot: of the other registry. before, after: the ends of this one's log."""

    snapshot: RemoteSnapshot
    entities: int
    before: int
    after: int


class _LastEvent(NamedTuple):
    """The last event of a stream of the other registry, with the documents that it refers to."""

    event: EntityEvent
    documents: dict[str, bytes]


def repair(link: Link, context: LinkWorkerContext) -> int:
    """Records all differences as one interaction of this registry and resumes the link. Returns their number.

    The status then has the number, the hashes of this registry before and after, and whether both are equal after it.
    Raises: RemoteError, BrokenFeed, InvalidLink for a link that does not follow a log over HTTP, Diverged if others
    keep writing to this registry, and what `LinkWorkerContext.execute` raises.
    """
    check_comparable(link)
    with closing(context.connect(link)) as remote:
        applied = apply_differences(link, context, remote)
        with context.readers.background_view() as view:
            before = local_scope_hash(link, view, applied.before)
            after = scope_hashes(link, view, applied.after, remote, applied.snapshot)
    is_equal = after.here == after.there
    comparison_facts = {
        "verdict": EQUAL if is_equal else DIFFERS,
        "difference": None,
        "differences": 0 if is_equal else None,
        "compared": after._asdict(),
    }
    repair_fact = {"entities": applied.entities, "before": before, "after": after.here}
    compared_at = comparison_fact(applied.after, applied.snapshot.position, True)
    context.states.update_by(
        link.id,
        lambda status: {
            **facts_to_record(status, compared_at, comparison_facts),
            **{"repair": repair_fact, "diverged": None, "error": None, "failed": None},
        },
    )
    context.execute(link, ControlLink(link.xid, "repaired"))
    return applied.entities


def apply_differences(
    link: Link, context: LinkWorkerContext, remote: RemoteClient, check: DifferenceCheck | None = None
) -> AppliedDifferences:
    """Records the differences in a link's scope as one interaction, and moves the cursor to their position.

    The source is the other registry after all that is imported, or as it is now if the two logs have parted. For each
    entity that differs, the last event up to the snapshot's position is fetched.
    check: may refuse the differences.
    Raises: as `repair`, and what `check` raises.
    """
    for attempt in range(_MAX_ROUNDS):
        with context.readers.background_view() as view:
            # An import may go on meanwhile: what it records after this is refused below as a write since then, and
            # the snapshot includes what it has recorded before.
            before = view.log.head().last
            snapshot = imported_snapshot(link, view.log, remote, context.states.read(link.id).cursor)
            differences = list(find_differences(link, view, remote, snapshot))
            if check is not None:
                check(view, differences)
        try:
            if not link.scope.is_whole:  # if this changes the model, the differences are refused, and found again
                _extend_model(link, context, remote, snapshot.position)
            after = _record_differences(link, context, remote, snapshot, before, differences)
            break
        except Diverged:
            if attempt == _MAX_ROUNDS - 1:
                raise
    facts = {READ_STATE_KEY: read_state(snapshot.position, snapshot.state)}
    context.states.update(link.id, snapshot.position, **facts)
    return AppliedDifferences(snapshot, len(differences), before, after)


def _extend_model(link: Link, context: LinkWorkerContext, remote: RemoteClient, position: int) -> None:
    """Extends this registry's model with the types in a link's scope, as they were at a position of the other log."""
    with context.readers.view() as view:
        model = view.entity(xids.MODEL)
    own_model = loads(model.attributes)["modelsource"] if model else {}
    if (merged_model := merge_models(own_model, fetch_modelsource(remote, position), link.scope)) != own_model:
        context.execute(link, ReplaceModel(merged_model))


def _record_differences(
    link: Link,
    context: LinkWorkerContext,
    remote: RemoteClient,
    snapshot: RemoteSnapshot,
    position: int,
    differences: Sequence[HashDifference],
) -> int:
    """Records differences to this registry at a position. Returns the end of its log after that."""
    if not differences:
        return position
    last_events = [
        (difference.xid, _fetch_last_event(remote, difference.xid, snapshot.position)) for difference in differences
    ]
    existing_events = [last_event for _, last_event in last_events if last_event is not None]
    documents = {sha256: content for last_event in existing_events for sha256, content in last_event.documents.items()}
    deleted_xids = tuple(xid for xid, last_event in last_events if last_event is None)
    recorded = context.execute(
        link,
        Repair(link.xid, position, tuple(last_event.event for last_event in existing_events), deleted_xids, documents),
    )
    return recorded.position


def _fetch_last_event(remote: RemoteClient, xid: str, until: int) -> _LastEvent | None:
    """The last event of an entity; None if the entity never existed."""
    query = {"order": "desc", "limit": "1", "below": "false", "until": str(until)}
    path = "" if xid == xids.REGISTRY else quote(xid)
    try:
        revisions = request_json(remote, "GET", f"/-/history{path or '/'}", params=query)
    except RemoteError as error:
        if error.status != _NOT_FOUND:
            raise
        return None
    if not revisions:
        return None
    position = position_of(revisions[0] if isinstance(revisions, list) else None, f"GET /-/history{path or '/'}")
    feed = {"after": str(position - 1), "limit": "1", "documents": ""}
    with remote.stream("/-/log", NDJSON, feed) as answer:
        return _LastEvent(*parse_first_event(answer.lines))
