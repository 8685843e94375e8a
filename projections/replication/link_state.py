"""What is known of each link beside the log: how far it is, and how it goes. It is durable: no rebuild touches it.

What it says may be a moment old after a crash. Then some of what was taken in comes again, which changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final

from commands.store.damage import report_once
from domain.values.json_text import InvalidJson, dumps, loads
from projections.database.drivers import Database
from projections.replication import tables
from projections.subscriptions.state import delivery_store
from projections.subscriptions.state.delivery_store import DeliveryStore

#: The subject that stands for more than can be kept.
ALL_SUBJECTS: Final = "*"
#: Subjects that are kept for one link at most, and characters of one: whoever sends events chooses them.
_MOST: Final = 1000
_LONGEST: Final = 2000
#: The fact that says when an event came in to a process that does not run its link.
NOTIFIED_FACT: Final = "told"


@dataclass(frozen=True, slots=True)
class LinkProgress:
    """cursor: position of the other registry's log up to which all is taken in, or of our own up to which all is
    written there; None before the first look. facts: JSON values by name, such as `error`, `lastcontact`, `head`.
    """

    cursor: int | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)


class LinkStates:
    """The table of states. Its methods wait for the store; they may be called from any thread."""

    def __init__(self, url: str) -> None:
        delivery_store.create_tables(url, tables.METADATA)
        self._books = DeliveryStore(url)
        self._lock = Lock()

    def read(self, link: str) -> LinkProgress:
        """What is known of a link, by its id. Raises: one of `store.FAILURES`."""
        with self._lock, self._books.reading() as db:
            row = db.one("SELECT cursor, facts FROM replication_state WHERE link = ?", (link,))
        return _progress(link, row)

    def note(self, link: str, cursor: int | None = None, **facts: Any) -> None:
        """Sets the cursor, unless it is None, and some facts; None takes a fact away. Raises: as `read`."""
        with self._lock, self._books.writing() as db:
            row = db.one("SELECT cursor, facts FROM replication_state WHERE link = ?", (link,))
            known = _progress(link, row)
            merged = {name: value for name, value in {**known.facts, **facts}.items() if value is not None}
            at = cursor if cursor is not None else -1 if known.cursor is None else known.cursor
            db.upsert(tables.state, [(link, at, dumps(merged).decode())])

    def hear(self, link: str, subjects: Sequence[str]) -> None:
        """Keeps what a link has been told of, for it to take. Raises: as `read`."""
        if not subjects:
            return
        with self.writing() as db:
            (known,) = db.one("SELECT count(*) FROM replication_heard WHERE link = ?", (link,))
            kept = (
                {ALL_SUBJECTS}
                if known + len(subjects) > _MOST
                else {_storable_subject(subject) for subject in subjects}
            )
            for subject in sorted(kept):
                db.run("INSERT INTO replication_heard VALUES (?, ?) ON CONFLICT DO NOTHING", (link, subject))

    def taken(self, link: str) -> list[str]:
        """What a link has been told of since it asked last. Raises: as `read`."""
        with self.writing() as db:
            found = [row[0] for row in db.all("SELECT subject FROM replication_heard WHERE link = ?", (link,))]
            db.delete(tables.heard, [(link, subject) for subject in found])
        return [subject for subject in found if isinstance(subject, str)]

    def forget(self, link: str) -> None:
        """Removes what is known of a link that is no more. Raises: as `read`."""
        with self.writing() as db:
            for table in (tables.state, tables.sent, tables.heard):
                db.run(f"DELETE FROM {table.name} WHERE link = ?", (link,))

    @contextmanager
    def reading(self) -> Iterator[Database]:
        """The tables of replication. Raises: as `read`."""
        with self._lock, self._books.reading() as db:
            yield db

    @contextmanager
    def writing(self) -> Iterator[Database]:
        """The same in a transaction. Raises: as `read`."""
        with self._lock, self._books.writing() as db:
            yield db

    def close(self) -> None:
        """Gives the connection back."""
        with self._lock:
            self._books.close()


def _storable_subject(subject: str) -> str:
    return subject if len(subject) <= _LONGEST and subject.isprintable() else ALL_SUBJECTS


def _progress(link: str, row: Sequence[Any] | None) -> LinkProgress:
    """What a row says; nothing where it cannot be read, and then what is there already comes again."""
    if row is None:
        return LinkProgress()
    cursor, text = row
    try:
        facts = loads(text)
    except (InvalidJson, TypeError):
        facts = None
    if not isinstance(cursor, int) or not isinstance(facts, dict):
        report_once(f"the state of the link {link} cannot be read, it begins again")
        return LinkProgress()
    return LinkProgress(cursor if cursor >= 0 else None, facts)
