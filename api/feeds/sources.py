"""The sources of feeds: the lines of each log position, as CloudEvents or as stored."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Final, Protocol

from annals.api.feeds.formats import PositionLines
from annals.api.feeds.rights import VisibilityTest, is_public_stream
from annals.api.feeds.selection import EventSelection
from annals.commands.store.hashes import Interaction, LogRow
from annals.projections.events.event_families import EventFamily, published_events
from annals.projections.events.feed import OpenLog, interactions, page_end
from annals.projections.log.json_lines import LogLine, log_lines

#: Number of skipped positions after which a reader learns how far the feed is, without waiting for a selected event.
MAX_SILENT_POSITIONS: Final = 100


class FeedSource(Protocol):
    """One feed, as one reader may see it.

    limits_by_count: whether a limit is reached by counting, because only reading the events shows which are selected.
    share_key: a key; readers with equal keys receive the same pieces. None if readers share nothing.
    """

    @property
    def limits_by_count(self) -> bool: ...
    @property
    def share_key(self) -> Hashable | None: ...

    def groups(self, after: int, end: int) -> Iterator[PositionLines]:
        """The lines of the positions after one and up to another. A group without lines reports progress only."""

    def end(self, after: int, limit: int | None) -> int:
        """The end of a response with `limit` events that begins after a position. limit: None for any number."""


class EventFeedSource:
    """CloudEvents of some families: a position has several, and the reader selects some of them."""

    limits_by_count: Final = True

    def __init__(
        self,
        open_log: OpenLog,
        selection: EventSelection,
        families: Sequence[EventFamily],
        share_key: Hashable | None = None,
    ) -> None:
        """share_key: equal for readers that select and see the same events; None if it is not known."""
        self.share_key: Hashable | None = share_key
        self._open_log = open_log
        self._selection = selection
        self._test = selection.accepts if selection.tests else None
        self._families = families

    def groups(self, after: int, end: int) -> Iterator[PositionLines]:
        """See FeedSource."""
        for interaction, rows in interactions(
            self._open_log, *self._selection.position_range(self._open_log(), after, end)
        ):
            if self._selection.covers_time(interaction.time):
                yield from self._position_lines(interaction, rows)
            yield PositionLines(min(interaction.last, end), (), 0)

    def end(self, after: int, limit: int | None) -> int:
        """See FeedSource."""
        return self._open_log().head().last

    def _position_lines(self, interaction: Interaction, rows: Iterator[LogRow]) -> Iterator[PositionLines]:
        items: list[LogLine] = []
        position, skipped_position, skipped_count, accepts = 0, 0, 0, self._test
        for _, message in published_events(
            self._families, interaction, (row for row in rows if is_public_stream(row.stream))
        ):
            if accepts is not None and not accepts(message):
                if message.position != skipped_position:
                    skipped_position, skipped_count = message.position, skipped_count + bool(skipped_position)
                    if skipped_count >= MAX_SILENT_POSITIONS and position < skipped_position:
                        yield (
                            PositionLines(position, items, len(items))
                            if items
                            else PositionLines(skipped_position - 1, (), 0)
                        )
                        items, skipped_count = [], 0
                continue
            if message.position != position:
                if items:
                    yield PositionLines(position, items, len(items))
                items, position = [], message.position
            items.append(LogLine(message.type, message.json()))
        if items:
            yield PositionLines(position, items, len(items))


class LogFeedSource:
    """The log itself: stored events, with a line before each interaction that describes it."""

    def __init__(
        self, open_log: OpenLog, may_see: VisibilityTest | None, *, documents: bool = False, is_partial: bool = False
    ) -> None:
        """may_see: which streams the reader may see; None for all. documents: whether to include documents.

        is_partial: whether the reader sees only some places; it then gets no hashes, which cover all of the registry.
        """
        self._open_log = open_log
        self._may_see = may_see
        self._is_partial = is_partial
        self._includes_documents = documents

    @property
    def limits_by_count(self) -> bool:
        return self._is_partial

    @property
    def share_key(self) -> Hashable:
        return self._may_see, self._includes_documents

    def groups(self, after: int, end: int) -> Iterator[PositionLines]:
        """See FeedSource."""
        may_see, document = self._may_see, self._document if self._includes_documents else None
        for interaction, rows in interactions(self._open_log, after, end):
            visible_rows = rows if may_see is None else (row for row in rows if may_see(row.stream))
            for position, items in log_lines(interaction, visible_rows, document, with_hashes=not self._is_partial):
                yield PositionLines(position, items, 1)
            if self._is_partial:
                yield PositionLines(min(interaction.last, end), (), 0)

    def end(self, after: int, limit: int | None) -> int:
        """See FeedSource. The end of an interaction, unless one interaction alone exceeds the limit."""
        is_unlimited = limit is None or self._is_partial
        return self._open_log().head().last if is_unlimited else page_end(self._open_log, after, limit or 0)

    def _document(self, sha256: str) -> bytes | None:
        return self._open_log().document(sha256)
