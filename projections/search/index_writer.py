"""Writes the search index: entities that have changed, merges, and all entities again."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, NamedTuple

from annals.commands.store.database.driver_errors import is_lock_timeout, postgres_errors
from annals.commands.store.mapper import UnreadableEvent
from annals.domain.decisions.checks.document_checks import CheckResult, DocumentCheck, FormatCheck
from annals.domain.formats import find_format
from annals.domain.formats.fields import SchemaField
from annals.domain.search.fields_check import FieldsCheck, read_fields
from annals.domain.search.texts import SearchedEntity, is_searched, searched_entity
from annals.domain.values import xid as xids
from annals.domain.values.json_text import loads_trusted
from annals.projections.database.drivers import Database
from annals.projections.database.state_database import StateDatabase
from annals.projections.entities.changed_rows import changed_keys, rows_as_of
from annals.projections.entities.entity_documents import MissingDocument
from annals.projections.entities.rows import ROW_COLUMNS, EntityRow, stored_row
from annals.projections.entities.view import View
from annals.projections.entities.view_pool import ViewPool
from annals.projections.search import segments, tables
from annals.projections.search.blocks import encode_entity
from annals.projections.search.gone_numbers import Numbers, read_gone, write_gone
from annals.projections.search.index_reader import IndexReader
from annals.projections.search.segments import YIELD_SECONDS, SegmentRows, new_segment
from annals.projections.search.tables import UnreadableIndex, find_position, save_position
from annals.projections.search.words_of_entity import entity_words

#: The most events whose entities are written together.
MAX_EVENTS: Final = 500
#: The most entities that are written together when all are.
PAGE_SIZE: Final = 1000
#: The part of the entities that merges may replace before the tables are packed.
PACKED_PART: Final = 0.1
#: Entities after which other threads get a turn: about one millisecond of work.
_SLICE_SIZE: Final = 5
_COLUMNS: Final = ", ".join(ROW_COLUMNS)
_SELECT_PAGE: Final = f"SELECT {_COLUMNS} FROM entity WHERE tree_key > ? ORDER BY tree_key LIMIT {PAGE_SIZE}"
_NEXT_NUMBER: Final = "SELECT coalesce(max(high), 0) + 1 FROM search_segment"

#: Runs checks of documents; the second argument returns bytes by SHA-256, in other threads too.
RunChecks = Callable[[Iterable[DocumentCheck], Callable[[str], bytes]], Mapping[DocumentCheck, CheckResult]]
#: Called with the number of entities done and the number of all.
ProgressCallback = Callable[[int, int], None]


class _OtherIndex(Exception):
    """Another process has begun another index."""


class _IndexState(NamedTuple):
    """What writers change, each something of it. segments: their ranges and sizes. gone: see `gone_numbers.py`."""

    generation: int
    position: int | None
    segments: Sequence[tuple[int, int, int]]
    gone: Numbers

    @classmethod
    def read(cls, db: Database) -> _IndexState:
        """That of the index. Raises: UnreadableIndex."""
        return cls(tables.generation(db), find_position(db), segments.ranges(db), read_gone(db))


class _Page(NamedTuple):
    """What replaces some entities in the index. position: in the log, at which they were read. keys: of all of them.

    rows: the segment with those that a search finds; None if it finds none.
    """

    position: int
    keys: Sequence[str]
    rows: SegmentRows | None


def _write(db: Database, replaced: Numbers, rows: SegmentRows | None) -> None:
    """Writes a segment in place of some numbers, in a transaction that excludes other writers of the index."""
    gone = read_gone(db)
    write_gone(db, gone, gone | replaced)
    if rows is not None:
        (low,) = db.one(_NEXT_NUMBER)
        rows.insert(db, low)


@dataclass(frozen=True)
class IndexWriter:
    """Writes the index of a store. For one thread.

    readers: read the registry. store: writes. check: reads fields of documents in bounded processes.
    """

    readers: ViewPool
    store: StateDatabase
    check: RunChecks

    def catch_up(self) -> bool:
        """Writes what changed in the next events after the index's position.

        Returns: whether there were more when it began, or another process was faster, so that it is to be called again.
        Events that came later wait, so that they are written together.
        Raises: one of `driver_errors()`.
        """
        with self.readers.view() as view:
            state, head = _IndexState.read(view.database), view.position()
            position = state.position
            if position == head:
                return False
            if position is not None and position < head:
                until = min(position + MAX_EVENTS, head)
                replaced, rows = self._changes(view, position, until)
        if position is None or position > head:  # of an index that was never complete, or of another log
            self.write_all()
            return True
        with self.store.writing() as db:
            self._lock(db)
            if _IndexState.read(db) != state:  # another process was faster
                return True
            _write(db, replaced, rows)
            save_position(db, until)
        return until < head

    def merge(self, fan_out: int = segments.FAN_OUT) -> int:
        """Merges some segments; how many entities these have, 0 if there are none. Raises: one of `driver_errors()`."""
        with self.readers.view() as view:
            generation = tables.generation(view.database)
            found = segments.mergeable(segments.all_segments(view.database), fan_out)
            if not found:
                return 0
            merged = segments.merge_segments(view.database, found)
        with self.store.writing() as db:
            is_replaced = self._lock(db, generation) and segments.replace(db, merged)
            return merged.rows.segment.size if is_replaced else 0

    def is_worth_packing(self, merged: int) -> bool:
        """Whether merges of so many entities have replaced a good part of the tables."""
        with self.readers.view() as view:
            total = sum(segment.size for segment in segments.all_segments(view.database))
        return merged > total * PACKED_PART

    def pack(self) -> None:
        """Frees the space of what was replaced, which PostgreSQL otherwise keeps in its tables.

        Raises: one of `driver_errors()`.
        """
        if self.store.is_sqlite:
            return
        for table in tables.METADATA.sorted_tables:  # one at a time: a search may hold one and wait for another
            try:
                with self.store.writing() as db:
                    tables.pack(db, table.name)
            except postgres_errors("OperationalError") as error:
                if not is_lock_timeout(error):
                    raise

    def write_all(self, progress: ProgressCallback = lambda done, total: None) -> int:
        """Writes all entities again, and removes what was there before; returns their number.

        Searches find each entity meanwhile, as it was or as it is, unless the index is damaged. Changes since the
        beginning follow by `catch_up`. Several processes may do it at the same time. Raises: one of `driver_errors()`.
        """
        try:
            return self._write_all(progress)
        except _OtherIndex:
            pass
        except UnreadableIndex:  # it cannot be replaced a page at a time
            with self.store.writing() as db:
                self._lock(db)
                tables.clear(db)
        return self._write_all(progress)

    def _write_all(self, progress: ProgressCallback) -> int:
        with self.readers.view() as view:
            start, total = view.position(), view.database.one("SELECT count(*) FROM entity")[0]
            generation, (first_number,) = tables.generation(view.database), view.database.one(_NEXT_NUMBER)
        done = 0
        for page in self._all_pages():
            with self._writing(generation) as db:
                position = find_position(db)
                if position is not None and position > page.position:  # another process has written what is newer
                    save_position(db, page.position)
                _write(db, IndexReader(db).numbers_of_keys(page.keys), page.rows)
            self._merge_all()
            done += len(page.keys)
            progress(min(done, total), total)
        with self._writing(generation) as db:
            segments.remove_before(db, first_number)
            if find_position(db) is None:
                save_position(db, start)
        self._merge_all()
        self.pack()
        return done

    def _merge_all(self) -> None:
        while self.merge():
            pass

    @contextmanager
    def _writing(self, generation: int) -> Iterator[Database]:
        """A transaction that excludes other writers of the index. Raises: _OtherIndex if it is another one by now."""
        with self.store.writing() as db:
            if not self._lock(db, generation):
                raise _OtherIndex
            yield db

    def _lock(self, db: Database, generation: int | None = None) -> bool:
        """Excludes other writers until the end of the transaction; whether the index is still that of a generation."""
        if not self.store.is_sqlite:
            db.run("LOCK TABLE search_segment IN SHARE ROW EXCLUSIVE MODE")
        return generation is None or tables.generation(db) == generation

    def _all_pages(self) -> Iterator[_Page]:
        key = ""
        while True:
            with self.readers.view() as view:
                rows = [stored_row(values) for values in view.database.all(_SELECT_PAGE, (key,))]
                entities = ((entity, encode_entity(entity)) for entity in self._searched(view, rows))
                page = _Page(view.position(), [row.tree_key for row in rows], _segment_of(entities))
            if not rows:
                return
            key = rows[-1].tree_key
            yield page

    def _changes(self, view: View, after: int, until: int) -> tuple[Numbers, SegmentRows | None]:
        """What events change: numbers that are replaced, and the segment that replaces them.

        An entity whose texts stay, such as a Group that gets another Resource, keeps its number.
        """
        keys = changed_keys(view.database, after, until)
        stored = IndexReader(view.database).live_entities(keys)
        rows = rows_as_of(view.database, keys, None).values()
        encoded = [(entity, encode_entity(entity)) for entity in self._searched(view, rows)]
        kept = {row for _, row in encoded} & stored.keys()
        replaced = Numbers(number for row, number in stored.items() if row not in kept)
        return replaced, _segment_of(each for each in encoded if each[1] not in kept)

    def _searched(self, view: View, rows: Iterable[EntityRow]) -> Iterator[SearchedEntity]:
        """Those of some entities that a search finds."""
        with_attributes = ((row, loads_trusted(row.attributes)) for row in rows)
        found = [(row, attributes) for row, attributes in with_attributes if is_searched(row.type, attributes)]
        checks = {row.xid: check for row, attributes in found if (check := _fields_check(row, attributes))}
        fields = self._fields(view, set(checks.values()))
        for row, attributes in found:
            check = checks.get(row.xid)
            yield searched_entity(row.xid, row.type, attributes, fields.get(check, ()) if check else ())

    def _fields(self, view: View, checks: Collection[FieldsCheck]) -> dict[FieldsCheck, list[SchemaField]]:
        """The fields of documents that exist; a damaged store has lost some."""
        small = view.small_documents({check.document.sha256 for check in checks}) if checks else {}

        def load(sha256: str) -> bytes:
            content = small.get(sha256)
            return self.readers.quick_view().document(sha256) if content is None else content

        existing = [check for check in checks if _can_load(load, check.document.sha256)]
        results = self.check(existing, load) if existing else {}
        return {check: read_fields(results[check]) for check in existing}


def _segment_of(entities: Iterable[tuple[SearchedEntity, bytes]]) -> SegmentRows | None:
    """A segment of entities, each with its row; None for no entities."""
    words: dict[str, list[int]] = {}
    keys: list[str] = []
    texts: list[bytes] = []
    for number, (entity, row) in enumerate(entities):
        for word in entity_words(entity):
            words.setdefault(word, []).append(number)
        keys.append(xids.tree_key(entity.xid))
        texts.append(row)
        if number % _SLICE_SIZE == 0:
            time.sleep(YIELD_SECONDS)
    return new_segment(words, keys, texts) if keys else None


def _can_load(load: Callable[[str], bytes], sha256: str) -> bool:
    try:
        load(sha256)
    except (MissingDocument, UnreadableEvent):
        return False
    return True


def _fields_check(row: EntityRow, attributes: Mapping[str, object]) -> FieldsCheck | None:
    """What reads the fields of an entity's document; None if it has none."""
    format = attributes.get("format")
    if not row.document or not isinstance(format, str) or find_format(format) is None:
        return None
    return FieldsCheck(FormatCheck(format.lower(), row.document))
