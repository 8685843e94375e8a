"""Copies commits from SQLite's write-ahead log to the database in a separate thread, not in the writer."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Lock, Thread
from typing import Any, Final

from annals.commands.store.database.store_file import StoreFile

#: Seconds from a commit to the checkpoint that copies it, together with all commits in between.
CHECKPOINT_SECONDS: Final = 1.0
#: The number of pages of the write-ahead log from which a commit makes the checkpoint itself. Without it, steady
#: writing would let the log grow without limit: SQLite reuses the log only after a complete checkpoint.
AUTOCHECKPOINT_PAGES: Final = 65_536
#: The bytes that the file of the write-ahead log keeps when SQLite reuses it: a large import must not leave half a
#: gigabyte on the disk.
KEPT_LOG_BYTES: Final = 64 << 20
_LOG: Final = logging.getLogger("annals.store")


class Checkpointer:
    """A thread that starts with the first commit. connect: opens a separate connection to an existing file."""

    def __init__(self, connect: Callable[[], Any], file: StoreFile) -> None:
        self._connect = connect
        self._file = file
        self._lock = Lock()
        self._wake = Event()
        self._stopped = Event()
        self._thread: Thread | None = None
        self._has_failed = False

    def request(self) -> None:
        """Requests a checkpoint, because something was or is being committed."""
        self._wake.set()
        if self._thread is None:
            with self._lock:
                if self._thread is None:
                    self._stopped.clear()
                    self._thread = Thread(target=self._run, name="annals-checkpoints", daemon=True)
                    self._thread.start()

    def stop(self) -> None:
        """Stops the thread; another commit would start it again."""
        with self._lock:
            thread, self._thread = self._thread, None
            if thread:
                self._stopped.set()
                self._wake.set()
                thread.join()

    def _run(self) -> None:
        while (connection := self._open()) is None:
            if self._stopped.wait(CHECKPOINT_SECONDS):
                return
        try:
            while self._wake.wait() and not self._stopped.wait(CHECKPOINT_SECONDS):
                self._wake.clear()
                if self._stopped.is_set():  # set meanwhile; `clear` has removed its wake-up
                    break
                self._copy(connection)
            if self._file.has_changed():
                self._copy(connection)
        finally:
            connection.close()

    def _open(self) -> Any:
        """A connection to the file of the store; None while that is away, or another one has its place."""
        if self._file.has_changed():
            return None
        try:
            return self._connect()
        except sqlite3.OperationalError:  # it was removed in this moment
            return None

    def _copy(self, connection: Any) -> None:
        """Copies what was committed."""
        if self._file.has_changed():
            self._empty_log(connection)
        else:
            self._copy_to_file(connection)

    def _copy_to_file(self, connection: Any) -> None:
        """Copies what no reader needs any more. After an error, such as a full disk, the next second tries again."""
        try:
            # PASSIVE neither waits nor blocks; pages that a reader still needs are left for the next checkpoint.
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
            self._has_failed = False
        except sqlite3.Error as error:
            if not self._has_failed:
                _LOG.warning("SQLite's log is not copied to the database, trying again: %s", error)
            self._has_failed = True
            self._wake.set()

    def _empty_log(self, connection: Any) -> None:
        """Copies everything to the file that was removed or replaced, and empties its write-ahead log.

        The log keeps its name. The next connection to another file with the name of the database would apply it there.
        """
        with suppress(sqlite3.Error):  # another program may have opened the two already
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
