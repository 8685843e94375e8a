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
_MAX_NODES: Final = 100_000


@dataclass(frozen=True, slots=True)
class ElementName:
    name: str


@dataclass(frozen=True, slots=True)
class NamespaceWildcard:
    """A wildcard for names whose namespace is one of these, or (excluding) none of these.

    strictness: 0 for `skip`, 1 for `lax`, 2 for `strict`.
    """

    namespaces: frozenset[str]
    is_excluding: bool
    strictness: int
    not_names: frozenset[str] = frozenset()

    def allows_name(self, name: str) -> bool:
        uri = name[1:].partition("}")[0] if name.startswith("{") else ""
        return (uri in self.namespaces) != self.is_excluding and name not in self.not_names

    def is_superset_of(self, other: NamespaceWildcard) -> bool:
        """Whether the wildcard matches everything that another matches, and is not stricter."""
        if self.strictness > other.strictness or not self.not_names <= other.not_names:
            return False
        if other.is_excluding:
            return self.is_excluding and self.namespaces <= other.namespaces
        if self.is_excluding:
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
    minimum: int
    maximum: int | None


ContentSymbol = ElementName | NamespaceWildcard
ContentModel = ElementName | NamespaceWildcard | SequenceGroup | ChoiceGroup | AllGroup | Repetition

EMPTY_CONTENT: Final = SequenceGroup(())
UNMATCHABLE: Final = ChoiceGroup(())


def sequence_of(items: list[ContentModel]) -> ContentModel:
    """The items one after the other, simplified."""
    flattened: list[ContentModel] = []
    for item in items:
        if item == UNMATCHABLE:
            return UNMATCHABLE
        flattened.extend(item.items if isinstance(item, SequenceGroup) else [item])
    return flattened[0] if len(flattened) == 1 else SequenceGroup(tuple(flattened))


def choice_of(items: list[ContentModel]) -> ContentModel:
    """One of the items, simplified."""
    flattened: dict[ContentModel, None] = {}
    for item in items:
        flattened.update(dict.fromkeys(item.items if isinstance(item, ChoiceGroup) else [item]))
    return next(iter(flattened)) if len(flattened) == 1 else ChoiceGroup(tuple(flattened))


def all_of(items: list[ContentModel]) -> ContentModel:
    """All items in any order, simplified."""
    non_empty = [item for item in items if item != EMPTY_CONTENT]
    if UNMATCHABLE in non_empty:
        return UNMATCHABLE
    return EMPTY_CONTENT if not non_empty else non_empty[0] if len(non_empty) == 1 else AllGroup(tuple(non_empty))


def repeat(item: ContentModel, minimum: int, maximum: int | None) -> ContentModel:
    """A repeated item, simplified."""
    if maximum == 0 or item == EMPTY_CONTENT:
        return EMPTY_CONTENT
    if item == UNMATCHABLE:
        return EMPTY_CONTENT if minimum == 0 else UNMATCHABLE
    return item if minimum == maximum == 1 else Repetition(item, minimum, maximum)


def is_nullable(content_model: ContentModel) -> bool:
    """Whether a model accepts empty content."""
    match content_model:
        case ElementName() | NamespaceWildcard():
            return False
        case SequenceGroup(items) | AllGroup(items):
            return all(map(is_nullable, items))
        case ChoiceGroup(items):
            return any(map(is_nullable, items))
        case Repetition(item, minimum, _):
            return minimum == 0 or is_nullable(item)


def symbols(content_model: ContentModel) -> set[ContentSymbol]:
    """All names and wildcards in a model."""
    match content_model:
        case ElementName() | NamespaceWildcard():
            return {content_model}
        case SequenceGroup(items) | AllGroup(items) | ChoiceGroup(items):
            return {symbol for item in items for symbol in symbols(item)}
        case Repetition(item, _, _):
            return symbols(item)


