"""The durable state of each link, stored next to the log: its cursor and its status. No rebuild touches it.

After a crash it may be slightly old. Then some interactions are imported again, which changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final

from annals.commands.store.damage import report_once
from annals.domain.values.json_text import InvalidJson, dumps, loads
from annals.projections.database import state_database
from annals.projections.database.drivers import Database
from annals.projections.database.state_database import StateDatabase
from annals.projections.replication import tables

#: The subject that replaces more subjects than can be stored.
ALL_SUBJECTS: Final = "*"
#: Limits on stored subjects of a link, in number and in characters each. The sender of events chooses them.
_MAX_SUBJECTS: Final = 1000
_MAX_SUBJECT_LENGTH: Final = 2000
#: The name of the fact with the time at which another process received an event for the link.
NOTIFIED_KEY: Final = "notified"
_FORMER_NOTIFIED_KEY: Final = "told"
#: Makes another process that changes the same state wait for the end of this transaction; SQLite has one writer.
_LOCK_STATE: Final = "SELECT pg_advisory_xact_lock(hashtext('annals-link'), hashtext(?))"
#: Returns the facts to set, of the status that is stored.
ChooseFacts = Callable[[Mapping[str, Any]], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class LinkProgress:
    """The state of one link.

    cursor: position of the other registry's log up to which all is imported or, for a push, of this registry's log up
    to which all is written there. None before the first run.
    status: JSON values by name, such as `error`, `lastcontact`, `head`.
    """

    cursor: int | None = None
    status: Mapping[str, Any] = field(default_factory=dict)


class LinkStates:
    """The table of link states. Its methods block on the store; any thread may call them.

    Reads do not wait for the writes of other threads, which may wait long for an import to end.
    """

    def __init__(self, url: str) -> None:
        state_database.create_tables(url, tables.METADATA)
        self._reader, self._reader_lock = StateDatabase(url), Lock()
        self._store, self._lock = StateDatabase(url), Lock()

    def read(self, link: str) -> LinkProgress:
        """The state of a link, by its id. Raises: one of `driver_errors()`."""
        with self.reading() as db:
            row = db.one("SELECT cursor, facts FROM replication_state WHERE link = ?", (link,))
        return _parse_progress(link, row)

    def update(self, link: str, cursor: int | None = None, **facts: Any) -> None:
        """Sets the cursor, unless it is None, and some facts of the status. None deletes a fact. Raises: as `read`."""
        self.update_by(link, lambda status: facts, cursor)

    def update_by(self, link: str, choose_facts: ChooseFacts, cursor: int | None = None) -> None:
        """The same with facts that depend on the stored ones. Raises: as `read`."""
        with self._lock, self._store.writing() as db:
            if not self._store.is_sqlite:
                db.run(_LOCK_STATE, (link,))
            row = db.one("SELECT cursor, facts FROM replication_state WHERE link = ?", (link,))
            progress = _parse_progress(link, row)
            new_facts = {**progress.status, **choose_facts(progress.status)}
            merged_facts = {name: value for name, value in new_facts.items() if value is not None}
            new_cursor = cursor if cursor is not None else -1 if progress.cursor is None else progress.cursor
            db.upsert(tables.state, [(link, new_cursor, dumps(merged_facts).decode())])

    def add_subjects(self, link: str, subjects: Sequence[str]) -> None:
        """Stores the subjects of events for a link, until it takes them. Raises: as `read`."""
        if not subjects:
            return
        with self.writing() as db:
            (stored_count,) = db.one("SELECT count(*) FROM replication_subject WHERE link = ?", (link,))
            stored_subjects = (
                {ALL_SUBJECTS}
                if stored_count + len(subjects) > _MAX_SUBJECTS
                else {_storable_subject(subject) for subject in subjects}
            )
            for subject in sorted(stored_subjects):
                db.run("INSERT INTO replication_subject VALUES (?, ?) ON CONFLICT DO NOTHING", (link, subject))

    def take_subjects(self, link: str) -> list[str]:
        """The subjects of events since the last call, which are deleted. Raises: as `read`."""
        with self.writing() as db:
            subjects = [row[0] for row in db.all("SELECT subject FROM replication_subject WHERE link = ?", (link,))]
            db.delete(tables.subject, [(link, subject) for subject in subjects])
        return [subject for subject in subjects if isinstance(subject, str)]

    def delete(self, link: str) -> None:
        """Deletes the state of a deleted link. Raises: as `read`."""
        with self.writing() as db:
            for table in (tables.state, tables.sent, tables.subject):
                db.run(f"DELETE FROM {table.name} WHERE link = ?", (link,))

    @contextmanager
    def reading(self) -> Iterator[Database]:
        """The tables of replication, for reading. Raises: as `read`."""
        with self._reader_lock, self._reader.reading() as db:
            yield db

    @contextmanager
    def writing(self) -> Iterator[Database]:
        """The tables of replication, in a transaction. Raises: as `read`."""
        with self._lock, self._store.writing() as db:
            yield db

    def close(self) -> None:
        """Closes the connections."""
        with self._lock:
            self._store.close()
        with self._reader_lock:
            self._reader.close()


def _storable_subject(subject: str) -> str:
    return subject if len(subject) <= _MAX_SUBJECT_LENGTH and subject.isprintable() else ALL_SUBJECTS


def _parse_progress(link: str, row: Sequence[Any] | None) -> LinkProgress:
    """The state in a row; empty if it cannot be read, in which case the link starts over."""
    if row is None:
        return LinkProgress()
    cursor, text = row
    try:
        facts = loads(text)
    except (InvalidJson, TypeError):
        facts = None
    if not isinstance(cursor, int) or not isinstance(facts, dict):
        report_once(f"the state of the link {link} cannot be read; the link begins again")
        return LinkProgress()
    facts.pop(_FORMER_NOTIFIED_KEY, None)
    return LinkProgress(cursor if cursor >= 0 else None, facts)
