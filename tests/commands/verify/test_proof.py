"""docs/explanation/proof.md: its golden vectors are right, and its program verifies a log of this project."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from annals.commands.command_bus import handle
from annals.commands.pending_command import PendingCommand
from annals.commands.store.hashes import (
    NO_INTERACTION,
    ChainHasher,
    Interaction,
    LogRow,
    caller_hash,
    entity_hash,
    extract_image,
)
from annals.commands.store.log import Store
from annals.commands.verify.verify_log import verify_log
from annals.domain.decisions.commands import DeleteEntities
from annals.domain.values.json_text import dumps
from annals.projections.entities.apply import EntityProjection
from tests.commands.test_dryrun import FILE, create, put
from tests.support.serving import ROOT

#: Lines of `/-/log`. Positions 1 to 12 are of version 1, the others of version 2.
PUBLISHED = (ROOT / "tests/data/proof/log.ndjson").read_bytes().splitlines()
ENDS_WITH = (
    "22 events, chain 662d42f7d73fc8c58edbd14f717eec10aab7d35459a1935a95b344564edfab6b,"
    " state 76b64f301cd1934fe9d71f4a11313c90017ed769b44c9dcbb48a55942cd90173\n"
)
PLACE = ("position", "stream", "revision", "topic")


def program_output(lines: list[bytes]) -> str:
    """What the program in the guide prints for some lines; it runs with Python's standard library only."""
    found = re.search(r"```python\n(.*?)```", (ROOT / "docs/explanation/proof.md").read_text(), re.DOTALL)
    assert found
    command = [sys.executable, "-I", "-c", found[1]]
    ended = subprocess.run(command, input=b"\n".join(lines), capture_output=True, timeout=60, check=False)
    return ended.stdout.decode() or ended.stderr.decode().splitlines()[-1]


def rows(lines: list[bytes]) -> Iterator[Interaction | LogRow]:
    """The interactions and events of some lines, as the store has them."""
    for line in lines:
        found = json.loads(line)
        if "position" in found:
            place = {name: found[name] for name in PLACE}
            yield LogRow(**place, state=b"{" + line[len(dumps(place)) :])
        else:
            hashes = {name: bytes.fromhex(found[name]) for name in ("chain", "state")}
            renamed = {"folded": found["xregcorrelationid"].casefold(), "registry_url": found.pop("registryurl")}
            yield Interaction(**{**found, **hashes, **renamed})


def changed(lines: list[bytes], number: int, **members: Any) -> list[bytes]:
    """The lines, with some members of one line replaced; None removes a member."""
    found = json.loads(lines[number]) | members
    line = dumps({name: value for name, value in found.items() if value is not None})
    return [*lines[:number], line, *lines[number + 1 :]]


def test_published_logs_come_out() -> None:
    # Proof: both versions of the chain hash, which has the length of each part before it, give the published values
    chain = NO_INTERACTION.chain
    ended = NO_INTERACTION
    for row in rows(PUBLISHED):
        if isinstance(row, Interaction):
            ended, working = row, ChainHasher(chain, row)
            continue
        working.add(row)
        if row.position == ended.last:
            chain = working.digest(ended.state)
            assert chain == ended.chain, ended
    assert [row.salt != "" for row in rows(PUBLISHED) if isinstance(row, Interaction)] == [False] * 4 + [True] * 3
    assert f"chain {chain.hex()}, state {ended.state.hex()}" in ENDS_WITH


def test_the_program_of_the_guide_finds_the_same() -> None:
    assert program_output(PUBLISHED) == ENDS_WITH


@pytest.mark.parametrize("number", [5, 22])
def test_the_program_of_the_guide_finds_what_was_changed(number: int) -> None:
    # Proof: in either version
    *_, last = (row.last for row in rows(PUBLISHED[:number]) if isinstance(row, Interaction))
    printed = program_output(changed(PUBLISHED, number, epoch=7))
    assert printed == f"the interaction that ends at position {last} differs"


