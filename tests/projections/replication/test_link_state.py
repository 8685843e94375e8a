"""The stored state of links, which several processes of one database change."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Thread
from typing import Any

from annals.commands.store.log import Store
from annals.projections.replication.link_state import NOTIFIED_KEY, LinkProgress, LinkStates

#: Seconds that a change of another process gets between the reading and the writing of one.
_SECONDS = 0.5


def test_two_processes_change_different_facts(store_url: str) -> None:
    # LEG-901: an event that one process receives and the progress that another one saves are both kept
    with closing(Store(store_url)) as store:
        store.create()
    with closing(LinkStates(store_url)) as one, closing(LinkStates(store_url)) as other:
        one.update("a", 100, error="old")
        saving = Thread(target=lambda: one.update("a", 200, error=None, lastcontact=2))

        def choose_facts(status: Mapping[str, Any]) -> Mapping[str, Any]:
            saving.start()
            saving.join(_SECONDS)  # it waits for the end of this change
            return {NOTIFIED_KEY: 1}

        other.update_by("a", choose_facts)
        saving.join()
        assert one.read("a") == LinkProgress(200, {"lastcontact": 2, NOTIFIED_KEY: 1})


def test_reads_do_not_wait_for_writes(store_url: str) -> None:
    # LEG-901: a process sends heartbeats for its links while one of them waits to write
    with closing(Store(store_url)) as store:
        store.create()
    with closing(LinkStates(store_url)) as states, ThreadPoolExecutor(1) as pool:
        states.update("a", 7)
        with states.writing():
            assert pool.submit(states.read, "a").result(60).cursor == 7
