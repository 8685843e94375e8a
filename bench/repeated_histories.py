"""Logs that are too long to be decided: a history, and the same again and again, each time in other Groups.

    python -m bench.repeated_histories SOURCE FOLDER EVENTS

writes one as segments, from the segments of a generated history, in a third of the time that its commands would take.
A repetition has the same interactions at later times, with Groups and documents of its own: other ids, and more line
breaks at the end of each document.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from itertools import groupby
from math import ceil
from operator import attrgetter
from pathlib import Path
from typing import Final, NamedTuple

import orjson

from annals.commands.store import hashes
from annals.commands.store.clock import format_time
from annals.commands.store.hashes import NO_INTERACTION, ChainHasher, Interaction, LogRow
from annals.domain.registry.events import EntityDeleted
from annals.domain.values import xid as xids
from annals.projections.log.table_rows import LogTableRow, interaction_of, log_row
from annals.projections.segments import read
from annals.projections.segments.folder import SegmentFolder, open_folder
from annals.projections.segments.write import SegmentSize
from bench.bodies import KINDS
from bench.histories import BEGAN, SPAN, segments, with_progress

_GROUPS: Final = "|".join(KINDS)
_GROUP_IDS: Final = "|".join(f"{plural.removesuffix('s')}id" for plural in KINDS)
_GROUP_PATH: Final = re.compile(rf"/(?:{_GROUPS})/[^/]+")
#: What differs between repetitions: paths and ids of Groups, times, documents, positions, correlation ids.
_DIFFERENT: Final = re.compile(
    rf'/(?:{_GROUPS})/[^/"]+|"(?:{_GROUP_IDS})":"[^"]+|\d{{4}}-\d\d-\d\dT[\d:.]+Z'
    r'|"document":"[0-9a-f]{64}|"born":\d+|"xregcorrelationid":"[0-9a-f]{32}'
)


class RepeatedInteraction(NamedTuple):
    """One interaction, as `histories.segments` takes it. documents: contents by hash."""

    interaction: Interaction
    rows: list[LogRow]
    documents: Mapping[str, bytes]


def repeat(source: Path, folder: Path, events: int, size: SegmentSize | None = None) -> Interaction:
    """Writes the history of some segments repeatedly, until it has so many events; returns the last interaction."""
    steps = with_progress(RepeatedHistory(open_folder(str(source)), events), events)
    *_, last = segments(NO_INTERACTION, steps, open_folder(str(folder)), size or SegmentSize())
    return last


class RepeatedHistory:
    """The interactions of a history, repeated until there are so many events. source: its segments."""

    def __init__(self, source: SegmentFolder, events: int) -> None:
        self._source = source
        self._events = events
        self._documents = dict(read.documents(source))
        self._length = max(range.last for range in source.ranges())
        self._last = NO_INTERACTION
        self._hashes: dict[str, bytes] = {}

    def __iter__(self) -> Iterator[RepeatedInteraction]:
        # The first interaction makes the registry, once.
        registry_events = next(read.rows(self._source)).last
        repeated_events = self._length - registry_events
        repetitions, growth = ceil((self._events - registry_events) / repeated_events), dict[str, int]()
        for number in range(repetitions):
            repetition = Repetition((number, repetitions), number * repeated_events, self._documents, growth)
            for first, rows in groupby(read.rows(self._source), attrgetter("first")):
                if not number or first > registry_events:
                    yield self._repeated(repetition, list(rows))
                if self._last.last >= self._events:
                    return
            growth = growth or repetition.registry_growth()
            self._hashes = {stream: hash for stream, hash in self._hashes.items() if stream in xids.ROOT_STREAMS}

    def _repeated(self, repetition: Repetition, rows: list[LogTableRow]) -> RepeatedInteraction:
        first, last = self._last.last + 1, self._last.last + len(rows)
        facts = repetition.interaction(interaction_of(rows[0]))._replace(first=first, last=last)
        events = [repetition.event(log_row(row), position) for position, row in enumerate(rows, first)]
        chain, old_hashes, new_hashes = ChainHasher(self._last.chain, facts), list[bytes](), list[bytes]()
        for event in events:
            is_live = event.topic != EntityDeleted.TOPIC
            new_hashes.append(hashes.entity_hash(hashes.extract_image(event.state)) if is_live else b"")
            old_hashes.append(self._hashes.get(event.stream, b""))
            self._hashes[event.stream] = new_hashes[-1]
            chain.add(event, new_hashes[-1])
        state = hashes.update_state_hash(self._last.state, old_hashes, new_hashes)
        self._last = facts._replace(chain=chain.digest(state), state=state)
        return RepeatedInteraction(self._last, events, repetition.take_documents())


class Repetition:
    """What the interactions of a history are in one of its repetitions.

    share: its number and how many there are; they divide the time of the history. shift: between positions of the
    history and its own. registry_growth: how much each repetition adds to the numbers of the registry entity.
    """

    def __init__(
        self, share: tuple[int, int], shift: int, documents: Mapping[str, bytes], registry_growth: Mapping[str, int]
    ) -> None:
        self._number, self._repetitions = share
        self._shift = shift
        self._documents = documents
        self._registry_growth = registry_growth
        self._used_documents: dict[str, bytes] = {}
        self._new_time = lru_cache(maxsize=1 << 16)(self._time)
        self._registry: LogRow | None = None

    def interaction(self, interaction: Interaction) -> Interaction:
        """An interaction, but for its positions and hashes."""
        id = self._correlation_id(interaction.xregcorrelationid)
        command = _GROUP_PATH.sub(lambda match: self._group(match[0]), interaction.command)
        return interaction._replace(
            xregcorrelationid=id, folded=id, command=command, time=self._new_time(interaction.time)
        )

    def event(self, row: LogRow, position: int) -> LogRow:
        """An event."""
        stream = _GROUP_PATH.sub(lambda match: self._group(match[0]), row.stream)
        state = _DIFFERENT.sub(self._replacement, row.state.decode())
        repeated = row._replace(position=position, stream=stream, state=state.encode())
        if row.stream != xids.REGISTRY:
            return repeated
        self._registry = row
        return self._registry_event(repeated)

    def take_documents(self) -> dict[str, bytes]:
        """The documents to which events referred since the last call, by hash."""
        used, self._used_documents = self._used_documents, {}
        return used

    def registry_growth(self) -> dict[str, int]:
        """How much the history has added to the numbers of the registry entity, the number of its events among them."""
        if self._registry is None:
            return {}
        attributes = orjson.loads(self._registry.state)["attributes"]
        counts = {name: count for name, count in attributes.items() if name.endswith("count")}
        return {"revision": self._registry.revision - 1, "epoch": attributes["epoch"] - 1, **counts}

    def _registry_event(self, row: LogRow) -> LogRow:
        """An event of the registry, which goes on from the repetition before."""
        growth = {name: added * self._number for name, added in self._registry_growth.items()}
        content = orjson.loads(row.state)
        content["epoch"] += growth.get("epoch", 0)
        content["attributes"] = {
            name: value + growth.get(name, 0) if isinstance(value, int) else value
            for name, value in content["attributes"].items()
        } | {"createdat": format_time(BEGAN)}
        return row._replace(revision=row.revision + growth.get("revision", 0), state=orjson.dumps(content))

    def _replacement(self, match: re.Match[str]) -> str:
        text = match[0]
        if text[0] == "/":
            return self._group(text)
        if text[0] != '"':
            return self._new_time(text)
        name, _, value = text.partition(":")
        match name:
            case '"document"':
                return f'{name}:"{self._document(value[1:])}'
            case '"born"':
                # An earlier position is that of the registry, which is not repeated.
                return f"{name}:{int(value) + self._shift * (int(value) > 1)}"
            case '"xregcorrelationid"':
                return f'{name}:"{self._correlation_id(value[1:])}'
        return self._group(text)

    def _group(self, text: str) -> str:
        return f"{text}.{self._number}" if self._number else text

    def _time(self, text: str) -> str:
        moment = BEGAN + (datetime.fromisoformat(text) - BEGAN + self._number * SPAN) / self._repetitions
        return format_time(moment)

    def _correlation_id(self, id: str) -> str:
        return f"{int(id, 16) ^ self._number:032x}"

    def _document(self, digest: str) -> str:
        content = self._documents[digest] + b"\n" * self._number
        new = sha256(content).hexdigest()
        self._used_documents[new] = content
        return new


def main() -> None:
    source, folder, events = sys.argv[1:]
    repeat(Path(source), Path(folder), int(events))


if __name__ == "__main__":
    main()
