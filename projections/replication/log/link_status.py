"""The status of a link that follows a log: where the other log ends, and whether both registries are equal."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from itertools import islice
from typing import Any, Final

from annals.domain.errors.http_errors import Diverged, InvalidLink
from annals.domain.replication.link import LOG, PUSH, Link
from annals.projections.audit.hash_comparison import HashDifference
from annals.projections.entities.view import View
from annals.projections.replication.cycles import check_cycle
from annals.projections.replication.link_worker import LinkWorkerContext
from annals.projections.replication.log.advanced_cursor import imported_snapshot
from annals.projections.replication.log.comparison import (
    RemoteSnapshot,
    find_differences,
    remote_snapshot,
    scope_hashes,
)
from annals.projections.replication.log.ingest import LogIngester
from annals.projections.replication.log.log_lines import BrokenFeed
from annals.projections.replication.remote.remote_client import RemoteClient, RemoteError

EQUAL: Final = "equal"
DIFFERS: Final = "differs"
UNKNOWN: Final = "unknown"
#: The fact with the log positions of both registries at which they were compared last, and whether that counted.
COMPARED_AT_KEY: Final = "comparedat"
#: Facts that take back the result of a comparison.
NOT_COMPARED: Final = dict.fromkeys(("verdict", "difference", "differences", "compared", "checked", COMPARED_AT_KEY))
#: The most differences that are counted.
MAX_COUNTED: Final = 10_000
#: Seconds between two status writes that differ only in their time.
_MIN_UPDATE_SECONDS: Final = 5.0


class LinkStatusRecorder:
    """Records the status of one link worker during its imports."""

    def __init__(self, link: Link, context: LinkWorkerContext, remote: RemoteClient) -> None:
        self._link = link
        self._context = context
        self._remote = remote
        self._head: RemoteSnapshot | None = None
        self._last_status: tuple[float, object] = (0.0, None)
        self._compared_at: float | None = None

    def note_head(self) -> None:
        """Records the end of the other log before an import. Raises: RemoteError."""
        self._head = remote_snapshot(self._remote)
        self._write_status(None)

    def note_progress(self, ingester: LogIngester) -> None:
        """Records the end of the other log and the cursor during an import. Raises: RemoteError."""
        self._head = remote_snapshot(self._remote)
        self._write_status(ingester.cursor)

    def note_caught_up(self, ingester: LogIngester) -> None:
        """Records that the import has reached the end that `note_head` saw. Compares the registries when it is time.

        Raises: RemoteError, BrokenFeed, InvalidLink if the link has become part of a cycle, Diverged if they differ.
        """
        if self._context.stopping.is_set():
            return
        self._write_status(ingester.cursor, error=None, failed=None, diverged=None)
        check_cycle(self._link, self._context, self._remote)
        if self._compared_at is None or time.monotonic() - self._compared_at >= self._link.interval:
            verdict = compare_registries(self._link, self._context, self._remote)
            self._compared_at = time.monotonic()
            if verdict == DIFFERS:
                parts = "the registry differs" if self._link.scope.is_whole else "the Groups of the link differ"
                detail = f"{parts} from {self._link.url}, so it imports nothing more; a repair makes both equal"
                raise Diverged(self._link.xid, error_detail=detail)

    def _write_status(self, cursor: int | None, **facts: Any) -> None:
        assert self._head is not None, "a look comes first"
        now, status = time.time(), (self._head, cursor)
        if status == self._last_status[1] and now - self._last_status[0] < _MIN_UPDATE_SECONDS:
            return
        self._last_status = now, status
        head = {"position": self._head.position, "time": self._head.time}
        self._context.states.update(self._link.id, cursor, head=head, lastcontact=now, **facts)


@contextmanager
def record_status(link: Link, context: LinkWorkerContext, remote: RemoteClient) -> Iterator[LinkStatusRecorder]:
    """A status recorder. If the registries have diverged, it records the first difference before re-raising.

    Raises: RemoteError, InvalidLink for a link in a cycle.
    """
    try:
        check_cycle(link, context, remote)
        yield LinkStatusRecorder(link, context, remote)
    except Diverged:
        with suppress(RemoteError, BrokenFeed):
            compare_registries(link, context, remote)
        raise


def compare_registries(
    link: Link, context: LinkWorkerContext, remote: RemoteClient | None = None, *, counts: bool = False
) -> str:
    """Compares both registries after what is imported, records the verdict and returns it.

    remote: an open client for the other registry, if there is one. counts: also records how many entities differ, up to
    MAX_COUNTED, and the hashes of both; otherwise only the first difference is found, in few requests.
    The verdict is not recorded if this registry was compared or repaired in a later state in the meantime.
    Raises: RemoteError, BrokenFeed, InvalidLink for a link that does not follow a log over HTTP.
    """
    check_comparable(link)
    if remote is None:
        with closing(context.connect(link)) as opened:
            return compare_registries(link, context, opened, counts=counts)
    cursor = context.states.read(link.id).cursor  # before the view, which so has everything up to the cursor
    with context.readers.background_view() as view:
        position = view.log.head().last
        snapshot, first_difference, found = _search_differences(link, view, remote, cursor)
        others = sum(1 for _ in islice(found, MAX_COUNTED - 1)) if counts else 0
        has_hashes = counts or link.scope.is_whole
        compared = scope_hashes(link, view, position, remote, snapshot)._asdict() if has_hashes else None
    compared_at = comparison_fact(position, snapshot.position, counts)
    verdict, difference_fact = (DIFFERS, first_difference._asdict()) if first_difference else (EQUAL, None)
    differences = 0 if first_difference is None else 1 + others if counts else None
    facts = {"verdict": verdict, "difference": difference_fact, "differences": differences, "compared": compared}
    context.states.update_by(link.id, lambda status: facts_to_record(status, compared_at, facts))
    return verdict


def _search_differences(
    link: Link, view: View, remote: RemoteClient, cursor: int | None
) -> tuple[RemoteSnapshot, HashDifference | None, Iterator[HashDifference]]:
    """The compared snapshot of the other registry, the first difference, and an iterator of the others.

    More than the cursor says may be imported. Finding that out takes a request, so it is done only after a difference.
    """
    snapshot = remote_snapshot(remote, cursor)
    found = find_differences(link, view, remote, snapshot)
    first_difference = next(found, None)
    if first_difference is not None:
        advanced = imported_snapshot(link, view.log, remote, cursor, stops_at_missing=True)
        if advanced.position != snapshot.position:
            snapshot, found = advanced, find_differences(link, view, remote, advanced)
            first_difference = next(found, None)
    return snapshot, first_difference, found


def comparison_fact(local_position: int, remote_position: int, is_counted: bool) -> dict[str, Any]:
    """The fact under COMPARED_AT_KEY, about the ends of both logs."""
    return {"local": local_position, "remote": remote_position, "counted": is_counted}


def facts_to_record(
    status: Mapping[str, Any], compared_at: Mapping[str, Any], facts: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The facts of a comparison; none of an outdated one, and only its time if the same was compared and counted."""
    recorded_at = status.get(COMPARED_AT_KEY)
    if recorded_at is not None and recorded_at["local"] > compared_at["local"]:
        return {}
    if recorded_at == {**compared_at, "counted": True} and not compared_at["counted"]:
        return {"checked": time.time()}
    return {**facts, "checked": time.time(), COMPARED_AT_KEY: compared_at}


def check_comparable(link: Link) -> None:
    """Raises: InvalidLink for a link whose other registry offers no hashes and events."""
    if link.dialect == LOG and link.mode == PUSH:
        detail = (
            f'the registry that receives the log compares and repairs it: use the link "{link.remote}" of {link.url}'
        )
        raise InvalidLink.at_pointer("incomparable", "/mode", detail)
    if link.dialect != LOG or not link.follows_log:
        raise InvalidLink.at_pointer(
            "incomparable", "/dialect", "only links that follow a log over HTTP can be compared and repaired"
        )
