"""Taking in what another registry pushes of its log."""

from __future__ import annotations

import time
from collections.abc import Iterable

from domain.links.link import RECEIVE, Link
from domain.problems import Problem
from domain.refusals import Diverged, LogGap, NotReceiving
from projections.replication.intake import Intake
from projections.replication.lines import interactions
from projections.replication.runner import Tools


def receive(link: Link, tools: Tools, after: int, lines: Iterable[bytes]) -> int:
    """Takes in a piece of the other log; gives the position there up to which all is here.

    after: position beyond which the piece begins. What is here already is passed over, so a piece may come twice, or
    behind one that came later. lines: as a feed of the log with documents has them; what comes before one that breaks
    off is taken in. Raises: NotReceiving, LogGap, BrokenFeed, Diverged, and what the lines raise.
    """
    if link.mode != RECEIVE or link.promoted or not link.enabled:
        raise NotReceiving(link.xid)
    intake = Intake(link, tools)
    if after > intake.cursor:
        raise LogGap(link.xid, after=after, position=intake.cursor, extensions={"position": intake.cursor})
    try:
        intake.take(each for each in interactions(lines) if each.last > intake.cursor)
    except Problem as problem:
        diverged = True if isinstance(problem, Diverged) else None
        tools.states.note(link.id, error=problem.text(), failed=time.time(), diverged=diverged)
        raise
    tools.states.note(link.id, lastcontact=time.time(), error=None, failed=None, diverged=None)
    return intake.cursor
