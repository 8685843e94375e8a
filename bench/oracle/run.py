"""Pairs of schemas by families, judged by us and by the data that they write."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from random import Random
from typing import Protocol

#: Counterexamples of an open world that a report shows at most.
SHOWN = 5


@dataclass(frozen=True)
class Refusal:
    """Data that is not read. declared: whether the writer declares all that is in it."""

    shown: str
    declared: bool


class Member(Protocol):
    """One schema of a family. text: as its document says it."""

    @property
    def text(self) -> str: ...

    def unreadable(self, writer: Member) -> bool:
        """Whether we say that it does not read what another member writes."""

    def reads(self, writer: Member) -> Iterator[Refusal | None]:
        """What becomes of data that another member writes, by the library; None: it is read."""


#: Makes some schemas near to each other.
Family = Callable[[Random], Sequence[Member]]


@dataclass
class Report:
    """What a run has found.

    compatible: pairs that we call readable. data: what was written for them. silent: those with none.
    closed: counterexamples. opened: pairs with data that the reader refuses for undeclared members only.
    """

    pairs: int = 0
    compatible: int = 0
    data: int = 0
    silent: int = 0
    closed: list[str] = field(default_factory=list)
    opened: int = 0
    shown: list[str] = field(default_factory=list)
    seconds: float = 0.0
    found: Callable[[str], None] = print

    @property
    def share(self) -> float:
        return self.compatible / max(self.pairs, 1)

    def lines(self) -> Iterator[str]:
        yield f"{self.pairs} pairs in {self.seconds:.0f} s, {self.compatible} compatible ({self.share:.0%})"
        yield f"{self.data} data written for these, for {self.silent} pairs none"
        yield f"{len(self.closed)} counterexamples, {self.opened} compatible pairs with one in an open world"
        yield from (f"open world: {text}" for text in self.shown)


def run(family: Family, pairs: int, start: int, found: Callable[[str], None] = lambda text: None) -> Report:
    """The report on so many pairs of different documents.

    start: the seed; the same makes the same pairs. found: takes each counterexample at once.
    """
    report, since = Report(found=found), time.perf_counter()

    turn = 0
    while report.pairs < pairs:
        # Not by hypothesis, which draws constants of whatever modules are loaded: then a seed says nothing.
        _judge(family(Random(f"{start} {turn}")), report, pairs)
        turn += 1
    report.seconds = time.perf_counter() - since
    return report


def _judge(members: Sequence[Member], report: Report, most: int) -> None:
    different = list({member.text: member for member in members}.values())
    for writer, reader in permutations(different, 2):
        if report.pairs >= most:
            return
        report.pairs += 1
        if not reader.unreadable(writer):
            report.compatible += 1
            _held(writer, reader, report)


def _held(writer: Member, reader: Member, report: Report) -> None:
    opened, before = False, report.data
    for refusal in reader.reads(writer):
        report.data += 1
        if refusal is None:
            continue
        description = f"{refusal.shown}\n  writer {writer.text}\n  reader {reader.text}"
        if refusal.declared:
            report.closed.append(description)
            report.found(description)
            return
        if not opened and len(report.shown) < SHOWN:
            report.shown.append(description)
        opened = True
    report.opened += opened
    report.silent += report.data == before
