"""Logs of any size with the shape of real ones, the same for the same size and seed.

Commands are chosen at random (`bench.history_commands`) and decided by the registry's own rules, in memory. So the log
is what a registry would have written: a test has one write the same log.

    python -m bench.histories FOLDER EVENTS [SEED]

writes one as segments. A run that was stopped continues from the file FOLDER.checkpoint.
"""

from __future__ import annotations

import gc
import pickle
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain as joined
from pathlib import Path
from random import Random
from tempfile import TemporaryFile
from typing import Final, NamedTuple, Protocol, TypeVar, cast

from annals.commands.store import hashes
from annals.commands.store.append import NewSalt, add_salts
from annals.commands.store.clock import format_time
from annals.commands.store.hashes import NO_INTERACTION, ChainHasher, Interaction, LogRow
from annals.commands.store.log import Store
from annals.commands.store.mapper import after_image, stored_state
from annals.domain.access.roles import ANONYMOUS, Caller, Role
from annals.domain.decisions.commands import Command, CreateRegistry, describe
from annals.domain.decisions.decide import decide
from annals.domain.decisions.world import Context, Decision
from annals.domain.model.builtin import default_source
from annals.domain.registry.events import EntityDeleted, EntityEvent
from annals.projections.log.table_rows import SCHEMA_VERSION, LogTableRow, table_rows
from annals.projections.segments.columns import DOCUMENT_FILE_SCHEMA, LOG_FILE_SCHEMA, DocumentRow, write_table
from annals.projections.segments.folder import SegmentFolder, open_folder
from annals.projections.segments.known_documents import KnownDocuments
from annals.projections.segments.manifest import DataFile, ManifestEntry, SegmentRange
from annals.projections.segments.write import SegmentSize, load_hashes
from bench.history_commands import CommandGenerator
from bench.memory_world import MemoryWorld

#: URL of the registry whose history it is.
URL: Final = "https://registry.example.com"
REGISTRYID: Final = "annals"
BEGAN: Final = datetime(2021, 1, 1, tzinfo=UTC)
SPAN: Final = timedelta(days=5 * 365)
#: Who writes, the first ones most.
CALLERS: Final = ("ci", "catalog-import", "anna", "deploy", "bert", "chris", "dora", "emil", "fay", "anonymous")

#: Events of one transaction while a store is filled.
_TRANSACTION_EVENTS: Final = 2000
#: Commands between two garbage collections, each of which costs as much as there are live objects.
_COLLECT_EVERY: Final = 10_000
#: Segments between two checkpoints.
_CHECKPOINT_EVERY: Final = 10


#: Called with each command and its context, before the decision changes the command's tree.
CommandCallback = Callable[[Command, Context], None]


class RecordedStep(Protocol):
    """One interaction as it is in a log."""

    @property
    def interaction(self) -> Interaction:
        """Its facts."""

    @property
    def rows(self) -> list[LogRow]:
        """Its events."""

    @property
    def documents(self) -> Mapping[str, bytes]:
        """The contents by hash that it may have brought."""


class HistoryStep(NamedTuple):
    """One interaction: its command, its decision, and its rows in a log."""

    command: Command
    context: Context
    decision: Decision
    interaction: Interaction
    rows: list[LogRow]

    @property
    def documents(self) -> Mapping[str, bytes]:
        """The contents of new documents by hash."""
        return self.decision.documents


Step = TypeVar("Step", bound=RecordedStep)


