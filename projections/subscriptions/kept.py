"""What of a line is to be in the tables, and what is there already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING

from projections.subscriptions.attempt import LIVE, REPLAY
from projections.subscriptions.facts import DeadLetter
from projections.subscriptions.lane import Pending
from projections.subscriptions.state import Page, Stored

if TYPE_CHECKING:
    from projections.subscriptions.line import Line


class Kept:
    """letters: dead letters that are to be kept, or by sequence alone to be forgotten. stored: what the table has."""

    def __init__(self, line: Line, stored: Mapping[int, Sequence[Pending]]) -> None:
        self.letters: list[DeadLetter | int] = []
        self._line = line
        self._stored: Stored = {(number, each.sequence): each for number in stored for each in stored[number]}
        self._unkept: dict[str, None] = {}

    @property
    def unkept(self) -> Set[str]:
        """Keys that wait until the end of one of their events is written."""
        return self._unkept.keys()

    def given_up(self, key: str) -> None:
        """Says that an event of a key never arrives: the next one waits until that is written (SUB-811).

        Else a crash would have the first one tried again, after those that it was to come before.
        """
        self._unkept[key] = None

    def page(self) -> Page:
        """What is to be written."""
        line = self._line
        self._note()
        pending = {(number, each.sequence): each for number, lane in line.lanes.items() for each in lane.pending()}
        # An attempt that runs is a retry still, until it is known what became of it.
        waits = any(lane.retrying for lane in line.lanes.values())
        line.facts.retrying = waits or any(each.attempts for each in pending.values())
        return Page(
            id=line.id,
            revision=line.revision,
            position=line.position,
            cursor=line.cursor,
            facts=line.facts.json(),
            pending=pending,
            stored=self._stored,
            dead=tuple(self.letters),
            callbacks=tuple(line.consents.callbacks),
            keys=tuple(self._unkept),
        )

    def written(self, page: Page) -> None:
        """Says that a page is in the tables."""
        self._stored = page.pending
        del self.letters[: len(page.dead)]
        self._line.consents.written(len(page.callbacks))
        if page.keys:
            self._unkept = {key: None for key in self._unkept if key not in page.keys}
            self._line.pump()

    def _note(self) -> None:
        """Puts into the facts what follows from the lanes by now."""
        line, facts = self._line, self._line.facts
        facts.reach = line.lanes[LIVE].reach
        facts.pending = line.pending
        facts.waiting = line.consents.awaited
        later = [at for lane in line.lanes.values() if (at := lane.next) is not None]
        facts.nextattempt = max(min(later, default=0.0), facts.hold if facts.hold > line.now() else 0.0)
        if (replay := line.lanes.get(REPLAY)) is not None and facts.replay:
            facts.replay |= {"cursor": replay.cursor, "reach": replay.reach}
