"""Following the log of another registry over HTTP: whole interactions as soon as they are committed there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Final

from domain.links.foreign import Foreign
from domain.links.link import Link
from projections.replication.intake import Intake
from projections.replication.lines import interactions
from projections.replication.remote import Remote
from projections.replication.runner import Tools
from projections.replication.watching import watching

#: Seconds that the other registry waits where there is nothing new.
WAIT: Final = 2
_NDJSON: Final = {"accept": "application/x-ndjson"}


class LogPull:
    """See the module."""

    def __init__(self, link: Link, tools: Tools) -> None:
        self._link = link
        self._tools = tools

    def run(self) -> None:
        """See `Runner`."""
        with (
            closing(self._tools.remote(self._link)) as remote,
            watching(self._link, self._tools, remote) as watch,
        ):
            intake = Intake(self._link, self._tools, remote)
            while not self._tools.stopping.is_set():
                watch.look(intake)
                fetch(remote, intake, self._tools, wait=WAIT)
                watch.reached(intake)


def fetch(remote: Remote, intake: Intake, tools: Tools, *, wait: float = 0) -> None:
    """Takes in all that the other registry has by now. wait: seconds to wait for something where there is nothing.

    Raises: RemoteError, BrokenFeed, Diverged.
    """
    query = {"after": str(intake.cursor), "documents": "", "wait": str(wait)}
    with remote.stream("/-/log", params=query, headers=_NDJSON) as lines:
        intake.take(_until(tools, interactions(lines)))


def _until(tools: Tools, found: Iterator[Foreign]) -> Iterator[Foreign]:
    for each in found:
        if tools.stopping.is_set():
            return
        yield each
