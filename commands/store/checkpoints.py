"""Carries commits over from SQLite's write-ahead log into the database, beside the writer instead of in it."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Lock, Thread
from typing import Any, Final

#: Seconds from a commit to the checkpoint that takes it along with all that came meanwhile.
CHECKPOINT_SECONDS: Final = 1.0
#: Pages of the write-ahead log from which a commit makes the checkpoint itself, so that steady writing cannot let the
#: log grow for ever: it starts over only when it was carried over in whole.
AUTOCHECKPOINT_PAGES: Final = 65_536


class Checkpointer:
    """A thread that starts with the first commit. connect: gives a connection of its own to the database."""

    def __init__(self, connect: Callable[[], Any]) -> None:
        self._connect = connect
        self._gate = Lock()
        self._due = Event()
        self._ended = Event()
        self._thread: Thread | None = None

    def due(self) -> None:
        """Says that something was or is being committed."""
        self._due.set()
        if self._thread is None:
            with self._gate:
                if self._thread is None:
                    self._ended.clear()
                    self._thread = Thread(target=self._run, name="annals-checkpoints", daemon=True)
                    self._thread.start()

    def end(self) -> None:
        """Lets the thread end; another commit would start it again."""
        with self._gate:
            thread, self._thread = self._thread, None
            if thread:
                self._ended.set()
                self._due.set()
                thread.join()

    def _run(self) -> None:
        connection = self._connect()
        try:
            while self._due.wait() and not self._ended.wait(CHECKPOINT_SECONDS):
                self._due.clear()
                if self._ended.is_set():  # said meanwhile, with a word that has just been cleared
                    return
                # PASSIVE waits for nobody and nobody for it; what a reader still needs is left to the next one.
                connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
        finally:
            connection.close()
