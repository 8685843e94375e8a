"""Appends interactions of another registry's log to this one in batches, with their own ids, times and callers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from commands.store import hashes, sql, tables
from commands.store.append import InteractionBatch
from commands.store.clock import format_time
from commands.store.hashes import Interaction
from commands.store.log import LogEnd, Recorded, WriteTransaction, storable_text
from domain.compat.legacy_apis import document_hash
from domain.decisions.commands import Follow, ReplaceModel
from domain.decisions.replication.append_foreign import local_events, required_model_change
from domain.errors.http_errors import Diverged, NotReceiving
from domain.errors.problems import NotFound
from domain.registry.events import EntityEvent
from domain.replication.foreign_interaction import ForeignInteraction
from domain.replication.link import Link

#: Records a change of this registry's model.
RecordModel = Callable[[ReplaceModel], Recorded]

_KNOWN: Final = "SELECT folded FROM interaction WHERE folded {among}"
_STREAMS: Final = (
    "SELECT l.stream FROM interaction i JOIN log l ON l.position >= i.first AND l.position <= i.last WHERE i.folded = ?"
)


def append_foreign(tx: WriteTransaction, command: Follow, define: RecordModel) -> Recorded:
    """Records the new interactions that are in the link's scope, as one change: all of them or none.

    define: records a change of the model on behalf of the link.
    Raises: NotFound when the link does not exist, NotReceiving when it is disabled or promoted, Diverged when the
    interactions do not continue the state of this registry; any error that refuses the model they need.
    """
    link = next((each for each in tx.world.links if each.xid == command.xid), None)
    if link is None:
        raise NotFound(command.xid)
    if link.promoted or not link.enabled or not link.follows_log:
        raise NotReceiving(command.xid)
    several = InteractionBatch(tx.world, tx.log_end.chain, tx.log_end.state)
    recorded: list[tuple[int, EntityEvent]] = []
    documents: dict[str, bytes] = {}
    for foreign in _new_interactions(tx, command.interactions, link):
        if (model := required_model_change(foreign, link, tx.world)) is not None:
            several.write(tx.connection)  # the model change queries all entities of a type
            recorded += define(model).events
            several = InteractionBatch(tx.world, tx.log_end.chain, tx.log_end.state)
        events = local_events(foreign, link, tx.world)
        if events:
            facts = _facts(foreign, tx.log_end.position, len(events))
            closed = several.add(facts._replace(salt=tx.store.new_salt()), events)
            if link.scope.whole and closed.state != foreign.state:
                raise _diverged(link, foreign)
            tx.log_end = LogEnd(closed.last, foreign.time, closed.chain, closed.state, foreign.xregcorrelationid)
            recorded += enumerate(events, closed.first)
            documents |= _documents(foreign, events)
    sql.insert(tx.connection, tables.document, list(documents.items()), "ON CONFLICT DO NOTHING")
    several.write(tx.connection)
    last = command.interactions[-1]
    return Recorded(tuple(recorded), (), last.xregcorrelationid, tx.log_end.position, last.time)


def _new_interactions(
    tx: WriteTransaction, interactions: Sequence[ForeignInteraction], link: Link
) -> Iterator[ForeignInteraction]:
    """The interactions that are not recorded yet; a repeated one is recorded once. Raises: Diverged."""
    folded = sorted({each.xregcorrelationid.casefold() for each in interactions})
    known: set[str] = set()
    for some in sql.chunks(folded):
        known |= {row[0] for row in sql.run(tx.connection, _KNOWN, (sql.list_parameter(tx.connection, some),))}
    for each in interactions:
        if each.xregcorrelationid.casefold() not in known:
            known.add(each.xregcorrelationid.casefold())
            yield each
        elif not link.scope.whole:  # for a whole registry, the state hash finds it
            _check_whole(tx, each, link)


def _check_whole(tx: WriteTransaction, known: ForeignInteraction, link: Link) -> None:
    """Compares an interaction that is already recorded with what the link wants of it.

    Raises: Diverged when another link, or another scope, recorded the interaction without some of its entities.
    """
    wanted = {event.stream for event in known.events if link.scope.has(event.xid)}
    if wanted:
        here = {row[0] for row in sql.run(tx.connection, _STREAMS, (known.xregcorrelationid.casefold(),))}
        if missing := sorted(wanted - here):
            detail = f"{known.xregcorrelationid} exists here already, and was received without {missing[0]}"
            raise Diverged(link.xid, error_detail=detail, extensions={"xid": missing[0]})


def _documents(foreign: ForeignInteraction, events: Sequence[EntityEvent]) -> dict[str, bytes]:
    """The documents that the events refer to; the registry does not store any others."""
    named = {document_hash(event.private) for event in events}
    return {digest: content for digest, content in foreign.documents.items() if digest in named}


def _facts(foreign: ForeignInteraction, after: int, events: int) -> Interaction:
    return Interaction(
        last=after + events,
        first=after + 1,
        xregcorrelationid=foreign.xregcorrelationid,
        folded=foreign.xregcorrelationid.casefold(),
        time=format_time(foreign.time),
        caller=storable_text(foreign.caller),
        command=storable_text(foreign.command),
        registry_url=storable_text(foreign.registry_url),
        chain=hashes.EMPTY_HASH,
        state=hashes.EMPTY_HASH,
    )


def _diverged(link: Link, foreign: ForeignInteraction) -> Diverged:
    detail = f"the registry differs from {link.url} after {foreign.xregcorrelationid}"
    return Diverged(link.xid, error_detail=detail)
