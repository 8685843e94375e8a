"""The requests and responses of clients of several servers, and a check that one log explains all of them.

Clients write and read a few Groups through any server, and send the last position that they received with each request.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from annals.domain.registry.events import EntityEvent

#: The collection of the Groups.
GROUPS: Final = "/schemagroups/"
#: The state of a Group that does not exist.
MISSING: Final = (0, "")


class Seen(NamedTuple):
    """One request with its response.

    client: its number. path: of the Group. name: the written name, which is unique, or the name that was read. epoch:
    in the response, 0 if the Group did not exist. waitfor: the last position that the client received before.
    position: of the response. began, ended: by a clock that all clients share. is_acknowledged: False for a write
    whose response was lost.
    """

    client: int
    path: str
    is_write: bool
    name: str
    epoch: int
    waitfor: int
    position: int
    began: float
    ended: float
    is_acknowledged: bool = True


def contradictions(history: Sequence[Seen], log: Sequence[EntityEvent]) -> Iterator[str]:
    """What a log does not explain; empty if the servers kept their guarantees. log: all events, in order."""
    states = _States(log)
    yield from _lost_or_invented_writes(history, states)
    yield from _wrong_reads(history, states)
    yield from _steps_back(history)
    yield from _missed_acknowledgements(history)


class _States:
    """The states of each Group: the positions of changes, and the epoch and name from each position on."""

    def __init__(self, log: Sequence[EntityEvent]) -> None:
        self.positions: dict[str, list[int]] = defaultdict(lambda: [0])
        self.states: dict[str, list[tuple[int, str]]] = defaultdict(lambda: [MISSING])
        for position, event in enumerate(log, 1):
            if not event.xid.startswith(GROUPS):
                continue
            self.positions[event.xid].append(position)
            self.states[event.xid].append((event.attributes["epoch"], event.attributes.get("name", "")))

    def at(self, path: str, position: int) -> tuple[int, str]:
        return self.states[path][bisect_right(self.positions[path], position) - 1]


def _lost_or_invented_writes(history: Sequence[Seen], states: _States) -> Iterator[str]:
    """Each acknowledged write is in the log once, each lost one at most once, no other; epochs increase by one."""
    sent = {(seen.path, seen.name): seen for seen in history if seen.is_write}
    for path, found in states.states.items():
        if [epoch for epoch, _ in found] != list(range(len(found))):
            yield f"the epochs of {path} are not counted one by one: {found}"
        names = [name for _, name in found[1:]]
        if len(set(names)) != len(names):
            yield f"a write of {path} is in the log twice"
        yield from (f"{path} has a name that nobody wrote: {name}" for name in names if (path, name) not in sent)
    for seen in sent.values():
        if seen.is_acknowledged and (seen.epoch, seen.name) not in states.states[seen.path]:
            yield f"an acknowledged write is lost: {seen}"


def _wrong_reads(history: Sequence[Seen], states: _States) -> Iterator[str]:
    """A response has the state at exactly its position, which is not before the requested position."""
    for seen in history:
        if seen.is_acknowledged and states.at(seen.path, seen.position) != (seen.epoch, seen.name):
            yield f"at position {seen.position}, the log has {states.at(seen.path, seen.position)}: {seen}"
        if seen.is_acknowledged and seen.position < seen.waitfor:
            yield f"the answer is older than the position that it waits for: {seen}"


def _steps_back(history: Sequence[Seen]) -> Iterator[str]:
    """The positions that one client receives never decrease, whichever servers it uses."""
    last: dict[int, Seen] = {}
    for seen in history:
        if not seen.is_acknowledged:
            continue
        if (before := last.get(seen.client)) and seen.position < before.position:
            yield f"after {before} came {seen}"
        last[seen.client] = seen


def _missed_acknowledgements(history: Sequence[Seen]) -> Iterator[str]:
    """A request that begins after a write was acknowledged sees the write, even without a position to wait for."""
    answered = sorted((seen.ended, seen.position) for seen in history if seen.is_write and seen.is_acknowledged)
    ends, newest = [ended for ended, _ in answered], [0]
    for _, position in answered:
        newest.append(max(newest[-1], position))
    for seen in history:
        known = newest[bisect_right(ends, seen.began)]
        if seen.is_acknowledged and seen.position < known:
            yield f"position {known} was acknowledged before: {seen}"
