"""Pushes this registry's log to another registry, which imports it through its own link.

The log is sent in batches of whole interactions. The other registry confirms each with the position up to which it has
everything. Only the other registry knows that position, so the push asks for it at the start, now and then, and after a
batch that does not fit.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from itertools import chain
from typing import Any, Final

from annals.domain.errors.http_errors import Diverged
from annals.domain.replication.link import COLLECTION, Link
from annals.domain.values import xid as xids
from annals.projections.events.feed import PAGE_SIZE, interactions
from annals.projections.log.json_lines import log_lines
from annals.projections.log.reader import Log
from annals.projections.replication.cycles import check_cycle
from annals.projections.replication.link_worker import LinkWorkerContext
from annals.projections.replication.log.log_lines import NDJSON
from annals.projections.replication.remote.json_answers import position_of, request_object
from annals.projections.replication.remote.remote_client import RemoteClient, RemoteError

#: Largest number of events in a batch, unless one interaction has more.
PIECE_EVENTS: Final = 5000
#: Largest part of an upload that is sent at once: each part that has been sent shows that the upload makes progress.
PART_BYTES: Final = 1 << 20
#: Seconds between checks for commits of other processes.
POLL_SECONDS: Final = 0.5
#: How often in sequence a batch may not fit, while the other registry gets no further.
MAX_GAPS: Final = 3


class LogPush:
    """Runs a link that pushes a log over HTTP."""

    def __init__(self, link: Link, context: LinkWorkerContext) -> None:
        self._link = link
        self._context = context
        self._path = f"{COLLECTION}/{link.remote}"

    def run(self) -> None:
        """See `LinkWorker`. Raises: RemoteError, Diverged."""
        furthest_position, gaps = -1, 0
        with closing(self._context.connect(self._link)) as remote:
            while not self._context.stopping.is_set():
                remote_position = self._fetch_position(remote)
                gaps = 0 if remote_position > furthest_position else gaps
                furthest_position = max(furthest_position, remote_position)
                try:
                    self._push(remote, remote_position)
                    gaps = 0
                except RemoteError as error:
                    gaps += 1
                    if error.status != 409 or "position" not in error.problem or gaps >= MAX_GAPS:
                        raise

    def _fetch_position(self, remote: RemoteClient) -> int:
        """The position up to which the other registry has everything. Raises: RemoteError, Diverged, InvalidLink."""
        check_cycle(self._link, self._context, remote)
        status = self._fetch_link(remote).get("status")
        remote_position = position_of(status, f"GET {self._path}")
        if remote_position > (end := self._log().head().last):
            raise self._diverged(f"it has received the log up to position {remote_position}, which ends at {end} here")
        if (end := self._log().interaction_at(remote_position).last) != remote_position:
            raise self._diverged(
                f"it has received another log: an interaction ends at {remote_position} there, at {end} here"
            )
        if remote_position:
            self._post_log(remote, remote_position, iter(()))  # nothing new: the other registry compares the states
        self._note_confirmed(remote_position)
        return remote_position

    def _fetch_link(self, remote: RemoteClient) -> dict[str, Any]:
        """The link of the other registry that receives. Raises: RemoteError."""
        try:
            return request_object(remote, "GET", self._path)
        except RemoteError as error:
            if error.status != 404:
                raise
            advice = f'create the link "{self._link.remote}" there, with the mode "receive"'
            raise RemoteError(f"{str(error).removesuffix('.')}; {advice}", error.status, error.problem) from None

    def _diverged(self, cause: str) -> Diverged:
        advice = f'if its link "{self._link.remote}" is for this registry, repair it there'
        detail = f"{self._link.url} has other states than this registry: {cause}; {advice}"
        return Diverged(self._link.xid, error_detail=detail)

    def _push(self, remote: RemoteClient, remote_position: int) -> None:
        """Sends everything after a position, then new interactions, until it is time to ask again."""
        after, deadline = remote_position, time.monotonic() + self._link.interval
        while not self._context.stopping.is_set() and time.monotonic() < deadline:
            end = self._batch_end(after)
            if end is None:
                self._context.wait(POLL_SECONDS)
            else:
                remote_position, after = self._send_piece(remote, remote_position, after, end), end

    def _batch_end(self, after: int) -> int | None:
        """The end of the next batch, which is the end of an interaction; None at the end of the log."""
        log_interactions = self._log().interactions(after, PAGE_SIZE)
        fitting_ends = [
            interaction.last for interaction in log_interactions if interaction.last <= after + PIECE_EVENTS
        ]
        return (fitting_ends or [log_interactions[0].last])[-1] if log_interactions else None

    def _send_piece(self, remote: RemoteClient, remote_position: int, after: int, end: int) -> int:
        """Sends a batch, if it has any event of the tree. The position up to which the other registry has everything.

        remote_position: that position before.
        Raises: RemoteError, also if the other registry has no more than before.
        """
        lines = self._chunks(after, end)
        if (first_line := next(lines, None)) is None:
            self._context.states.update(self._link.id, end)  # nothing in this range needs a confirmation
            return remote_position
        new_position = self._post_log(remote, remote_position, chain((first_line,), lines))
        if new_position <= remote_position:
            raise RemoteError(f"POST {self._path}/log answers with the position {new_position}, so it took nothing")
        self._note_confirmed(end)
        return new_position

    def _post_log(self, remote: RemoteClient, remote_position: int, content: Iterator[bytes]) -> int:
        """Sends lines that follow a position of this log. The position up to which the other registry has everything.

        Raises: RemoteError; Diverged if the other registry had another state at that position.
        """
        state = {"state": self._log().interaction_at(remote_position).state.hex()} if remote_position else {}
        params = {"after": str(remote_position), **state}
        options: dict[str, Any] = {"params": params, "headers": {"content-type": NDJSON}}
        try:
            response = request_object(remote, "POST", f"{self._path}/log", content=content, **options)
        except RemoteError as error:
            if str(error.problem.get("type")).endswith(f"#{Diverged.name}"):
                raise self._diverged(str(error).removesuffix(".")) from None
            raise
        return position_of(response, f"POST {self._path}/log")

    def _chunks(self, after: int, end: int) -> Iterator[bytes]:
        """The interactions in a range of the log, without events outside the tree."""
        for interaction, rows in interactions(self._log, after, end):
            tree_rows = (row for row in rows if not xids.is_outside_tree(row.stream))
            for _, items in log_lines(interaction, tree_rows, self._document):
                lines = b"".join(item.data + b"\n" for item in items)
                for start in range(0, len(lines), PART_BYTES):
                    yield lines[start : start + PART_BYTES]

    def _log(self) -> Log:
        return self._context.readers.quick_view().log

    def _document(self, sha256: str) -> bytes | None:
        return self._log().document(sha256)

    def _note_confirmed(self, position: int) -> None:
        """Records a successful answer, which confirms everything up to a position."""
        cleared_facts = dict.fromkeys(("error", "failed", "diverged"))
        self._context.states.update(self._link.id, position, lastcontact=time.time(), **cleared_facts)