def destroyed() -> list[bytes]:
    """The published lines, without the images of `f` and without callers in those of version 2."""
    lines = PUBLISHED
    for number, line in enumerate(lines):
        found = json.loads(line)
        if found.get("salt"):
            row = next(iter(rows([line])))
            assert isinstance(row, Interaction)
            lines = changed(lines, number, caller=None, callerhash=caller_hash(row).hex())
        elif found.get("position", 0) > 12 and found["stream"].startswith("/dirs/d/files/f"):
            row = next(iter(rows([line])))
            assert isinstance(row, LogRow)
            image = ("xid", "type", "epoch", "attributes", "private")
            place = {name: found[name] for name in PLACE} | {"image": entity_hash(extract_image(row.state)).hex()}
            tail = {name: value for name, value in found.items() if name not in (*PLACE, *image)}
            lines = [*lines[:number], dumps(place | tail), *lines[number + 1 :]]
    return lines


def test_what_is_destroyed_does_not_break_the_proof() -> None:
    # Proof, version 2: images and callers can be destroyed; the hashes in their place prove the rest and reveal nothing
    left = destroyed()
    assert program_output(left) == ENDS_WITH
    assert not any(b'"second"' in line or b'"caller":"grace"' in line for line in left[16:])
    # Without its salt a guess cannot be tried: the right image with another salt has another hash.
    images = {json.loads(line)["image"] for line in left if b'"image"' in line}
    guesses = rows([line.replace(b'"salt":"salt', b'"salt":"guess') for line in PUBLISHED if b'"salt":"salt' in line])
    assert images.isdisjoint(entity_hash(extract_image(row.state)).hex() for row in guesses if isinstance(row, LogRow))


def test_salts_are_new_with_each_image_and_interaction(store_url: str) -> None:
    # Proof, version 2: salts cannot be guessed, so no two are equal
    with closing(Store(store_url)) as store:
        store.create()
        fresh = store.new_salt
        create(store)
        store.new_salt, before = fresh, store.log_end().position
        handle(
            [
                PendingCommand(put(FILE, document=b"1")),
                PendingCommand(put(FILE, document=b"1")),
                PendingCommand(DeleteEntities(FILE)),
            ],
            store,
            [],
        )
        found = [event for _, event in store.events(before, 1000)]
        salts = [event.private["salt"] for event in found if event.attributes]
        with store.engine.connect() as connection:
            salts += connection.exec_driver_sql(f"SELECT salt FROM interaction WHERE last > {before}").scalars()
    assert len(set(salts)) == len(salts) > 5
    assert all(re.fullmatch(r"[\w-]{22}", salt) for salt in salts)
    assert [event.private for event in found if not event.attributes] == [{}] * 2


def test_a_store_of_the_schema_before_is_taken_over(store_url: str) -> None:
    # Proof: interactions that were chained in version 1 stay so, and version 2 continues from there
    with closing(Store(store_url)) as store:
        store.create()
        create(store, salt="")
        handle([PendingCommand(put(FILE, document=b"1"))], store, [EntityProjection()])
        before = store.log_end()
        with store.engine.begin() as connection:
            for column in ("salt", "authenticator", "keyid"):
                connection.exec_driver_sql(f"ALTER TABLE interaction DROP COLUMN {column}")
            connection.exec_driver_sql("UPDATE store SET value = '2' WHERE key = 'schema'")
    with closing(Store(store_url)) as store:
        store.create()
        assert store.log_end() == before
        handle([PendingCommand(put(FILE, name="new"))], store, [EntityProjection()])
        assert [*verify_log(store)] == []
        with store.engine.connect() as connection:
            salts = connection.exec_driver_sql("SELECT salt <> '' FROM interaction ORDER BY last").scalars().all()
            assert [*map(bool, salts)] == [False, False, False, True]
