"""Makes a copy that has diverged equal to its source again, overwriting local changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Final, NamedTuple
from urllib.parse import quote

from annals.domain.decisions.commands import ControlLink, Repair
from annals.domain.errors.http_errors import Diverged
from annals.domain.registry.events import EntityEvent
from annals.domain.replication.link import Link
from annals.domain.values import xid as xids
from annals.projections.audit.hash_comparison import HashDifference
from annals.projections.entities.view import View
from annals.projections.replication.link_worker import LinkWorkerContext
from annals.projections.replication.log.comparison import (
    ComparedHashes,
    RemoteSnapshot,
    find_differences,
    remote_snapshot,
    scope_hashes,
)
from annals.projections.replication.log.ingest import READ_STATE_KEY, read_state
from annals.projections.replication.log.link_status import COMPARED_AT_KEY, EQUAL, check_comparable, comparison_fact
from annals.projections.replication.log.log_lines import NDJSON, parse_first_event
from annals.projections.replication.remote.json_answers import position_of, request_json
from annals.projections.replication.remote.remote_client import RemoteClient, RemoteError

#: Attempts to repair while others write to this registry.
_MAX_ROUNDS: Final = 5
_NOT_FOUND: Final = 404

#: Raises an error if some of the differences must not be overwritten.
DifferenceCheck = Callable[[View, Sequence[HashDifference]], None]


class _LastEvent(NamedTuple):
    """The last event of a stream of the other registry, with the documents that it refers to."""

    event: EntityEvent
    documents: dict[str, bytes]


def repair(link: Link, context: LinkWorkerContext) -> int:
    """Records all differences as one interaction of this registry and resumes the link. Returns their number.

    The status then has the number, and the hashes of this registry before and after.

    The source is the other registry at the link's cursor, or as it is now if the two logs have parted. For each entity
    that differs, the last event up to the snapshot's position is fetched.
    Raises: RemoteError, BrokenFeed, InvalidLink for a link that does not follow a log over HTTP, Diverged if others
    keep writing to this registry, and what `LinkWorkerContext.execute` raises.
    """
    check_comparable(link)
    with closing(context.connect(link)) as remote:

        def take_snapshot() -> RemoteSnapshot:
            return remote_snapshot(remote, context.states.read(link.id).cursor)

        _, before = _compared_hashes(link, context, remote, take_snapshot())
        snapshot, count = apply_differences(link, context, remote, take_snapshot)
        position, after = _compared_hashes(link, context, remote, snapshot)
    repair_fact = {"entities": count, "before": before.here, "after": after.here}
    facts = {"verdict": EQUAL, "differences": 0, "compared": after._asdict(), "repair": repair_fact}
    facts[COMPARED_AT_KEY] = comparison_fact(position, snapshot.position, True)
    facts[READ_STATE_KEY] = read_state(snapshot.position, snapshot.state)
    context.states.update(link.id, snapshot.position, **facts, difference=None, diverged=None, error=None, failed=None)
    context.execute(link, ControlLink(link.xid, "repaired"))
    return count


def _compared_hashes(
    link: Link, context: LinkWorkerContext, remote: RemoteClient, snapshot: RemoteSnapshot
) -> tuple[int, ComparedHashes]:
    """The end of this registry's log, and the hashes of both registries there. Raises: RemoteError."""
    with context.readers.background_view() as view:
        return view.log.head().last, scope_hashes(link, view, remote, snapshot)


def apply_differences(
    link: Link,
    context: LinkWorkerContext,
    remote: RemoteClient,
    take_snapshot: Callable[[], RemoteSnapshot],
    check: DifferenceCheck | None = None,
) -> tuple[RemoteSnapshot, int]:
    """Records the differences in a link's scope as one interaction. Returns the snapshot used and their number.

    take_snapshot: returns the snapshot of the other registry to use.
    check: may refuse the differences.
    Raises: as `repair`, and what `check` raises.
    """
    for attempt in range(_MAX_ROUNDS):
        snapshot = take_snapshot()
        with context.readers.background_view() as view:
            position = view.log.head().last
            differences = list(find_differences(link, view, remote, snapshot))
            if check is not None:
                check(view, differences)
        try:
            _record_differences(link, context, remote, snapshot, position, differences)
            break
        except Diverged:
            if attempt == _MAX_ROUNDS - 1:
                raise
    return snapshot, len(differences)


def _record_differences(
    link: Link,
    context: LinkWorkerContext,
    remote: RemoteClient,
    snapshot: RemoteSnapshot,
    position: int,
    differences: Sequence[HashDifference],
) -> None:
    if not differences:
        return
    last_events = [
        (difference.xid, _fetch_last_event(remote, difference.xid, snapshot.position)) for difference in differences
    ]
    existing_events = [last_event for _, last_event in last_events if last_event is not None]
    documents = {sha256: content for last_event in existing_events for sha256, content in last_event.documents.items()}
    deleted_xids = tuple(xid for xid, last_event in last_events if last_event is None)
    context.execute(
        link,
        Repair(link.xid, position, tuple(last_event.event for last_event in existing_events), deleted_xids, documents),
    )


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
