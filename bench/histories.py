"""Logs of any size with the shape of real ones, the same for the same size and seed.

Commands are made by chance (`bench.lives`) and decided by the registry's own rules, in memory, so what comes of them is
what a registry would have written: a test has one write the same log.

    python -m bench.histories FOLDER EVENTS [SEED]
"""

from __future__ import annotations

import gc
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain as joined
from pathlib import Path
from random import Random
from tempfile import TemporaryFile
from typing import Final, NamedTuple

from annals.commands.store import hashes
from annals.commands.store.append import NewSalt, add_salts
from annals.commands.store.clock import format_time
from annals.commands.store.hashes import NO_INTERACTION, ChainHasher, Interaction, LogRow
from annals.commands.store.log import Store
from annals.commands.store.mapper import after_image, stored_state
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
from annals.projections.segments.write import SegmentSize
from bench.lives import Lives
from bench.recent import RecentWorld

#: URL of the registry whose history it is.
URL: Final = "https://registry.example.com"
REGISTRYID: Final = "annals"
BEGAN: Final = datetime(2021, 1, 1, tzinfo=UTC)
SPAN: Final = timedelta(days=5 * 365)
#: Who writes, the first ones most.
CALLERS: Final = ("ci", "catalog-import", "anna", "deploy", "bert", "chris", "dora", "emil", "fay", "anonymous")

#: Events of one transaction while a store is filled.
_TOGETHER: Final = 2000
#: Interactions between two looks for cycles, which decisions leave behind: each look costs what lives.
_LOOK: Final = 10_000


Asked = Callable[[Command, Context], None]


class HistoryStep(NamedTuple):
    """One interaction: its command, its decision, and its rows in a log."""

    command: Command
    context: Context
    decision: Decision
    interaction: Interaction
    rows: list[LogRow]


def interactions(events: int, seed: int = 1, asked: Asked | None = None) -> Iterator[HistoryStep]:
    """A history that ends with the interaction which brings so many events. Memory does not grow with it.

    asked: is given each command, and what it is decided in, before that takes its trees apart.
    """
    world, chance, new_salt = RecentWorld(), Random(seed), salts(seed)
    lives, tip = Lives(world, chance, events), NO_INTERACTION
    command: Command = CreateRegistry(REGISTRYID, default_source())
    caller = "anonymous"
    collecting = gc.isenabled()
    gc.disable()
    try:
        for count in range(sys.maxsize):
            moment = BEGAN + SPAN * (tip.last / events)
            context = Context(moment, f"{chance.getrandbits(128):032x}", caller, domainvalidation="off")
            if asked:
                asked(command, context)
            decision = decide(command, world, context)
            if decision.events:
                told = _recorded(command, context, decision, tip, world, new_salt)
                tip = told.interaction
                yield told
            if tip.last >= events:
                return
            if count % _LOOK == 0:
                gc.collect()
            command = lives.next(events - tip.last)
            caller = CALLERS[int((len(CALLERS) + 1) ** chance.random()) - 1]
    finally:
        if collecting:
            gc.enable()


def salts(seed: int) -> NewSalt:
    """The salts of the history of a seed, one after the other."""
    chance = Random(f"salts of {seed}")
    return lambda: f"{chance.getrandbits(128):032x}"


def _recorded(
    command: Command, context: Context, decision: Decision, tip: Interaction, world: RecentWorld, new_salt: NewSalt
) -> HistoryStep:
    """What a log has of a decision, which the world takes in."""
    decision = replace(decision, events=tuple(add_salts(decision.events, new_salt)))
    first = tip.last + 1
    facts = Interaction(
        last=tip.last + len(decision.events),
        first=first,
        xregcorrelationid=context.xregcorrelationid,
        folded=context.xregcorrelationid,
        time=format_time(context.now),
        caller=context.caller,
        command=describe(command),
        registry_url=URL,
        chain=hashes.EMPTY_HASH,
        state=hashes.EMPTY_HASH,
        salt=new_salt(),
    )
    gone = [world.hash(event.xid) for event in decision.events]
    found = [_row(event, position) for position, event in enumerate(decision.events, first)]
    for event, (row, hash) in zip(decision.events, found, strict=True):
        world.take(event, row.position, hash)
    linked, statehash = (
        ChainHasher(tip.chain, facts),
        hashes.update_state_hash(tip.state, gone, (hash for _, hash in found)),
    )
    for row, _ in found:
        linked.add(row)
    facts = facts._replace(chain=linked.digest(statehash), state=statehash)
    return HistoryStep(command, context, decision, facts, [row for row, _ in found])


