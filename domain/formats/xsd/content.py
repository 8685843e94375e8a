"""Content models as regular expressions over names, and whether one allows all that another does.

A wildcard of the reader takes whatever the writer declares. A wildcard of the writer is a place that it leaves open, so
the reader has to leave it open too; that what fills it might bear the name of an element that the reader declares is
left aside: producers emit declared fields only (SC-36).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

#: Nodes of models that one comparison looks at, at most; beyond, the answer is that it cannot be told.
_MOST: Final = 100_000


@dataclass(frozen=True, slots=True)
class Name:
    name: str


@dataclass(frozen=True, slots=True)
class Wild:
    """A wildcard: names whose namespace is one of these, or (excluding) none of these. strictness: 0 for `skip`, 1 for
    `lax`, 2 for `strict`."""

    namespaces: frozenset[str]
    excluding: bool
    strictness: int
    not_names: frozenset[str] = frozenset()

    def takes(self, name: str) -> bool:
        uri = name[1:].partition("}")[0] if name.startswith("{") else ""
        return (uri in self.namespaces) != self.excluding and name not in self.not_names

    def covers(self, other: Wild) -> bool:
        """Whether it takes all that another takes, and is no stricter about it."""
        if self.strictness > other.strictness or not self.not_names <= other.not_names:
            return False
        if other.excluding:
            return self.excluding and self.namespaces <= other.namespaces
        if self.excluding:
            return not self.namespaces & other.namespaces
        return other.namespaces <= self.namespaces


@dataclass(frozen=True, slots=True)
class Seq:
    items: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    items: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class All:
    """Its items in any order, also one within another."""

    items: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    item: Term
    least: int
    most: int | None


Symbol = Name | Wild
Term = Name | Wild | Seq | Choice | All | Repeat

EMPTY: Final = Seq(())
NOTHING: Final = Choice(())


def seq(items: list[Term]) -> Term:
    """One after the other, in the plainest form."""
    flat: list[Term] = []
    for item in items:
        if item == NOTHING:
            return NOTHING
        flat.extend(item.items if isinstance(item, Seq) else [item])
    return flat[0] if len(flat) == 1 else Seq(tuple(flat))


def choice(items: list[Term]) -> Term:
    """One of these, in the plainest form."""
    flat: dict[Term, None] = {}
    for item in items:
        flat.update(dict.fromkeys(item.items if isinstance(item, Choice) else [item]))
    return next(iter(flat)) if len(flat) == 1 else Choice(tuple(flat))


def all_of(items: list[Term]) -> Term:
    """All of these in any order, in the plainest form."""
    left = [item for item in items if item != EMPTY]
    if NOTHING in left:
        return NOTHING
    return EMPTY if not left else left[0] if len(left) == 1 else All(tuple(left))


def repeat(item: Term, least: int, most: int | None) -> Term:
    """An item several times, in the plainest form."""
    if most == 0 or item == EMPTY:
        return EMPTY
    if item == NOTHING:
        return EMPTY if least == 0 else NOTHING
    return item if least == most == 1 else Repeat(item, least, most)


def nullable(term: Term) -> bool:
    """Whether no element at all will do."""
    match term:
        case Name() | Wild():
            return False
        case Seq(items) | All(items):
            return all(map(nullable, items))
        case Choice(items):
            return any(map(nullable, items))
        case Repeat(item, least, _):
            return least == 0 or nullable(item)


def symbols(term: Term) -> set[Symbol]:
    """Every name and wildcard in a model."""
    match term:
        case Name() | Wild():
            return {term}
        case Seq(items) | All(items) | Choice(items):
            return {symbol for item in items for symbol in symbols(item)}
        case Repeat(item, _, _):
            return symbols(item)


def counts(term: Term) -> dict[str, tuple[int, int | None]]:
    """How often each name occurs at least and at most."""
    match term:
        case Name(name):
            return {name: (1, 1)}
        case Wild():
            return {}
        case Repeat(item, least, most):
            return {
                name: (low * least, None if most is None or high is None else high * most)
                for name, (low, high) in counts(item).items()
            }
        case Choice(items):
            found = [counts(item) for item in items]
            return {
                name: (min(low for low, _ in ranges), _largest([high for _, high in ranges]))
                for name in dict.fromkeys(name for part in found for name in part)
                for ranges in [[part.get(name, (0, 0)) for part in found]]
            }
        case Seq(items) | All(items):
            total: dict[str, tuple[int, int | None]] = {}
            for item in items:
                for name, (low, high) in counts(item).items():
                    before, top = total.get(name, (0, 0))
                    total[name] = before + low, None if top is None or high is None else top + high
            return total


def _largest(tops: list[int | None]) -> int | None:
    known = [top for top in tops if top is not None]
    return max(known) if len(known) == len(tops) else None


def firsts(term: Term) -> set[Symbol]:
    """What may come first."""
    match term:
        case Name() | Wild():
            return {term}
        case Seq(items):
            found: set[Symbol] = set()
            for item in items:
                found |= firsts(item)
                if not nullable(item):
                    break
            return found
        case All(items) | Choice(items):
            return {symbol for item in items for symbol in firsts(item)}
        case Repeat(item, _, _):
            return firsts(item)


def after(term: Term, symbol: Symbol) -> Term:
    """What may follow in a model once a symbol has come: its derivative (Brzozowski); NOTHING where it may not come."""
    match term:
        case Name() | Wild():
            return EMPTY if _takes(term, symbol) else NOTHING
        case Choice(items):
            return choice([after(item, symbol) for item in items])
        case Repeat(item, least, most):
            rest = repeat(item, max(least - 1, 0), None if most is None else most - 1)
            return seq([after(item, symbol), rest])
        case All(items):
            return choice(
                [all_of([*items[:at], after(item, symbol), *items[at + 1 :]]) for at, item in enumerate(items)]
            )
        case Seq(items):
            ways: list[Term] = []
            for at, item in enumerate(items):
                ways.append(seq([after(item, symbol), *items[at + 1 :]]))
                if not nullable(item):
                    break
            return choice(ways)


def _takes(atom: Name | Wild, symbol: Symbol) -> bool:
    if isinstance(atom, Name):
        return atom == symbol
    return atom.takes(symbol.name) if isinstance(symbol, Name) else atom.covers(symbol)


def stray(writer: Term, reader: Term) -> tuple[str, ...] | None:
    """The names of a shortest content that one model allows and another does not; None where there is none.

    Raises: LookupError when it cannot be told within bounds. Where both are alike but for what SC-36 allows, the answer
    comes without a search, in about O(size of both).
    """
    if _inside(writer, reader):
        return None
    seen, work = {(writer, reader)}, 0
    waiting: deque[tuple[Term, Term, tuple[str, ...]]] = deque([(writer, reader, ())])
    while waiting:
        ours, theirs, path = waiting.popleft()
        if theirs == NOTHING or (nullable(ours) and not nullable(theirs)):
            return path
        for symbol in sorted(firsts(ours), key=_shown):
            work += _size(ours) + _size(theirs)
            if work > _MOST:
                raise LookupError
            pair = after(ours, symbol), after(theirs, symbol)
            if pair not in seen and not _inside(*pair):
                seen.add(pair)
                waiting.append((*pair, (*path, _shown(symbol))))
    return None


def _size(term: Term) -> int:
    match term:
        case Name() | Wild():
            return 1
        case Repeat(item, _, _):
            return 1 + _size(item)
        case Seq(items) | All(items) | Choice(items):
            return 1 + sum(map(_size, items))


def _shown(symbol: Symbol) -> str:
    return symbol.name if isinstance(symbol, Name) else "*"


def _inside(writer: Term, reader: Term) -> bool:
    """Whether the shapes alone show that one model allows all that another does; False tells nothing."""
    if writer in (reader, NOTHING):
        return True
    if isinstance(writer, Choice):
        among = frozenset(reader.items) if isinstance(reader, Choice) else frozenset[Term]()
        return all(item in among or _inside(item, reader) for item in writer.items)
    if isinstance(writer, Repeat) and writer.least == 0 and writer.most == 1:
        return nullable(reader) and _inside(writer.item, reader)
    match reader:
        case Name() | Wild():
            return isinstance(writer, Name | Wild) and _takes(reader, writer)
        case Choice(items):
            return any(_inside(writer, item) for item in items)
        case Repeat(item, least, most):
            if isinstance(writer, Repeat):
                fits = least <= writer.least and (most is None or (writer.most is not None and writer.most <= most))
                return fits and _inside(writer.item, item)
            return (least <= 1 and _inside(writer, item)) or (writer == EMPTY and nullable(reader))
        case All(items):
            return _all_inside(writer, items)
        case Seq(items):
            return _seq_inside(writer.items if isinstance(writer, Seq) else (writer,), items)


def _seq_inside(writer: tuple[Term, ...], reader: tuple[Term, ...]) -> bool:
    at = 0
    for item in reader:
        if at < len(writer) and _inside(writer[at], item):
            at += 1
        elif not nullable(item):
            return False
    return at == len(writer)


def _all_inside(writer: Term, reader: tuple[Term, ...]) -> bool:
    """Names in any order, each so and so often: then the counts say it all, however the writer orders them."""
    if any(isinstance(symbol, Wild) for item in (writer, *reader) for symbol in symbols(item)):
        return _pairwise(writer.items, reader) if isinstance(writer, All) else False
    if not all(isinstance(item, Name) or (isinstance(item, Repeat) and isinstance(item.item, Name)) for item in reader):
        return False
    ours, theirs = counts(writer), counts(All(reader))
    return all(within(ours.get(name, (0, 0)), theirs.get(name, (0, 0))) for name in {**ours, **theirs})


def _pairwise(writer: tuple[Term, ...], reader: tuple[Term, ...]) -> bool:
    left = list(reader)
    for item in writer:
        fitting = next((other for other in left if _inside(item, other)), None)
        if fitting is None:
            return False
        left.remove(fitting)
    return all(map(nullable, left))


def within(inner: tuple[int, int | None], outer: tuple[int, int | None]) -> bool:
    """Whether one range of counts lies in another."""
    return outer[0] <= inner[0] and (outer[1] is None or (inner[1] is not None and inner[1] <= outer[1]))
