"""A link to a log whose scope has become wider: what newly belongs to it comes before the link goes on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from commands.mapper import EventMapper
from domain import xid as xids
from domain.commands import ReplaceModel
from domain.events import EntityDeleted
from domain.jsontext import loads
from domain.links.link import Link
from domain.links.models import merged
from domain.links.scope import Scope
from domain.refusals import Diverged
from projections.differing import Difference
from projections.entities.query import View
from projections.log import Log
from projections.replication.comparing import moment
from projections.replication.remote import Remote, RemoteError
from projections.replication.repair import take_over
from projections.replication.runner import Tools

#: The fact that says as of which of its events all is here that is in a link's scope, up to the cursor.
COMPLETE: Final = "complete"
#: Changes of a link that are looked through at most.
_MOST: Final = 1000
_UNKNOWN: Final = 400
_MAPPER: Final = EventMapper()


def widen(link: Link, tools: Tools, remote: Remote) -> None:
    """Brings the Groups that a link's scope names since it was changed, as they were at the link's cursor.

    Their interactions up to there are here already, for other Groups, or will never come again; so they come in one
    interaction of this registry. What has left the scope stays, and may be written.
    Raises: RemoteError, BrokenFeed, Diverged where a Group of this registry's own is in the way.
    """
    known = tools.states.read(link.id)
    complete = known.facts.get(COMPLETE)
    if complete == link.position:
        return
    if complete is not None and known.cursor and not link.scope.whole:
        scopes = _scopes(link, complete, tools.readers.quick().log)
        if groups := frozenset(group for group in link.scope.groups if not all(each.has(group) for each in scopes)):
            _bring(replace(link, scope=Scope(groups)), link, tools, remote)
    tools.states.note(link.id, None, **{COMPLETE: link.position})


def _scopes(link: Link, since: int, log: Log) -> list[Scope]:
    """All scopes that a link has had from one of its events on: each of them may have left something out."""
    events = (_MAPPER.of_row(row) for row in log.latest(xids.stream(link.xid), _MOST) if row.position >= since)
    return [Scope.of(event.attributes["scope"]) for event in events if not isinstance(event, EntityDeleted)]


def _bring(part: Link, link: Link, tools: Tools, remote: Remote) -> None:
    """part: the link with those Groups alone."""
    then = moment(remote, tools.states.read(link.id).cursor)
    _take_model(part, tools, remote, then.position)

    def check(view: View, found: Sequence[Difference]) -> None:
        for each in found:
            if each.here is not None and not _came(each.xid, link, view, remote):
                detail = f"{each.xid} of the wider scope is here already and is not what it is at {link.url}; delete it"
                raise Diverged(link.xid, error_detail=f"{detail} or repair the link", extensions={"xid": each.xid})

    take_over(part, tools, remote, lambda: then, check)


def _take_model(part: Link, tools: Tools, remote: Remote, position: int) -> None:
    """Has this registry's model have the types of Groups as they were there."""
    there = remote.ask("GET", "/modelsource", params={"asof": str(position)}).json()
    with tools.readers.view() as view:
        model = view.entity(xids.MODEL)
    own = loads(model.attributes)["modelsource"] if model else {}
    if (wanted := merged(own, there, part.scope)) != own:
        tools.do(part, ReplaceModel(wanted))


def _came(xid: str, link: Link, view: View, remote: Remote) -> bool:
    """Whether an entity is as it came over the link, at some time."""
    (last,) = view.log.latest(xids.stream(xid), 1)
    (interaction,) = view.log.interactions(last.position - 1, 1)
    if interaction.caller == f"links/{link.id}":
        return True
    try:
        remote.ask("GET", "/-/log/head", params={"asof": interaction.xregcorrelationid})
    except RemoteError as error:
        if error.status != _UNKNOWN:
            raise
        return False
    return True
