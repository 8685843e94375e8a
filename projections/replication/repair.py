"""Having a copy that became another one be what the registry is that it comes from, whatever was written here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Final, NamedTuple
from urllib.parse import quote

from domain import xid as xids
from domain.commands import ControlLink, Repair
from domain.events import EntityEvent
from domain.links.link import Link
from domain.refusals import Diverged
from projections.differing import Difference
from projections.entities.query import View
from projections.replication.comparing import Moment, differing, moment
from projections.replication.lines import single
from projections.replication.remote import Remote, RemoteError
from projections.replication.runner import Tools
from projections.replication.watching import EQUAL, check_comparable

#: How often it is begun anew where somebody writes meanwhile.
_TURNS: Final = 5
_NOWHERE: Final = 404
_NDJSON: Final = {"accept": "application/x-ndjson"}

#: Refuses some of what differs.
Check = Callable[[View, Sequence[Difference]], None]


class _Last(NamedTuple):
    """The last event of a stream of the other registry, and the documents that it refers to."""

    event: EntityEvent
    documents: dict[str, bytes]


def repair(link: Link, tools: Tools) -> int:
    """Records what differs as one interaction of this registry, and has the link go on from there; gives how many
    entities differed.

    The other registry counts as it was when the link was there last, or as it is now where the two logs part. Of each
    entity that differs it is asked for the last event by then.
    Raises: RemoteError, BrokenFeed, InvalidLink for one that follows no log over HTTP, Diverged where others keep
    writing here, and what `Tools.do` does.
    """
    check_comparable(link)
    with closing(tools.remote(link)) as remote:
        then, count = take_over(link, tools, remote, lambda: moment(remote, tools.states.read(link.id).cursor))
    tools.states.note(link.id, then.position, verdict=EQUAL, difference=None, diverged=None, error=None, failed=None)
    tools.do(link, ControlLink(link.xid, "repaired"))
    return count


def take_over(
    link: Link, tools: Tools, remote: Remote, when: Callable[[], Moment], check: Check | None = None
) -> tuple[Moment, int]:
    """Records what differs in a link's scope as one interaction of this registry; the moment of the other registry that
    counts, and how many entities differed.

    when: gives that moment. check: refuses what differs. Raises: as `repair`, and what `check` does.
    """
    for turn in range(_TURNS):
        then = when()
        with tools.readers.view() as view:
            position = view.log.head().last
            differences = list(differing(link, view, remote, then))
            if check is not None:
                check(view, differences)
        try:
            _record(link, tools, remote, then, position, differences)
            break
        except Diverged:
            if turn == _TURNS - 1:
                raise
    return then, len(differences)


def _record(
    link: Link, tools: Tools, remote: Remote, then: Moment, position: int, differences: Sequence[Difference]
) -> None:
    if not differences:
        return
    found = [(each.xid, _last(remote, each.xid, then.position)) for each in differences]
    lasts = [last for _, last in found if last is not None]
    documents = {sha256: content for last in lasts for sha256, content in last.documents.items()}
    gone = tuple(xid for xid, last in found if last is None)
    tools.do(link, Repair(link.xid, position, tuple(last.event for last in lasts), gone, documents))


def _last(remote: Remote, xid: str, until: int) -> _Last | None:
    """None where there never was such an entity."""
    query = {"order": "desc", "limit": "1", "below": "false", "until": str(until)}
    path = "" if xid == xids.REGISTRY else quote(xid)
    try:
        revisions = remote.ask("GET", f"/-/history{path or '/'}", params=query).json()
    except RemoteError as error:
        if error.status != _NOWHERE:
            raise
        return None
    if not revisions:
        return None
    feed = {"after": str(revisions[0]["position"] - 1), "limit": "1", "documents": ""}
    with remote.stream("/-/log", params=feed, headers=_NDJSON) as lines:
        return _Last(*single(lines))
