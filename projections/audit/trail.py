"""The audit trail: revisions of entities and their interactions, read from the log.

A query finds positions first, which are small; the rows at these positions are then read in batches. Memory does not
grow with the length of the result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from annals.commands.store.archive.state_reader import StateReader
from annals.commands.store.hashes import Interaction, LogRow
from annals.commands.store.mapper import EventMapper
from annals.domain.registry.events import EntityEvent
from annals.domain.values import xid as xids
from annals.domain.values.batched import batched
from annals.projections.audit.visible_entities import Condition, VisibleEntities
from annals.projections.database.drivers import Database
from annals.projections.log.reader import stored_event, stored_interaction

#: The number of rows held in memory at once.
BATCH: Final = 100

_EVENT_WIDTH: Final = len(LogRow._fields)
_EVENT_COLUMNS: Final = ", ".join(f"l.{name}" for name in LogRow._fields)
_PREVIOUS_COLUMNS: Final = ", ".join(f"b.{name}" for name in LogRow._fields)
_INTERACTION_END: Final = "(SELECT last FROM interaction WHERE last >= l.position ORDER BY last LIMIT 1)"
_SELECT_EVENTS: Final = f"SELECT {_EVENT_COLUMNS} FROM log l WHERE "
_WITHOUT_PREVIOUS: Final = f"SELECT {_EVENT_COLUMNS}, {_INTERACTION_END} FROM log l WHERE "
_WITH_PREVIOUS: Final = (
    f"SELECT {_EVENT_COLUMNS}, {_INTERACTION_END}, {_PREVIOUS_COLUMNS}"
    " FROM log l LEFT JOIN log b ON b.stream = l.stream AND b.revision = l.revision - 1 WHERE "
)
_SELECT_INTERACTIONS: Final = "SELECT * FROM interaction WHERE "

_REVISION_AT: Final = (
    "SELECT revision + ? - position FROM log WHERE position IN (?, ?) AND stream = ? ORDER BY position LIMIT 1"
)
_REVISION_BY: Final = "SELECT revision FROM log WHERE stream = ? AND position <= ? ORDER BY revision DESC LIMIT 1"
POSITIONS_OF_STREAM: Final = (
    "SELECT position FROM log WHERE stream = ? AND revision > ? AND revision <= ? ORDER BY revision"
)
_ALL_POSITIONS: Final = "SELECT position FROM log WHERE position > ? AND position <= ?{} ORDER BY position"
#: The condition that excludes the streams outside the registry's tree; `0` follows `/`.
_IN_TREE: Final = "".join(f" AND NOT ({{0}} >= '{start}' AND {{0}} < '{start[:-1]}0')" for start in xids.OUTSIDE_TREE)
# The plus sign hides the column from its own index: SQLite then reads the subtree's part of the index by stream, not
# the whole log.
POSITIONS_OF_TREE: Final = (
    "SELECT position FROM log WHERE stream >= ? AND stream < ? AND (stream = ? OR stream >= ?)"
    " AND +position > ? AND +position <= ? ORDER BY +position"
)
_POSITIONS_WHERE: Final = "SELECT position FROM log WHERE {} AND +position > ? AND +position <= ?"
_POSITIONS_OF_DEFINITIONS: Final = _POSITIONS_WHERE.format(f"stream IN ('{xids.MODEL}', '{xids.CAPABILITIES}')")
_INTERACTION_ENDS: Final = "SELECT last FROM interaction WHERE last > ? AND last <= ?{} ORDER BY last"
_BY_CALLER: Final = " AND caller = ?"
_POSITIONS_OF_CALLER: Final = (
    "SELECT l.position FROM log l"
    " WHERE (SELECT caller FROM interaction WHERE last >= l.position ORDER BY last LIMIT 1) = ? AND "
)
_WITH_POSITIONS: Final = (
    " AND last IN (SELECT (SELECT i.last FROM interaction i WHERE i.last >= l.position ORDER BY i.last LIMIT 1)"
    " FROM ({}) AS l)"
)
# Entities outside the tree are changed by separate interactions.
_ENDS_IN_TREE: Final = (
    " AND EXISTS (SELECT 1 FROM log WHERE log.position = interaction.last" + _IN_TREE.format("log.stream") + ")"
)
_HAS_EXISTED: Final = "SELECT 1 FROM head WHERE tree_key = ?"
_HAS_EXISTED_BELOW: Final = "SELECT 1 FROM head WHERE {} LIMIT 1"


class LogRange(NamedTuple):
    """The positions after one and up to another, in the order of the log or in reverse."""

    after: int
    until: int
    backwards: bool = False

    def ordered(self, statement: str) -> str:
        """The statement, whose last clause is its order, sorted in this direction."""
        return statement + " DESC" if self.backwards else statement


class Revision(NamedTuple):
    """One event and its interaction.

    previous_event: the previous event of the stream; None for the first one, and when it was not requested.
    """

    position: int
    event: EntityEvent
    interaction: Interaction
    previous_event: EntityEvent | None


class AuditTrail:
    """Queries of the audit trail, see the module. Inside a transaction all results belong to one moment.

    visible: which entities it is about; None for all.
    """

    def __init__(self, db: Database, visible: VisibleEntities | None = None) -> None:
        self._db = db
        self._visible = visible
        self._mapper = EventMapper()
        self._read_state = StateReader(db.all)

    def has_existed(self, xid: str) -> bool:
        """Whether an entity with this xid ever existed, ignoring case."""
        return self._db.one(_HAS_EXISTED, (xids.tree_key(xid),)) is not None

    def has_existed_below(self, xid: str) -> bool:
        """Whether an entity below this xid ever existed."""
        low, high = xids.subtree(xid)
        if self._visible is None:
            return self._db.one(_HAS_EXISTED_BELOW.format("tree_key > ? AND tree_key < ?"), (low, high)) is not None
        keys, values = self._visible.tree_keys(self._db, "tree_key", low, high)
        return self._db.one(_HAS_EXISTED_BELOW.format(keys), values) is not None

    def entity_positions(self, xid: str, log_range: LogRange) -> Iterator[int]:
        """Positions of one entity's events.

        Cost: lookups by stream and revision, whatever the length of the history.
        """
        stream = xids.stream(xid)
        if self._visible is not None and not self._visible.sees_stream(stream):
            return iter(())
        bounds = (stream, self._revision(stream, log_range.after), self._revision(stream, log_range.until))
        return self._first_column(log_range.ordered(POSITIONS_OF_STREAM), bounds)

    def tree_positions(self, xid: str, log_range: LogRange, include_outside_tree: bool = True) -> Iterator[int]:
        """Positions of the events at and below an entity or collection. Cost: O(all events there, whatever the range).

        include_outside_tree: whether entities outside the registry's tree count as below the registry.
        """
        if self._visible is not None:
            query, values = self._visible_positions(self._visible, xid, log_range)
            return self._first_column(log_range.ordered(f"{query} ORDER BY 1"), values)
        if xid == xids.REGISTRY:
            return self._first_column(
                log_range.ordered(_ALL_POSITIONS.format("" if include_outside_tree else _IN_TREE.format("stream"))),
                log_range[:2],
            )
        stream = xids.stream(xid)
        return self._first_column(
            log_range.ordered(POSITIONS_OF_TREE), (stream, f"{stream}0", stream, f"{stream}/", *log_range[:2])
        )

    def positions_by(self, caller: str, positions: Iterable[int]) -> Iterator[int]:
        """Those of some positions whose interactions are of a caller, in their order. Cost: O(positions)."""
        for batch in batched(positions, BATCH):
            statement = _POSITIONS_OF_CALLER + self._db.in_list("l.position")
            found = {row[0] for row in self._db.all(statement, (caller, self._db.list_parameter(batch)))}
            yield from (position for position in batch if position in found)

    def interaction_ends(
        self, log_range: LogRange, caller: str | None = None, include_outside_tree: bool = True
    ) -> Iterator[int]:
        """Last positions of interactions. caller: only interactions of this caller, which scans the whole range.

        include_outside_tree: whether to include interactions that changed something outside the registry's tree.
        """
        values: Sequence[Any] = () if caller is None else (caller,)
        conditions = _BY_CALLER if values else ""
        if self._visible is not None:
            # An interaction may begin before the range that it ends in.
            visible_range = LogRange(0, log_range.until)
            query, query_values = self._visible_positions(self._visible, xids.REGISTRY, visible_range)
            conditions, values = conditions + _WITH_POSITIONS.format(query), (*values, *query_values)
        elif not include_outside_tree:
            conditions += _ENDS_IN_TREE
        return self._first_column(log_range.ordered(_INTERACTION_ENDS.format(conditions)), (*log_range[:2], *values))

    def _visible_positions(self, visible: VisibleEntities, xid: str, log_range: LogRange) -> Condition:
        """A query for the positions of visible events below the registry or a collection, each once, in any order."""
        streams, values = visible.streams(self._db, "stream", xid)
        query, values = _POSITIONS_WHERE.format(streams), (*values, *log_range[:2])
        if xid != xids.REGISTRY:
            return Condition(query, values)
        return Condition(f"{query} UNION ALL {_POSITIONS_OF_DEFINITIONS}", (*values, *log_range[:2]))

    def revisions(self, positions: Iterable[int], before: bool = False) -> Iterator[Revision]:
        """The revisions at some positions, in their order. before: with the previous event of each stream."""
        for batch in batched(positions, BATCH):
            yield from self._revisions(batch, before)

    def interactions_at(self, end_positions: Iterable[int]) -> Iterator[Interaction]:
        """The interactions that end at some positions, in their order."""
        for batch in batched(end_positions, BATCH):
            interactions_by_end = self._interactions(batch)
            yield from (interactions_by_end[last] for last in batch)

    def events_at(self, positions: Sequence[Any]) -> dict[int, EntityEvent]:
        """The events at a few positions."""
        rows = self._db.all(_SELECT_EVENTS + self._db.in_list("l.position"), [self._db.list_parameter(positions)])
        return {row[0]: self._event(row) for row in rows}

    def _revisions(self, batch: Sequence[Any], before: bool) -> Iterator[Revision]:
        statement = (_WITH_PREVIOUS if before else _WITHOUT_PREVIOUS) + self._db.in_list("l.position")
        rows = {row[0]: row for row in self._db.all(statement, [self._db.list_parameter(batch)])}
        interactions_by_end = self._interactions({row[_EVENT_WIDTH] for row in rows.values()})
        for row in map(rows.__getitem__, batch):
            previous_columns = row[_EVENT_WIDTH + 1 :]
            previous_event = (
                self._event(previous_columns) if previous_columns and previous_columns[0] is not None else None
            )
            yield Revision(row[0], self._event(row), interactions_by_end[row[_EVENT_WIDTH]], previous_event)

    def _interactions(self, end_positions: Iterable[Any]) -> dict[int, Interaction]:
        rows = self._db.all(_SELECT_INTERACTIONS + self._db.in_list("last"), [self._db.list_parameter(end_positions)])
        return {interaction.last: interaction for interaction in map(stored_interaction, rows)}

    def _revision(self, stream: str, position: int) -> int:
        """The revision of a stream's last event up to a position.

        Cost: one lookup if that position or the next one is in the stream, as it is from page to page.
        """
        adjacent_row = self._db.one(_REVISION_AT, (position, position, position + 1, stream))
        row = adjacent_row or self._db.one(_REVISION_BY, (stream, position))
        return row[0] if row else 0

    def _event(self, row: Sequence[Any]) -> EntityEvent:
        return self._mapper.event_of_row(stored_event(row[:_EVENT_WIDTH], self._read_state))

    def _first_column(self, statement: str, values: Sequence[Any]) -> Iterator[int]:
        return (row[0] for row in self._db.stream(statement, values))
