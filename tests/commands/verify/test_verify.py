"""Each change of a stored log is found, with its position."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from sqlalchemy import Connection, text

from annals.commands.command_bus import handle
from annals.commands.pending_command import PendingCommand
from annals.commands.store.compression.state_compression import compress_state, decompress_state
from annals.commands.store.log import Store
from annals.commands.verify.verify_log import verify_log, verify_row_hashes
from annals.domain.decisions.commands import Command
from annals.domain.registry.events import EntityDeleted, EntityEvent
from annals.projections.entities.rows import entity_row, row_values
from annals.projections.entities.tables import tables
from tests.support.small_decider import decide, delete, write

ENTITY = tables().entity


class Rows:
    """A projection that writes the read model's table, as far as its hashes need it."""

    def apply(self, connection: Connection, recorded: Sequence[tuple[int, EntityEvent]], *_: object) -> None:
        for position, event in recorded:
            row = entity_row(event, position)
            connection.execute(ENTITY.delete().where(ENTITY.c.tree_key == row.tree_key))
            if not isinstance(event, EntityDeleted):
                connection.execute(ENTITY.insert().values(row_values(row)))

    def catch_up(self, connection: Connection) -> None: ...


@pytest.fixture
def history(store: Store) -> Store:
    """Interactions with the positions 1 and 2; 3; 4 and 5 (deletions); 6."""
    with store.engine.begin() as connection:
        ENTITY.create(connection)
    commands: list[Command] = [
        write("/dirs/a", "/dirs/a/files/f", name="one"),
        write("/dirs/b", document=b"content", name="two"),
        delete("/dirs/a"),
        write("/dirs/b", name="three", number=1.5),
    ]
    handle([PendingCommand(command) for command in commands], store, [Rows()], decide)
    return store


def change(store: Store, statement: str) -> None:
    with store.engine.begin() as connection:
        connection.execute(text(statement))


def flip(store: Store, position: int, offset: int) -> None:
    """Changes one byte of an event's state."""
    with store.engine.begin() as connection:
        found = connection.execute(text("SELECT state FROM log WHERE position = :p"), {"p": position}).scalar_one()
        state = bytearray(decompress_state(found))
        state[offset] ^= 1
        stored = compress_state(bytes(state))
        connection.execute(text("UPDATE log SET state = :s WHERE position = :p"), {"s": stored, "p": position})


def test_a_whole_log_has_no_findings(history: Store) -> None:
    reached: list[tuple[int, int]] = []
    assert list(verify_log(history, lambda position, last: reached.append((position, last)))) == []
    assert reached == [(2, 6), (3, 6), (5, 6), (6, 6)]
    assert list(verify_row_hashes(history)) == []


@pytest.mark.parametrize("offset", [0, 12, -60, -1])
@pytest.mark.parametrize(("position", "first"), [(2, 1), (3, 3), (5, 4), (6, 6)])
def test_a_flipped_byte_is_found(history: Store, position: int, first: int, offset: int) -> None:
    flip(history, position, offset)
    found = list(verify_log(history))
    assert first in {finding.position for finding in found}
    assert min(finding.position for finding in found) >= first


CHANGES = [
    ("UPDATE interaction SET caller = 'eve' WHERE last = 3", 3),
    ("UPDATE interaction SET command = 'other' WHERE last = 5", 4),
    ("UPDATE interaction SET registry_url = 'http://elsewhere' WHERE last = 6", 6),
    ("UPDATE interaction SET time = '2000-01-01T00:00:00.000000Z' WHERE last = 5", 4),
    ("UPDATE interaction SET xregcorrelationid = 'other' WHERE last = 5", 4),
    ("UPDATE interaction SET state = chain WHERE last = 3", 3),
    ("UPDATE interaction SET chain = state WHERE last = 5", 4),
    ("DELETE FROM interaction WHERE last = 3", 3),
    ("DELETE FROM interaction WHERE last = 6", 6),
    ("DELETE FROM log WHERE position = 2", 2),
    ("DELETE FROM log WHERE position = 6", 6),
    ("UPDATE log SET position = 9 WHERE position = 6", 6),
    ("UPDATE log SET revision = 7 WHERE position = 6", 6),
    ("UPDATE log SET stream = '/dirs/c' WHERE position = 3", 3),
    ("UPDATE log SET topic = 'EntityCreated:1' WHERE position = 5", 4),
    ("UPDATE log SET topic = 'Unknown:1' WHERE position = 6", 6),
    ("UPDATE head SET position = 3 WHERE xid = '/dirs/b'", 6),
    ("DELETE FROM head WHERE xid = '/dirs/b'", 6),
    ("UPDATE head SET live = NOT live WHERE xid = '/dirs/b'", 6),
]


@pytest.mark.parametrize(("statement", "position"), CHANGES)
def test_a_change_is_found_where_it_was_made(history: Store, statement: str, position: int) -> None:
    change(history, statement)
    assert position in {finding.position for finding in verify_log(history)}


def test_a_damaged_interaction_does_not_hide_the_rest(history: Store) -> None:
    """The next one is verified against the stored hash, so only changed interactions are found."""
    flip(history, 2, 12)
    flip(history, 6, 12)
    assert {finding.position for finding in verify_log(history)} >= {1, 6}
    assert 3 not in {finding.position for finding in verify_log(history)}


@pytest.mark.parametrize("damage", ["UPDATE document SET bytes = :other", "DELETE FROM document WHERE bytes <> :other"])
def test_a_damaged_document_is_found(history: Store, damage: str) -> None:
    """Each event that refers to it is a finding."""
    with history.engine.begin() as connection:
        connection.execute(text(damage), {"other": b"changed"})
    assert {finding.position for finding in verify_log(history)} == {3}


def test_rows_that_differ_are_found(history: Store) -> None:
    change(history, "UPDATE entity SET compressed_attributes = '{}' WHERE xid = '/dirs/b'")
    assert [finding.position for finding in verify_row_hashes(history)] == [6]