def occurrence_counts(content_model: ContentModel) -> dict[str, tuple[int, int | None]]:
    """The minimum and maximum occurrences of each name; None: unlimited."""
    match content_model:
        case ElementName(name):
            return {name: (1, 1)}
        case NamespaceWildcard():
            return {}
        case Repetition(item, minimum, maximum):
            return {
                name: (
                    item_minimum * minimum,
                    None if maximum is None or item_maximum is None else item_maximum * maximum,
                )
                for name, (item_minimum, item_maximum) in occurrence_counts(item).items()
            }
        case ChoiceGroup(items):
            item_counts = [occurrence_counts(item) for item in items]
            return {
                name: (
                    min(item_minimum for item_minimum, _ in ranges),
                    _maximum([item_maximum for _, item_maximum in ranges]),
                )
                for name in dict.fromkeys(name for counts in item_counts for name in counts)
                for ranges in [[counts.get(name, (0, 0)) for counts in item_counts]]
            }
        case SequenceGroup(items) | AllGroup(items):
            total: dict[str, tuple[int, int | None]] = {}
            for item in items:
                for name, (item_minimum, item_maximum) in occurrence_counts(item).items():
                    total_minimum, total_maximum = total.get(name, (0, 0))
                    total[name] = (
                        total_minimum + item_minimum,
                        None if total_maximum is None or item_maximum is None else total_maximum + item_maximum,
                    )
            return total


def _maximum(maxima: list[int | None]) -> int | None:
    known = [maximum for maximum in maxima if maximum is not None]
    return max(known) if len(known) == len(maxima) else None


def first_symbols(content_model: ContentModel) -> set[ContentSymbol]:
    """The symbols that content may start with."""
    match content_model:
        case ElementName() | NamespaceWildcard():
            return {content_model}
        case SequenceGroup(items):
            symbols_so_far: set[ContentSymbol] = set()
            for item in items:
                symbols_so_far |= first_symbols(item)
                if not is_nullable(item):
                    break
            return symbols_so_far
        case AllGroup(items) | ChoiceGroup(items):
            return {symbol for item in items for symbol in first_symbols(item)}
        case Repetition(item, _, _):
            return first_symbols(item)


def derivative(content_model: ContentModel, symbol: ContentSymbol) -> ContentModel:
    """The model of the content after a first symbol (its Brzozowski derivative); UNMATCHABLE if it cannot be first."""
    match content_model:
        case ElementName() | NamespaceWildcard():
            return EMPTY_CONTENT if _matches_symbol(content_model, symbol) else UNMATCHABLE
        case ChoiceGroup(items):
            return choice_of([derivative(item, symbol) for item in items])
        case Repetition(item, minimum, maximum):
            remaining = repeat(item, max(minimum - 1, 0), None if maximum is None else maximum - 1)
            return sequence_of([derivative(item, symbol), remaining])
        case AllGroup(items):
            return choice_of(
                [
                    all_of([*items[:index], derivative(item, symbol), *items[index + 1 :]])
                    for index, item in enumerate(items)
                ]
            )
        case SequenceGroup(items):
            alternatives: list[ContentModel] = []
            for index, item in enumerate(items):
                alternatives.append(sequence_of([derivative(item, symbol), *items[index + 1 :]]))
                if not is_nullable(item):
                    break
            return choice_of(alternatives)


def _matches_symbol(particle: ElementName | NamespaceWildcard, symbol: ContentSymbol) -> bool:
    if isinstance(particle, ElementName):
        return particle == symbol
    return particle.allows_name(symbol.name) if isinstance(symbol, ElementName) else particle.is_superset_of(symbol)


def find_counterexample(writer: ContentModel, reader: ContentModel) -> tuple[str, ...] | None:
    """The names of a shortest content that the writer allows and the reader does not; None where there is none.

    Raises: LookupError where the bound is reached without a result. Where the models differ only in ways that SC-36
    allows, no search is needed, and the cost is about O(size of both).
    """
    if _is_subset(writer, reader):
        return None
    seen, steps = {(writer, reader)}, 0
    pending: deque[tuple[ContentModel, ContentModel, tuple[str, ...]]] = deque([(writer, reader, ())])
    while pending:
        writer_model, reader_model, path = pending.popleft()
        if reader_model == UNMATCHABLE or (is_nullable(writer_model) and not is_nullable(reader_model)):
            return path
        for symbol in sorted(first_symbols(writer_model), key=_symbol_text):
            steps += _model_size(writer_model) + _model_size(reader_model)
            if steps > _MAX_NODES:
                raise LookupError
            pair = derivative(writer_model, symbol), derivative(reader_model, symbol)
            if pair not in seen and not _is_subset(*pair):
                seen.add(pair)
                pending.append((*pair, (*path, _symbol_text(symbol))))
    return None


