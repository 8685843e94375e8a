"""WriteTransaction: appends the events of many commands, each of which can be undone alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection

from annals.commands.store import hashes
from annals.commands.store.append import (
    NewSalt,
    UnwrittenEvents,
    add_salts,
    encode_event,
    replaced_hash,
)
from annals.commands.store.caches import KnownStateCache
from annals.commands.store.clock import Clock, format_time, parse_time
from annals.commands.store.correlation_ids import NextId
from annals.commands.store.database import sql
from annals.commands.store.database.driver_errors import driver_errors
from annals.commands.store.hashes import Interaction
from annals.commands.store.log_end import LogEnd, read_start
from annals.commands.store.recorder import LogRecorder
from annals.commands.store.secrets import Vault
from annals.commands.store.sql_world import SqlWorld
from annals.commands.store.stream_head import StreamHead
from annals.domain.access.roles import ANONYMOUS, Caller, Role
from annals.domain.confluent.subjects import ContextIds
from annals.domain.decisions.commands import Command, describe
from annals.domain.decisions.phases import PhaseCounter, ReportPhase
from annals.domain.decisions.world import Context, Decision, DomainValidation
from annals.domain.registry.events import EntityEvent

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Recorded:
    """The result of one command.

    events: with their positions, in log order; empty when nothing changed, and then there is no correlation id.
    processed: xids that the request named, in its order. position: the end of the log after the command.
    answer: the response that the caller built inside the transaction. findings, number, deleted_numbers: see Decision.
    """

    events: tuple[tuple[int, EntityEvent], ...]
    processed: tuple[str, ...]
    xregcorrelationid: str | None
    position: int
    time: datetime
    answer: Any = None
    findings: int = 0
    number: int | None = None
    deleted_numbers: tuple[int, ...] = ()


class InlineProjection(Protocol):
    """A projection that is updated in the same transaction as the events it follows."""

    def apply(
        self,
        connection: Connection,
        recorded: Sequence[tuple[int, EntityEvent]],
        report_phase: ReportPhase | None = None,
        replaced: Mapping[str, StreamHead] | None = None,
    ) -> None:
        """Applies events, in log order; each comes with its position.

        replaced: the ends of their streams before the events, by tree key, if known.
        """

    def catch_up(self, connection: Connection) -> None:
        """Does what `apply` has left to do later."""


class WritableStore(Protocol):
    """What a write transaction uses of its store."""

    clock: Clock
    new_id: NextId
    new_salt: NewSalt
    public_url: str
    domainvalidation: DomainValidation
    context_ids: ContextIds
    vault: Vault
    recorder: LogRecorder
    known_state: KnownStateCache


class WriteTransaction:
    """One write transaction, for any number of commands.

    Nothing is written before something has to be read by a query, or the transaction ends: then one statement for each
    table writes what all commands have appended. world: the registry as this transaction sees it.
    """

    def __init__(
        self, store: WritableStore, connection: Connection, world: SqlWorld, inline: Sequence[InlineProjection] = ()
    ) -> None:
        self.store = store
        self.world = world
        self._connection = connection
        self._inline = inline
        self._earlier = UnwrittenEvents()  # of commands that cannot be undone any more
        self._current = UnwrittenEvents()
        self._is_attempt = self._has_savepoint = False
        self._failure: Exception | None = None
        self.log_end, start = read_start(connection)
        world.attach(self.flush, self._unwritten_document)
        world.add_known_state(store.known_state.find(self.log_end.chain))
        if start:
            world.preload(start)

    @property
    def connection(self) -> Connection:
        """The transaction's connection, once everything is written that was appended."""
        self.flush()
        return self._connection

    def context(
        self,
        caller: Caller = ANONYMOUS,
        role: Role = Role.WRITER,
        *,
        dryrun: bool = False,
        report_phase: ReportPhase | None = None,
    ) -> Context:
        """A new interaction's time, never before the last one's, and its correlation id; a dry run uses no id."""
        now = self.store.clock()
        now = max(now, self.log_end.time or now)
        id = "" if dryrun else self.store.new_id(self.log_end.id, now)
        store = self.store
        return Context(
            now, id, caller, role, store.domainvalidation, self.log_end.position, report_phase, store.context_ids
        )

    def attempt(self, operation: Callable[[], T], *, dryrun: bool = False) -> T | Exception:
        """The result of `operation`, or the exception that undid it; other commands of the transaction are unaffected.

        What `operation` has appended is usually not written yet, and then undoing it takes no statement.
        dryrun: `operation` is undone in any case, after it returned its result.
        Raises: the database's error when it cannot undo `operation`; then the whole transaction is rolled back.
        """
        self._keep()  # what was appended outside an attempt
        previous_end, self._is_attempt = self.log_end, True
        result: T | Exception
        try:
            result = operation()
        except Exception as error:
            if isinstance(error, driver_errors()) and not self._has_savepoint:
                self._failure = self._failure or error
            result = error
        if dryrun or isinstance(result, Exception):
            self._undo(previous_end)
        else:
            self._keep()
        self._is_attempt = self._has_savepoint = False
        return result

    def append(self, decision: Decision, context: Context, command: Command) -> Recorded:
        """Appends a decision as one interaction: documents, events, heads and hashes.

        Raises: IntegrityError when an event does not follow the last one of its stream.
        """
        if not decision.events:
            return _build_recorded((), decision, None, self.log_end.position, context)
        events = add_salts(decision.events, self.store.new_salt)
        if decision.secrets:
            self._start_writing()
            self.store.vault.apply(self._connection, decision.secrets)
        self.world.prefetch(event.xid for event in events)
        interaction = self._interaction(context, command, len(events))
        self.append_interaction(interaction, events, decision.documents, context.report_phase)
        self.world.version_chains.add(decision.version_chains)
        if context.report_phase:
            self.flush(context.report_phase)
        recorded = tuple(enumerate(events, interaction.first))
        return _build_recorded(recorded, decision, context.xregcorrelationid or None, interaction.last, context)

    def append_interaction(
        self,
        interaction: Interaction,
        events: Sequence[EntityEvent],
        documents: Mapping[str, bytes],
        report_phase: ReportPhase | None = None,
    ) -> None:
        """Appends a whole interaction, which follows the log's end. interaction: without hashes.

        Raises: IntegrityError when an event does not follow the last one of its stream.
        """
        self._current.add_documents(documents)
        chain = hashes.ChainHasher(self.log_end.chain, interaction)
        counter = PhaseCounter(report_phase, "recorded", len(events))
        removed_hashes, added_hashes = [], []
        for position, event in enumerate(events, interaction.first):
            replaced = self.world.stream_head(event.xid)
            removed_hashes.append(replaced_hash(event, replaced))
            encoded = encode_event(event)
            chain.add(encoded.row(position), encoded.hash)
            added_hashes.append(encoded.counted_hash)
            self.world.add_event(event, position, encoded.hash)
            self._current.add_event(encoded, position, replaced)
            if self._current.count >= sql.CHUNK or self._current.size > sql.MAX_BLOB_BYTES:
                # The stored bytes of a whole import would not fit into memory next to its events.
                self._start_writing()
                self._current.write_log(self._connection, self.store.recorder)
            counter.add()
        state = hashes.update_state_hash(self.log_end.state, removed_hashes, added_hashes)
        interaction = interaction._replace(chain=chain.digest(state), state=state)
        self._current.add_interaction(interaction)
        time = parse_time(interaction.time)
        self.log_end = LogEnd(interaction.last, time, interaction.chain, state, interaction.xregcorrelationid)

    def flush(self, report_phase: ReportPhase | None = None) -> None:
        """Writes and projects everything that was appended.

        Raises: the database's error; then nothing of the transaction can be kept.
        """
        self._write(self._earlier)
        if self._current.recorded:
            self._start_writing()
            self._write(self._current, report_phase)

    def _write(self, unwritten: UnwrittenEvents, report_phase: ReportPhase | None = None) -> None:
        if self._failure:
            raise self._failure
        if not unwritten.recorded:
            return
        try:
            with sql.combining_writes(self._connection):
                unwritten.write_log(self._connection, self.store.recorder)
                for projection in self._inline:
                    projection.apply(self._connection, unwritten.recorded, report_phase, unwritten.replaced)
        except Exception as error:
            if unwritten is self._earlier or not self._has_savepoint:
                self._failure = error
            raise
        unwritten.clear_recorded()
        if not self._earlier.recorded and not self._current.recorded:
            self.world.set_written()

    def _start_writing(self) -> None:
        """Prepares for statements that belong to the current command, which may have to be undone."""
        if self._is_attempt and not self._has_savepoint:
            self._write(self._earlier)
            sql.run(self._connection, "SAVEPOINT attempt")
            self._has_savepoint = True

    def _keep(self) -> None:
        """Makes the current command one of the earlier ones."""
        if self._has_savepoint:
            sql.run(self._connection, "RELEASE SAVEPOINT attempt")
        self._earlier.extend(self._current)
        self._current = UnwrittenEvents()
        self.world.release()
        if self._earlier.count >= sql.CHUNK or self._earlier.size > sql.MAX_BLOB_BYTES:
            self._write(self._earlier)

    def _undo(self, previous_end: LogEnd) -> None:
        """Restores the state before the current command."""
        if self._has_savepoint:
            sql.run(self._connection, "ROLLBACK TO SAVEPOINT attempt")
            sql.run(self._connection, "RELEASE SAVEPOINT attempt")
        self._current = UnwrittenEvents()
        self.log_end = previous_end
        self.world.roll_back()

    def _unwritten_document(self, sha256: str) -> bytes | None:
        current = self._current.document(sha256)
        return self._earlier.document(sha256) if current is None else current

    def _interaction(self, context: Context, command: Command, events: int) -> Interaction:
        return Interaction(
            last=self.log_end.position + events,
            first=self.log_end.position + 1,
            xregcorrelationid=context.xregcorrelationid,
            folded=context.xregcorrelationid.casefold(),
            time=format_time(context.now),
            caller=storable_text(context.caller.name),
            command=storable_text(describe(command)),
            registry_url=self.store.public_url,
            chain=hashes.EMPTY_HASH,
            state=hashes.EMPTY_HASH,
            salt=self.store.new_salt(),
            authenticator=context.caller.authenticator,
            keyid=context.caller.keyid,
        )


def _build_recorded(
    events: tuple[tuple[int, EntityEvent], ...],
    decision: Decision,
    correlation_id: str | None,
    position: int,
    context: Context,
) -> Recorded:
    return Recorded(
        events,
        decision.processed,
        correlation_id,
        position,
        context.now,
        findings=decision.findings,
        number=decision.number,
        deleted_numbers=decision.deleted_numbers,
    )


def storable_text(text: str) -> str:
    """The text in a form that both databases can store."""
    # PostgreSQL's text cannot hold NUL, and half a surrogate pair has no UTF-8 form.
    return text.replace("\0", "\\u0000").encode(errors="backslashreplace").decode()
