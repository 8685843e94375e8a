"""The stored form of states: shorter, readable one by one by any thread, and refused where it is damaged."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256

import pytest
import zstandard
from sqlalchemy import select

from annals.commands.store.compression.state_compression import DICTIONARY, compress_state, decompress_state
from annals.commands.store.damage import describe_damage
from annals.commands.store.database import tables
from annals.commands.store.log import Store
from annals.commands.store.mapper import UnreadableEvent
from annals.commands.verify.verify_log import verify_log
from annals.domain.model.builtin import default_source
from bench import samples
from tests.commands.verify.test_verify_bytes import fill
from tests.support.registries.in_process import create, serving

STATE = b'{"xid":"/dirs/d1","type":"dirs","epoch":1,"attributes":{"dirid":"d1","epoch":1},"private":{},"changed":[]}'

#: The output of `compress_state` for STATE.
FRAME = "28b52ffd2201806a0d0100386469726469647d08fc78eefe421cd19c2cde8aa08d03294a5ea0252c8afbd404"


def test_the_dictionary_never_changes() -> None:
    """Stored frames depend on each byte of the dictionary; a new dictionary has to be a separate file."""
    content = DICTIONARY.read_bytes()
    assert sha256(content).hexdigest() == "f9f3a47c7a11db1cae9d1efdf446b19b10f28e5add258fc188762fa07be86a14"
    assert DICTIONARY.name == f"dictionary-{zstandard.ZstdCompressionDict(content).dict_id()}.zdict"


def test_a_frame_written_by_this_program_is_readable_for_ever() -> None:
    """The form is part of every store: a program with another level, dictionary or library has to read this frame."""
    frame = bytes.fromhex(FRAME)
    assert decompress_state(frame) == STATE
    assert decompress_state(memoryview(frame)) == STATE
    assert decompress_state(compress_state(STATE)) == STATE


@pytest.mark.parametrize(
    "state", [b"", b"{}", b'{"a":1}', b"\x00", STATE, STATE * 10_000, '{"é":"\U0001f4a7"}'.encode()]
)
def test_any_state_comes_back(state: bytes) -> None:
    stored = compress_state(state)
    assert decompress_state(stored) == state
    assert len(stored) <= len(state)


def test_a_state_that_a_frame_would_not_shorten_is_stored_as_it_is() -> None:
    assert compress_state(b"{}") == b"{}"
    assert compress_state(STATE)[:4] == zstandard.FRAME_HEADER


@pytest.mark.parametrize(
    "stored",
    [
        compress_state(STATE)[:-1],
        compress_state(STATE) + b"x",
        zstandard.FRAME_HEADER,
        zstandard.ZstdCompressor().compress(STATE)[:9],
        # A frame that claims 2^62 bytes.
        zstandard.FRAME_HEADER + b"\xe2\x01\x80" + (1 << 62).to_bytes(8, "little") + compress_state(STATE)[8:],
        7,
        "text",
        None,
    ],
)
def test_a_damaged_frame_is_damage(stored: object) -> None:
    with pytest.raises(UnreadableEvent) as raised:
        decompress_state(stored)
    assert describe_damage(raised.value) == "its log is damaged"


def test_threads_share_no_compressor() -> None:
    states = [STATE.replace(b"d1", b"d%d" % number) * (number % 50) for number in range(500)]

    def works(thread: int) -> bool:
        return all(decompress_state(compress_state(state)) == state for state in states[thread:] + states[:thread])

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(works, range(32)))


def test_plain_and_compressed_rows_are_one_log(store: Store) -> None:
    """Rows of older programs are plain; hashes and proofs do not see the difference."""
    fill(store)
    events, chain = store.events(0, 100), store.log_end().chain
    with store.engine.begin() as connection:
        stored = dict(connection.execute(select(tables.log.c.position, tables.log.c.state)).all())
        assert all(bytes(state).startswith(zstandard.FRAME_HEADER) for state in stored.values())
        for position in (1, 3, 6):
            plain = tables.log.update().where(tables.log.c.position == position)
            connection.execute(plain.values(state=decompress_state(stored[position])))
    assert store.events(0, 100) == events
    assert list(verify_log(store)) == []
    assert store.log_end().chain == chain


def test_an_import_takes_less_than_300_bytes_an_event(sqlite_url: str) -> None:
    """The dictionary has none of these schemas."""
    create(sqlite_url, default_source())
    with serving(sqlite_url) as api:
        api.done("POST", "/schemagroups", samples.body(2, 20))
    store = Store(sqlite_url)
    with store.engine.connect() as connection:
        rows = connection.exec_driver_sql("SELECT state FROM log WHERE position > 3").scalars().all()
    store.close()
    assert len(rows) > 80
    assert sum(map(len, rows)) / len(rows) < 300
    assert sum(len(decompress_state(row)) for row in rows) / len(rows) > 700
