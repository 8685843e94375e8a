"""What feeds are made of: the lines of each position of the log, as CloudEvents or as they are stored."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Sequence
from typing import Final, Protocol

from api.feeds.choosing import Choice
from api.feeds.forms import Group, Item
from api.feeds.rights import Sees, is_public
from commands.proof import Interaction, LogRow
from domain.jsontext import dumps
from projections.documents import referred
from projections.families import Family, told
from projections.feed import Logs, edge, interactions

#: The line before the events of an interaction.
INTERACTION: Final = "interaction"
#: The line before the first event of an interaction that refers to a document.
DOCUMENT: Final = "document"
#: Documents of an interaction that are remembered as sent. An import that returns to one after so many others sends it
#: again, and takes no more memory than any other.
SENT: Final = 1 << 16

_FACTS: Final = {
    **{name: name for name in ("first", "last", "xregcorrelationid", "time", "caller", "command")},
    "registryurl": "registry_url",
}


class Source(Protocol):
    """One feed, as one reader may see it.

    counts: whether a limit is met by counting, because only looking at events shows which of them are wanted.
    """

    @property
    def counts(self) -> bool: ...

    def groups(self, after: int, end: int) -> Iterator[Group]:
        """The lines of the positions beyond one and up to another; a group without lines says how far that is."""

    def end(self, after: int, limit: int | None) -> int:
        """Where an answer of so many events ends that begins beyond a position; None for any number."""


class EventsSource:
    """CloudEvents of some families: a few for a position, of which a reader wants some."""

    counts: Final = True

    def __init__(self, logs: Logs, choice: Choice, families: Sequence[Family]) -> None:
        self._logs = logs
        self._choice = choice
        self._test = choice.accepts if choice.tests else None
        self._families = families

    def groups(self, after: int, end: int) -> Iterator[Group]:
        """See Source."""
        for interaction, rows in interactions(self._logs, *self._choice.stretch(self._logs(), after, end)):
            if self._choice.happened(interaction.time):
                yield from self._told(interaction, rows)
            yield Group(min(interaction.last, end), (), 0)

    def end(self, after: int, limit: int | None) -> int:
        """See Source."""
        return self._logs().head().last

    def _told(self, interaction: Interaction, rows: Iterator[LogRow]) -> Iterator[Group]:
        items: list[Item] = []
        position, test = 0, self._test
        for _, message in told(self._families, interaction, (row for row in rows if is_public(row.stream))):
            if test is not None and not test(message):
                continue
            if message.position != position:
                if items:
                    yield Group(position, items, len(items))
                items, position = [], message.position
            items.append(Item(message.type, message.json()))
        if items:
            yield Group(position, items, len(items))


class LogSource:
    """The log itself: stored events, and before those of an interaction a line that describes it."""

    counts: Final = False

    def __init__(self, logs: Logs, sees: Sees | None, *, documents: bool = False) -> None:
        """sees: which streams the reader may see, None for all. documents: whether those come along."""
        self._logs = logs
        self._sees = sees
        self._documents = documents

    def groups(self, after: int, end: int) -> Iterator[Group]:
        """See Source."""
        sees = self._sees
        for interaction, rows in interactions(self._logs, after, end):
            before: tuple[Item, ...] = (Item(INTERACTION, interaction_line(interaction)),)
            sent: dict[str, None] = {}
            for row in rows:
                if sees is None or sees(row.stream):
                    yield Group(
                        row.position, (*before, *self._document(row, sent), Item(row.topic, event_line(row))), 1
                    )
                    before = ()

    def end(self, after: int, limit: int | None) -> int:
        """See Source. Where an interaction ends, unless one alone is larger than the limit."""
        return self._logs().head().last if limit is None else edge(self._logs, after, limit)

    def _document(self, row: LogRow, sent: dict[str, None]) -> Iterator[Item]:
        """The document that an event refers to, unless it was sent or is lost, which its reader then sees."""
        sha256 = referred(row) if self._documents else None
        if sha256 is None or sha256 in sent:
            return
        if len(sent) >= SENT:
            del sent[next(iter(sent))]
        sent[sha256] = None
        found = self._logs().document(sha256)
        if found is not None:
            yield Item(DOCUMENT, document_line(sha256, found))


def document_line(sha256: str, content: bytes) -> bytes:
    """A document as JSON: its hash, by which events refer to it, and its bytes."""
    return b'{"document":"%b","base64":"%b"}' % (sha256.encode(), b64encode(content))


def interaction_line(interaction: Interaction) -> bytes:
    """An interaction as JSON: its facts in the words of the API, the correlation id not folded, and hashes in hex."""
    facts = {shown: getattr(interaction, name) for shown, name in _FACTS.items()}
    return dumps(facts | {"chain": interaction.chain.hex(), "state": interaction.state.hex()})


def event_line(row: LogRow) -> bytes:
    """A stored event as JSON: where it is, then the members of its stored state, byte for byte."""
    place = b'{"position":%d,"stream":%b,"revision":%d,"topic":%b,%b'
    return place % (row.position, dumps(row.stream), row.revision, dumps(row.topic), row.state[1:])