def _model_size(content_model: ContentModel) -> int:
    match content_model:
        case ElementName() | NamespaceWildcard():
            return 1
        case Repetition(item, _, _):
            return 1 + _model_size(item)
        case SequenceGroup(items) | AllGroup(items) | ChoiceGroup(items):
            return 1 + sum(map(_model_size, items))


def _symbol_text(symbol: ContentSymbol) -> str:
    return symbol.name if isinstance(symbol, ElementName) else "*"


def _is_subset(writer: ContentModel, reader: ContentModel) -> bool:
    """Whether the structure alone proves that the reader allows all that the writer does; False proves nothing."""
    if writer in (reader, UNMATCHABLE):
        return True
    if isinstance(writer, ChoiceGroup):
        reader_items = frozenset(reader.items) if isinstance(reader, ChoiceGroup) else frozenset[ContentModel]()
        return all(item in reader_items or _is_subset(item, reader) for item in writer.items)
    if isinstance(writer, Repetition) and writer.minimum == 0 and writer.maximum == 1:
        return is_nullable(reader) and _is_subset(writer.item, reader)
    match reader:
        case ElementName() | NamespaceWildcard():
            return isinstance(writer, ElementName | NamespaceWildcard) and _matches_symbol(reader, writer)
        case ChoiceGroup(items):
            return any(_is_subset(writer, item) for item in items)
        case Repetition(item, minimum, maximum):
            if isinstance(writer, Repetition):
                is_in_range = minimum <= writer.minimum and (
                    maximum is None or (writer.maximum is not None and writer.maximum <= maximum)
                )
                return is_in_range and _is_subset(writer.item, item)
            return (minimum <= 1 and _is_subset(writer, item)) or (writer == EMPTY_CONTENT and is_nullable(reader))
        case AllGroup(items):
            return _is_all_subset(writer, items)
        case SequenceGroup(items):
            return _is_sequence_subset(writer.items if isinstance(writer, SequenceGroup) else (writer,), items)


def _is_sequence_subset(writer: tuple[ContentModel, ...], reader: tuple[ContentModel, ...]) -> bool:
    index = 0
    for item in reader:
        if index < len(writer) and _is_subset(writer[index], item):
            index += 1
        elif not is_nullable(item):
            return False
    return index == len(writer)


def _is_all_subset(writer: ContentModel, reader: tuple[ContentModel, ...]) -> bool:
    """Compares names with counts in any order: the ranges of counts decide, regardless of the writer's order."""
    if any(isinstance(symbol, NamespaceWildcard) for item in (writer, *reader) for symbol in symbols(item)):
        return _is_pairwise_subset(writer.items, reader) if isinstance(writer, AllGroup) else False
    if not all(
        isinstance(item, ElementName) or (isinstance(item, Repetition) and isinstance(item.item, ElementName))
        for item in reader
    ):
        return False
    writer_counts, reader_counts = occurrence_counts(writer), occurrence_counts(AllGroup(reader))
    return all(
        is_within(writer_counts.get(name, (0, 0)), reader_counts.get(name, (0, 0)))
        for name in {**writer_counts, **reader_counts}
    )


def _is_pairwise_subset(writer: tuple[ContentModel, ...], reader: tuple[ContentModel, ...]) -> bool:
    remaining = list(reader)
    for item in writer:
        matching = next((other for other in remaining if _is_subset(item, other)), None)
        if matching is None:
            return False
        remaining.remove(matching)
    return all(map(is_nullable, remaining))


def is_within(inner: tuple[int, int | None], outer: tuple[int, int | None]) -> bool:
    """Whether one range of counts is inside of another."""
    return outer[0] <= inner[0] and (outer[1] is None or (inner[1] is not None and inner[1] <= outer[1]))
