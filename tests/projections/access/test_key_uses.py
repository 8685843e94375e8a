"""The last uses of API keys: what is noted while others are written is not lost."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

from sqlalchemy import create_engine

from annals.projections.access.key_uses import KeyUses
from tests.support.registries.in_process import create


def test_a_use_during_a_write_is_the_newest(store_url: str) -> None:
    # ACC-48: another program may hold the lock of the database while a key is used again
    create(store_url)
    with closing(KeyUses(store_url)) as uses, ThreadPoolExecutor(1) as threads:
        uses.open()
        uses.note("k", "192.0.2.1")
        uses.write(1_000.0)
        uses.note("k", "192.0.2.2")
        engine = create_engine(store_url)
        with engine.connect() as other:
            other.exec_driver_sql("BEGIN IMMEDIATE" if engine.dialect.name == "sqlite" else "LOCK TABLE key_use")
            writing = threads.submit(uses.write, 2_000.0)
            time.sleep(0.3)
            uses.note("k", "192.0.2.3")
            uses.note("new", "192.0.2.4")
            other.rollback()
        writing.result()
        engine.dispose()
        assert {id: use.address for id, use in uses.read(["k", "new"]).items()} == {
            "k": "192.0.2.3",
            "new": "192.0.2.4",
        }


def test_what_was_noted_is_written_at_the_end(store_url: str) -> None:
    # ACC-48: a server that stops forgets no use, however short ago the last write was
    create(store_url)
    for address in ("192.0.2.1", "192.0.2.2"):
        with closing(KeyUses(store_url)) as uses:
            uses.open()
            uses.note("k", address)
            uses.write(1_000.0)
            uses.note("k", f"{address}0")
    with closing(KeyUses(store_url)) as uses:
        assert uses.read(["k"])["k"].address == "192.0.2.20"
