"""Appends interactions of another registry's log to this one in batches, with their own ids, times and callers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Final

from annals.commands.store import hashes
from annals.commands.store.clock import format_time
from annals.commands.store.database import sql
from annals.commands.store.hashes import Interaction
from annals.commands.store.write_transaction import Recorded, WriteTransaction, storable_text
from annals.domain.compat.legacy_apis import document_hash
from annals.domain.decisions.commands import Follow, ReplaceModel
from annals.domain.decisions.replication.append_foreign import local_events, required_model_change
from annals.domain.errors.http_errors import Diverged, NotReceiving
from annals.domain.errors.problems import NotFound
from annals.domain.registry.events import EntityEvent
from annals.domain.replication.foreign_interaction import ForeignInteraction
from annals.domain.replication.link import Link

#: Records a change of this registry's model.
RecordModel = Callable[[ReplaceModel], Recorded]

#: How far the clock of another registry may be ahead of this one's.
MAX_AHEAD: Final = timedelta(days=1)
_RECORDED_IDS: Final = "SELECT folded FROM interaction WHERE folded {among}"
_STREAMS_OF_INTERACTION: Final = (
    "SELECT l.stream FROM interaction i JOIN log l ON l.position >= i.first AND l.position <= i.last WHERE i.folded = ?"
)


def append_foreign(transaction: WriteTransaction, command: Follow, record_model: RecordModel) -> Recorded:
    """Records the new interactions that are in the link's scope, as one change: all of them or none.

    record_model: records a change of the model on behalf of the link.
    Raises: NotFound when the link does not exist, NotReceiving when it is disabled or promoted, Diverged when the
    interactions do not continue the state of this registry; any error that refuses the model they need.
    """
    link = next((each for each in transaction.world.links if each.xid == command.xid), None)
    if link is None:
        raise NotFound(command.xid)
    if link.is_promoted or not link.is_enabled or not link.follows_log:
        raise NotReceiving(command.xid)
    recorded: list[tuple[int, EntityEvent]] = []
    latest = transaction.store.clock() + MAX_AHEAD
    for foreign in _new_interactions(transaction, command.interactions, link):
        if foreign.time > latest:
            raise _future_error(link, foreign)
        if (model := required_model_change(foreign, link, transaction.world)) is not None:
            recorded += record_model(model).events
        events = local_events(foreign, link, transaction.world)
        if events:
            interaction = _interaction(foreign, transaction.log_end.position, len(events))
            interaction = interaction._replace(salt=transaction.store.new_salt())
            transaction.append_interaction(interaction, events, _referenced_documents(foreign, events))
            if link.scope.is_whole and transaction.log_end.state != foreign.state:
                raise _diverged_error(link, foreign)
            recorded += enumerate(events, interaction.first)
    last_interaction = command.interactions[-1]
    return Recorded(
        tuple(recorded), (), last_interaction.xregcorrelationid, transaction.log_end.position, last_interaction.time
    )


def _new_interactions(
    transaction: WriteTransaction, interactions: Sequence[ForeignInteraction], link: Link
) -> Iterator[ForeignInteraction]:
    """The interactions that are not recorded yet; a repeated one is recorded once. Raises: Diverged."""
    folded_ids = sorted({interaction.xregcorrelationid.casefold() for interaction in interactions})
    recorded_ids: set[str] = set()
    for chunk in sql.chunks(folded_ids):
        recorded_ids |= {
            row[0]
            for row in sql.run(
                transaction.connection, _RECORDED_IDS, (sql.list_parameter(transaction.connection, chunk),)
            )
        }
    for interaction in interactions:
        if interaction.xregcorrelationid.casefold() not in recorded_ids:
            recorded_ids.add(interaction.xregcorrelationid.casefold())
            yield interaction
        elif not link.scope.is_whole:  # for a whole registry, the state hash finds it
            _check_recorded(transaction, interaction, link)


def _check_recorded(transaction: WriteTransaction, interaction: ForeignInteraction, link: Link) -> None:
    """Compares an interaction that is already recorded with what the link wants of it.

    Raises: Diverged when another link, or another scope, recorded the interaction without some of its entities.
    """
    expected_streams = {event.stream for event in interaction.events if link.scope.has(event.xid)}
    if expected_streams:
        recorded_streams = {
            row[0]
            for row in sql.run(
                transaction.connection, _STREAMS_OF_INTERACTION, (interaction.xregcorrelationid.casefold(),)
            )
        }
        if missing_streams := sorted(expected_streams - recorded_streams):
            detail = (
                f"{interaction.xregcorrelationid} exists here already, and was received without {missing_streams[0]}"
            )
            raise Diverged(link.xid, error_detail=detail, extensions={"xid": missing_streams[0]})


def _referenced_documents(foreign: ForeignInteraction, events: Sequence[EntityEvent]) -> dict[str, bytes]:
    """The documents that the events refer to; the registry does not store any others."""
    referenced_hashes = {document_hash(event.private) for event in events}
    return {digest: content for digest, content in foreign.documents.items() if digest in referenced_hashes}


def _interaction(foreign: ForeignInteraction, log_end: int, events: int) -> Interaction:
    return Interaction(
        last=log_end + events,
        first=log_end + 1,
        xregcorrelationid=foreign.xregcorrelationid,
        folded=foreign.xregcorrelationid.casefold(),
        time=format_time(foreign.time),
        caller=storable_text(foreign.caller),
        command=storable_text(foreign.command),
        registry_url=storable_text(foreign.registry_url),
        chain=hashes.EMPTY_HASH,
        state=hashes.EMPTY_HASH,
        authenticator=storable_text(foreign.authenticator),
        keyid=storable_text(foreign.keyid),
    )


def _future_error(link: Link, foreign: ForeignInteraction) -> Diverged:
    """The error for a time that all later interactions here would take over, because times never go back."""
    detail = f"{foreign.xregcorrelationid} has the time {format_time(foreign.time)}, far ahead of the clock here"
    return Diverged(link.xid, error_detail=detail)


def _diverged_error(link: Link, foreign: ForeignInteraction) -> Diverged:
    detail = f"the registry differs from {link.url} after {foreign.xregcorrelationid}"
    return Diverged(link.xid, error_detail=detail)
