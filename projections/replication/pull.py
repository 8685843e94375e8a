"""Following the log of another registry over HTTP: whole interactions as soon as they are committed there."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from functools import partial
from typing import Final, TypeVar

from domain.links.foreign import Foreign
from domain.links.link import Link
from projections.replication.intake import Intake
from projections.replication.lines import Parser, interactions
from projections.replication.remote import Remote
from projections.replication.runner import Tools
from projections.replication.watching import watching

#: Seconds after which a stream is let go of as soon as something comes, so that both registries are compared again;
#: and between looks at where the other log ends.
WHILE: Final = 20
LOOK: Final = 2
_LINES: Final = {"accept": "application/x-ndjson"}
_STREAM: Final = {"accept": "text/event-stream"}
_DATA: Final = b"data: "

F = TypeVar("F")


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
                fetch(remote, intake, self._tools)
                watch.reached(intake)
                follow(remote, intake, self._tools, partial(watch.look, intake))


def fetch(remote: Remote, intake: Intake, tools: Tools) -> None:
    """Takes in all that the other registry has by now. Raises: RemoteError, BrokenFeed, Diverged."""
    with remote.stream("/-/log", params=_query(intake), headers=_LINES) as lines:
        intake.take(_until(tools, interactions(lines)))


def follow(remote: Remote, intake: Intake, tools: Tools, look: Callable[[], None]) -> None:
    """Takes in what comes, as soon as it does, for a while. look: is called now and then as long as anything comes.

    One stream, which costs the other registry little: all that follow it there are told at once.
    Raises: RemoteError, BrokenFeed, Diverged.
    """
    with remote.stream("/-/log", params=_query(intake), headers=_STREAM) as lines:
        intake.take(_until(tools, _streamed(lines, look)))


def _query(intake: Intake) -> dict[str, str]:
    return {"after": str(intake.cursor), "documents": ""}


def _until(tools: Tools, found: Iterator[F]) -> Iterator[F]:
    for each in found:
        if tools.stopping.is_set():
            return
        yield each


def _streamed(lines: Iterable[bytes | None], look: Callable[[], None]) -> Iterator[Foreign | None]:
    """The interactions among server-sent events, None where what came is not to wait for more; ends after a while."""
    parser, began = Parser(), time.monotonic()
    looked = began
    for line in lines:
        if line is None:
            yield None
            now = time.monotonic()
            if now - began > WHILE:
                return
            if now - looked > LOOK:
                look()
                looked = now
        elif line.startswith(_DATA) and (found := parser.feed(line[len(_DATA) :])) is not None:
            yield found