class History:
    """Generates a history, which ends with the interaction that brings so many events.

    A history that was pickled between two steps continues with the next one. last: the last interaction so far.
    """

    def __init__(self, events: int, seed: int = 1, on_command: CommandCallback | None = None) -> None:
        self.last = NO_INTERACTION
        self._events = events
        self._on_command = on_command
        self._world = MemoryWorld()
        self._random = Random(seed)
        self._new_salt = salts(seed)
        self._commands = CommandGenerator(self._world, self._random, events)
        self._command_count = 0

    def __iter__(self) -> Iterator[HistoryStep]:
        was_collecting = gc.isenabled()
        gc.disable()
        try:
            while self.last.last < self._events:
                if (step := self._next()) is not None:
                    yield step
        finally:
            if was_collecting:
                gc.enable()

    def _next(self) -> HistoryStep | None:
        """The step of the next command; None if the command changes nothing."""
        if self._command_count % _COLLECT_EVERY == 0:
            gc.collect()
        command, caller = self._next_command()
        moment = BEGAN + SPAN * (self.last.last / self._events)
        context = Context(moment, f"{self._random.getrandbits(128):032x}", caller, domainvalidation="off")
        if self._on_command:
            self._on_command(command, context)
        decision = decide(command, self._world, context)
        if not decision.events:
            return None
        step = _recorded(command, context, decision, self.last, self._world, self._new_salt)
        self.last = step.interaction
        return step

    def _next_command(self) -> tuple[Command, Caller]:
        """A command and who sends it."""
        self._command_count += 1
        if self._command_count == 1:
            return CreateRegistry(REGISTRYID, default_source()), ANONYMOUS
        command = self._commands.next(self._events - self.last.last)
        return command, Caller(CALLERS[int((len(CALLERS) + 1) ** self._random.random()) - 1], Role.WRITER)


def salts(seed: int) -> NewSalt:
    """The salts of the history of a seed, one after the other."""
    return partial(_next_salt, Random(f"salts of {seed}"))


def _next_salt(chance: Random) -> str:
    return f"{chance.getrandbits(128):032x}"


def _recorded(
    command: Command,
    context: Context,
    decision: Decision,
    previous: Interaction,
    world: MemoryWorld,
    new_salt: NewSalt,
) -> HistoryStep:
    """What a log has of a decision, which is applied to the world."""
    decision = replace(decision, events=tuple(add_salts(decision.events, new_salt)))
    first = previous.last + 1
    facts = Interaction(
        last=previous.last + len(decision.events),
        first=first,
        xregcorrelationid=context.xregcorrelationid,
        folded=context.xregcorrelationid,
        time=format_time(context.now),
        caller=context.caller.name,
        command=describe(command),
        registry_url=URL,
        chain=hashes.EMPTY_HASH,
        state=hashes.EMPTY_HASH,
        salt=new_salt(),
    )
    old_hashes = [world.hash(event.xid) for event in decision.events]
    rows = [_row(event, position) for position, event in enumerate(decision.events, first)]
    for event, (row, hash) in zip(decision.events, rows, strict=True):
        world.take(event, row.position, hash)
    chain = ChainHasher(previous.chain, facts)
    state = hashes.update_state_hash(previous.state, old_hashes, (hash for _, hash in rows))
    for row, _ in rows:
        chain.add(row)
    facts = facts._replace(chain=chain.digest(state), state=state)
    return HistoryStep(command, context, decision, facts, [row for row, _ in rows])


def _row(event: EntityEvent, position: int) -> tuple[LogRow, bytes]:
    """The row of an event, and the hash of the entity after it, empty for a deletion."""
    image = after_image(event)
    hash = b"" if isinstance(event, EntityDeleted) else hashes.entity_hash(image)
    return LogRow(position, event.stream, event.revision, event.TOPIC, stored_state(event, image)), hash


def with_progress(history: Iterable[Step], events: int, start: int = 0, every: int = 100_000) -> Iterator[Step]:
    """The steps after a position, with a line on stderr now and then that says how far they are."""
    began = time.perf_counter()
    for step in history:
        yield step
        reached = step.interaction.last
        if reached // every > (step.interaction.first - 1) // every or reached >= events:
            rate = (reached - start) / (time.perf_counter() - began)
            print(f"{reached:,} of {events:,} events, {rate:,.0f}/s", file=sys.stderr, flush=True)


def write_segments(
    folder: Path, events: int, seed: int = 1, size: SegmentSize | None = None, checkpoint: Path | None = None
) -> Interaction:
    """Writes a history as segments with their documents, the files that `annals segments write` would write.

    folder: is created if it does not exist. checkpoint: a file that keeps the generator's state, from which a later
    run continues where this one was stopped. Returns the last interaction.
    """
    history = pickle.loads(checkpoint.read_bytes()) if checkpoint and checkpoint.exists() else History(events, seed)
    steps = with_progress(history, events, history.last.last)
    for count, _ in enumerate(segments(history.last, steps, open_folder(str(folder)), size or SegmentSize()), 1):
        if checkpoint and count % _CHECKPOINT_EVERY == 0:
            _save(history, checkpoint)
    return cast("History", history).last