def _row(event: EntityEvent, position: int) -> tuple[LogRow, bytes]:
    """The row of an event, and the hash of the entity that it leaves."""
    whole = after_image(event)
    hash = b"" if isinstance(event, EntityDeleted) else hashes.entity_hash(whole)
    return LogRow(position, event.stream, event.revision, event.TOPIC, stored_state(event, whole)), hash


def with_progress(history: Iterable[HistoryStep], events: int, every: int = 100_000) -> Iterator[HistoryStep]:
    """The same, and a line on stderr now and then that says how far it is."""
    began = time.perf_counter()
    for told in history:
        yield told
        reached = told.interaction.last
        if reached // every > (told.interaction.first - 1) // every or reached >= events:
            rate = reached / (time.perf_counter() - began)
            print(f"{reached:,} of {events:,} events, {rate:,.0f}/s", file=sys.stderr, flush=True)


def write_segments(folder: Path, events: int, seed: int = 1, size: SegmentSize | None = None) -> Interaction:
    """Writes a history as segments with their documents; gives its last interaction.

    folder: is made where it is not there. They are the very files that `annals segments write` would have made.
    """
    history = with_progress(interactions(events, seed), events)
    return deque(segments(history, open_folder(str(folder)), size or SegmentSize()), maxlen=1)[0]


def segments(history: Iterable[HistoryStep], folder: SegmentFolder, size: SegmentSize) -> Iterator[Interaction]:
    """Writes a history as segments; gives the interaction that ends each, once it is complete."""
    before, left = NO_INTERACTION, iter(history)
    with closing(KnownDocuments()) as seen:
        while (first := next(left, None)) is not None:
            cut = _Cut(joined((first,), left), before, size.events, seen)
            before = cut.written(folder, size.row_group_size)
            yield before


class _Cut:
    """One segment: the interactions up to the one that fills it."""

    def __init__(self, history: Iterable[HistoryStep], before: Interaction, events: int, seen: KnownDocuments) -> None:
        self._history = history
        self._before = before
        self._events = events
        self._seen = seen
        self._documents: dict[str, bytes] = {}
        self._last = before
        self._interactions = 0

    def written(self, folder: SegmentFolder, group: int) -> Interaction:
        with TemporaryFile() as log, TemporaryFile() as packed:
            count = write_table(log, LOG_FILE_SCHEMA, self._rows(), group, "state")
            held = write_table(packed, DOCUMENT_FILE_SCHEMA, self._fresh(), group, "content")
            range = SegmentRange(self._before.last + 1, self._last.last)
            files = (
                folder.put("log", range, count, log),
                folder.put("documents", range, held, packed) if held else None,
            )
        folder.add_entry(self._entry(range, *files))
        self._seen.merge_references()
        return self._last

    def _rows(self) -> Iterator[LogTableRow]:
        for told in self._history:
            self._last = told.interaction
            self._interactions += 1
            for digest, content in told.decision.documents.items():
                if digest not in self._seen:
                    self._documents[digest] = content
                    self._seen.add_reference(digest, told.interaction.last)
            yield from table_rows(told.interaction, told.rows)
            if self._last.last - self._before.last >= self._events:
                return

    def _fresh(self) -> Iterator[DocumentRow]:
        return (DocumentRow(digest, self._documents[digest]) for digest in sorted(self._documents))

    def _entry(self, range: SegmentRange, log: DataFile, documents: DataFile | None) -> ManifestEntry:
        return ManifestEntry(
            schemaversion=SCHEMA_VERSION,
            first=range.first,
            last=range.last,
            events=log.rows,
            interactions=self._interactions,
            previous=self._before.chain.hex(),
            chain=self._last.chain.hex(),
            statehash=self._last.state.hex(),
            log=log,
            documents=documents,
        )


def fill(store: Store, history: Iterable[HistoryStep]) -> Iterator[HistoryStep]:
    """Appends a history to an empty store, some interactions to a transaction, and gives it on.

    The store has to have the `public_url` of the history, else its chain is another one: ValueError. The read model is
    left alone; `annals.projections.entities.rebuild.rebuild` makes it.
    """
    left = iter(history)
    while (first := next(left, None)) is not None:
        some, begun = list[HistoryStep](), first.interaction.first
        with store.writing() as tx:
            for told in joined((first,), left):
                store.new_salt = partial(str, told.interaction.salt)
                tx.append(told.decision, told.context, told.command)
                some.append(told)
                if told.interaction.last - begun >= _TOGETHER:
                    break
            if tx.log_end.chain != some[-1].interaction.chain:
                raise ValueError(f"the store has another log by position {tx.log_end.position}")
        yield from some


def main() -> None:
    folder, events, *seed = sys.argv[1:]
    write_segments(Path(folder), int(events), int(*seed or "1"))


if __name__ == "__main__":
    main()
