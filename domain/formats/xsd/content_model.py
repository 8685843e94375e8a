"""Content models as regular expressions over element names, and whether one includes another.

A wildcard of the reader matches whatever the writer declares. A wildcard of the writer is open content, so the reader
must be open there too. The elements that fill it might have the name of an element that the reader declares; this is
ignored, because producers emit declared fields only (SC-36).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

#: Maximum nodes of models that one comparison visits; beyond that the result is undecided.
_MOST: Final = 100_000


@dataclass(frozen=True, slots=True)
class ElementName:
    name: str


@dataclass(frozen=True, slots=True)
class NamespaceWildcard:
    """A wildcard for names whose namespace is one of these, or (excluding) none of these.

    strictness: 0 for `skip`, 1 for `lax`, 2 for `strict`.
    """

    namespaces: frozenset[str]
    excluding: bool
    strictness: int
    not_names: frozenset[str] = frozenset()

    def allows_name(self, name: str) -> bool:
        uri = name[1:].partition("}")[0] if name.startswith("{") else ""
        return (uri in self.namespaces) != self.excluding and name not in self.not_names

    def covers(self, other: NamespaceWildcard) -> bool:
        """Whether the wildcard matches everything that another matches, and is not stricter."""
        if self.strictness > other.strictness or not self.not_names <= other.not_names:
            return False
        if other.excluding:
            return self.excluding and self.namespaces <= other.namespaces
        if self.excluding:
            return not self.namespaces & other.namespaces
        return other.namespaces <= self.namespaces


@dataclass(frozen=True, slots=True)
class SequenceGroup:
    items: tuple[ContentModel, ...]


@dataclass(frozen=True, slots=True)
class ChoiceGroup:
    items: tuple[ContentModel, ...]


@dataclass(frozen=True, slots=True)
class AllGroup:
    """Items in any order, possibly interleaved."""

    items: tuple[ContentModel, ...]


@dataclass(frozen=True, slots=True)
class Repetition:
    item: ContentModel
    least: int
    most: int | None


ContentSymbol = ElementName | NamespaceWildcard
ContentModel = ElementName | NamespaceWildcard | SequenceGroup | ChoiceGroup | AllGroup | Repetition

EMPTY_CONTENT: Final = SequenceGroup(())
UNMATCHABLE: Final = ChoiceGroup(())


def sequence_of(items: list[ContentModel]) -> ContentModel:
    """The items one after the other, simplified."""
    flat: list[ContentModel] = []
    for item in items:
        if item == UNMATCHABLE:
            return UNMATCHABLE
        flat.extend(item.items if isinstance(item, SequenceGroup) else [item])
    return flat[0] if len(flat) == 1 else SequenceGroup(tuple(flat))


def choice_of(items: list[ContentModel]) -> ContentModel:
    """One of the items, simplified."""
    flat: dict[ContentModel, None] = {}
    for item in items:
        flat.update(dict.fromkeys(item.items if isinstance(item, ChoiceGroup) else [item]))
    return next(iter(flat)) if len(flat) == 1 else ChoiceGroup(tuple(flat))


def all_of(items: list[ContentModel]) -> ContentModel:
    """All items in any order, simplified."""
    left = [item for item in items if item != EMPTY_CONTENT]
    if UNMATCHABLE in left:
        return UNMATCHABLE
    return EMPTY_CONTENT if not left else left[0] if len(left) == 1 else AllGroup(tuple(left))


def repeat(item: ContentModel, least: int, most: int | None) -> ContentModel:
    """A repeated item, simplified."""
    if most == 0 or item == EMPTY_CONTENT:
        return EMPTY_CONTENT
    if item == UNMATCHABLE:
        return EMPTY_CONTENT if least == 0 else UNMATCHABLE
    return item if least == most == 1 else Repetition(item, least, most)


def is_nullable(term: ContentModel) -> bool:
    """Whether a model accepts empty content."""
    match term:
        case ElementName() | NamespaceWildcard():
            return False
        case SequenceGroup(items) | AllGroup(items):
            return all(map(is_nullable, items))
        case ChoiceGroup(items):
            return any(map(is_nullable, items))
        case Repetition(item, least, _):
            return least == 0 or is_nullable(item)


def symbols(term: ContentModel) -> set[ContentSymbol]:
    """All names and wildcards in a model."""
    match term:
        case ElementName() | NamespaceWildcard():
            return {term}
        case SequenceGroup(items) | AllGroup(items) | ChoiceGroup(items):
            return {symbol for item in items for symbol in symbols(item)}
        case Repetition(item, _, _):
            return symbols(item)


def occurrence_counts(term: ContentModel) -> dict[str, tuple[int, int | None]]:
    """The minimum and maximum occurrences of each name; None: unlimited."""
    match term:
        case ElementName(name):
            return {name: (1, 1)}
        case NamespaceWildcard():
            return {}
        case Repetition(item, least, most):
            return {
                name: (low * least, None if most is None or high is None else high * most)
                for name, (low, high) in occurrence_counts(item).items()
            }
        case ChoiceGroup(items):
            found = [occurrence_counts(item) for item in items]
            return {
                name: (min(low for low, _ in ranges), _largest([high for _, high in ranges]))
                for name in dict.fromkeys(name for part in found for name in part)
                for ranges in [[part.get(name, (0, 0)) for part in found]]
            }
        case SequenceGroup(items) | AllGroup(items):
            total: dict[str, tuple[int, int | None]] = {}
            for item in items:
                for name, (low, high) in occurrence_counts(item).items():
                    before, top = total.get(name, (0, 0))
                    total[name] = before + low, None if top is None or high is None else top + high
            return total


def _largest(tops: list[int | None]) -> int | None:
    known = [top for top in tops if top is not None]
    return max(known) if len(known) == len(tops) else None


def first_symbols(term: ContentModel) -> set[ContentSymbol]:
    """The symbols that content may start with."""
    match term:
        case ElementName() | NamespaceWildcard():
            return {term}
        case SequenceGroup(items):
            found: set[ContentSymbol] = set()
            for item in items:
                found |= first_symbols(item)
                if not is_nullable(item):
                    break
            return found
        case AllGroup(items) | ChoiceGroup(items):
            return {symbol for item in items for symbol in first_symbols(item)}
        case Repetition(item, _, _):
            return first_symbols(item)


def derivative(term: ContentModel, symbol: ContentSymbol) -> ContentModel:
    """The model of the content after a first symbol (its Brzozowski derivative); UNMATCHABLE if it cannot be first."""
    match term:
        case ElementName() | NamespaceWildcard():
            return EMPTY_CONTENT if _matches_symbol(term, symbol) else UNMATCHABLE
        case ChoiceGroup(items):
            return choice_of([derivative(item, symbol) for item in items])
        case Repetition(item, least, most):
            rest = repeat(item, max(least - 1, 0), None if most is None else most - 1)
            return sequence_of([derivative(item, symbol), rest])
        case AllGroup(items):
            return choice_of(
                [all_of([*items[:at], derivative(item, symbol), *items[at + 1 :]]) for at, item in enumerate(items)]
            )
        case SequenceGroup(items):
            ways: list[ContentModel] = []
            for at, item in enumerate(items):
                ways.append(sequence_of([derivative(item, symbol), *items[at + 1 :]]))
                if not is_nullable(item):
                    break
            return choice_of(ways)


def _matches_symbol(atom: ElementName | NamespaceWildcard, symbol: ContentSymbol) -> bool:
    if isinstance(atom, ElementName):
        return atom == symbol
    return atom.allows_name(symbol.name) if isinstance(symbol, ElementName) else atom.covers(symbol)


def find_counterexample(writer: ContentModel, reader: ContentModel) -> tuple[str, ...] | None:
    """The names of a shortest content that the writer allows and the reader does not; None where there is none.

    Raises: LookupError where the bound is reached without a result. Where the models differ only in ways that SC-36
    allows, no search is needed, and the cost is about O(size of both).
    """
    if _is_subset(writer, reader):
        return None
    seen, work = {(writer, reader)}, 0
    waiting: deque[tuple[ContentModel, ContentModel, tuple[str, ...]]] = deque([(writer, reader, ())])
    while waiting:
        ours, theirs, path = waiting.popleft()
        if theirs == UNMATCHABLE or (is_nullable(ours) and not is_nullable(theirs)):
            return path
        for symbol in sorted(first_symbols(ours), key=_symbol_text):
            work += _size(ours) + _size(theirs)
            if work > _MOST:
                raise LookupError
            pair = derivative(ours, symbol), derivative(theirs, symbol)
            if pair not in seen and not _is_subset(*pair):
                seen.add(pair)
                waiting.append((*pair, (*path, _symbol_text(symbol))))
    return None


def _size(term: ContentModel) -> int:
    match term:
        case ElementName() | NamespaceWildcard():
            return 1
        case Repetition(item, _, _):
            return 1 + _size(item)
        case SequenceGroup(items) | AllGroup(items) | ChoiceGroup(items):
            return 1 + sum(map(_size, items))


def _symbol_text(symbol: ContentSymbol) -> str:
    return symbol.name if isinstance(symbol, ElementName) else "*"


def _is_subset(writer: ContentModel, reader: ContentModel) -> bool:
    """Whether the structure alone proves that the reader allows all that the writer does; False proves nothing."""
    if writer in (reader, UNMATCHABLE):
        return True
    if isinstance(writer, ChoiceGroup):
        among = frozenset(reader.items) if isinstance(reader, ChoiceGroup) else frozenset[ContentModel]()
        return all(item in among or _is_subset(item, reader) for item in writer.items)
    if isinstance(writer, Repetition) and writer.least == 0 and writer.most == 1:
        return is_nullable(reader) and _is_subset(writer.item, reader)
    match reader:
        case ElementName() | NamespaceWildcard():
            return isinstance(writer, ElementName | NamespaceWildcard) and _matches_symbol(reader, writer)
        case ChoiceGroup(items):
            return any(_is_subset(writer, item) for item in items)
        case Repetition(item, least, most):
            if isinstance(writer, Repetition):
                fits = least <= writer.least and (most is None or (writer.most is not None and writer.most <= most))
                return fits and _is_subset(writer.item, item)
            return (least <= 1 and _is_subset(writer, item)) or (writer == EMPTY_CONTENT and is_nullable(reader))
        case AllGroup(items):
            return _is_all_subset(writer, items)
        case SequenceGroup(items):
            return _is_sequence_subset(writer.items if isinstance(writer, SequenceGroup) else (writer,), items)


def _is_sequence_subset(writer: tuple[ContentModel, ...], reader: tuple[ContentModel, ...]) -> bool:
    at = 0
    for item in reader:
        if at < len(writer) and _is_subset(writer[at], item):
            at += 1
        elif not is_nullable(item):
            return False
    return at == len(writer)


def _is_all_subset(writer: ContentModel, reader: tuple[ContentModel, ...]) -> bool:
    """Compares names with counts in any order: the ranges of counts decide, regardless of the writer's order."""
    if any(isinstance(symbol, NamespaceWildcard) for item in (writer, *reader) for symbol in symbols(item)):
        return _pairwise(writer.items, reader) if isinstance(writer, AllGroup) else False
    if not all(
        isinstance(item, ElementName) or (isinstance(item, Repetition) and isinstance(item.item, ElementName))
        for item in reader
    ):
        return False
    ours, theirs = occurrence_counts(writer), occurrence_counts(AllGroup(reader))
    return all(is_within(ours.get(name, (0, 0)), theirs.get(name, (0, 0))) for name in {**ours, **theirs})


def _pairwise(writer: tuple[ContentModel, ...], reader: tuple[ContentModel, ...]) -> bool:
    left = list(reader)
    for item in writer:
        fitting = next((other for other in left if _is_subset(item, other)), None)
        if fitting is None:
            return False
        left.remove(fitting)
    return all(map(is_nullable, left))


def is_within(inner: tuple[int, int | None], outer: tuple[int, int | None]) -> bool:
    """Whether one range of counts is inside of another."""
    return outer[0] <= inner[0] and (outer[1] is None or (inner[1] is not None and inner[1] <= outer[1]))