def _save(history: History, checkpoint: Path) -> None:
    new = checkpoint.with_suffix(".new")
    with new.open("wb") as file:
        pickle.dump(history, file, pickle.HIGHEST_PROTOCOL)
    new.replace(checkpoint)


def segments(
    previous: Interaction, steps: Iterator[RecordedStep], folder: SegmentFolder, size: SegmentSize
) -> Iterator[Interaction]:
    """Writes the steps after an interaction as segments; yields the interaction that ends each, once it is complete.

    Steps that the folder already has are left out.
    """
    end = max((range.last for range in folder.ranges()), default=0)
    while previous.last < end:
        previous = next(steps).interaction
    with closing(KnownDocuments()) as known_documents:
        load_hashes(folder, known_documents)
        while (first := next(steps, None)) is not None:
            segment = _Segment(joined((first,), steps), previous, size.events, known_documents)
            previous = segment.write(folder, size.row_group_size)
            yield previous


class _Segment:
    """One segment: the interactions up to the one that fills it."""

    def __init__(
        self,
        steps: Iterator[RecordedStep],
        previous: Interaction,
        events: int,
        known_documents: KnownDocuments,
    ) -> None:
        self._steps = steps
        self._previous = previous
        self._events = events
        self._known_documents = known_documents
        self._new_documents: dict[str, bytes] = {}
        self._last = previous
        self._interactions = 0

    def write(self, folder: SegmentFolder, row_group_size: int) -> Interaction:
        """Writes the segment; returns its last interaction."""
        with TemporaryFile() as log, TemporaryFile() as documents:
            events = write_table(log, LOG_FILE_SCHEMA, self._rows(), row_group_size, "state")
            count = write_table(documents, DOCUMENT_FILE_SCHEMA, self._document_rows(), row_group_size, "content")
            range = SegmentRange(self._previous.last + 1, self._last.last)
            files = (
                folder.put("log", range, events, log),
                folder.put("documents", range, count, documents) if count else None,
            )
        folder.add_entry(self._entry(range, *files))
        self._known_documents.merge_references()
        return self._last

    def _rows(self) -> Iterator[LogTableRow]:
        for step in self._steps:
            self._last = step.interaction
            self._interactions += 1
            for digest, content in step.documents.items():
                if digest not in self._known_documents:
                    self._new_documents[digest] = content
                    self._known_documents.add_reference(digest, step.interaction.last)
            yield from table_rows(step.interaction, step.rows)
            if self._last.last - self._previous.last >= self._events:
                return

    def _document_rows(self) -> Iterator[DocumentRow]:
        return (DocumentRow(digest, self._new_documents[digest]) for digest in sorted(self._new_documents))

    def _entry(self, range: SegmentRange, log: DataFile, documents: DataFile | None) -> ManifestEntry:
        return ManifestEntry(
            schemaversion=SCHEMA_VERSION,
            first=range.first,
            last=range.last,
            events=log.rows,
            interactions=self._interactions,
            previous=self._previous.chain.hex(),
            chain=self._last.chain.hex(),
            statehash=self._last.state.hex(),
            log=log,
            documents=documents,
        )


def fill(store: Store, history: Iterable[HistoryStep]) -> Iterator[HistoryStep]:
    """Appends a history to an empty store, some interactions to a transaction, and yields its steps.

    The read model is left alone; `annals.projections.entities.rebuild.rebuild` fills it. Raises: ValueError if the
    store does not have the `public_url` of the history, because its chain would be another one.
    """
    steps = iter(history)
    while (first := next(steps, None)) is not None:
        appended, start = list[HistoryStep](), first.interaction.first
        with store.writing() as transaction:
            for step in joined((first,), steps):
                store.new_salt = partial(str, step.interaction.salt)
                transaction.append(step.decision, step.context, step.command)
                appended.append(step)
                if step.interaction.last - start >= _TRANSACTION_EVENTS:
                    break
            if transaction.log_end.chain != appended[-1].interaction.chain:
                raise ValueError(f"the store has another log by position {transaction.log_end.position}")
        yield from appended


def main() -> None:
    folder, events, *seed = sys.argv[1:]
    write_segments(Path(folder), int(events), int(*seed or "1"), checkpoint=Path(f"{folder}.checkpoint"))


if __name__ == "__main__":
    main()
