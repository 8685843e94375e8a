"""What a transaction knows of the Versions of full Resources, while it adds events and takes them back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import pytest

from annals.commands.store.known_version_chains import KnownVersionChains
from annals.domain.registry.events import EntityCreated, EntityDeleted, EntityEvent, EntityUpdated

FULL = "/dirs/d/files/full"
OTHER = "/dirs/d/files/other"
IDS = ("1", "2")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def event(kind: type[EntityEvent], xid: str) -> EntityEvent:
    return kind(xid=xid, type="files", revision=1, epoch=1, attributes={}, xregcorrelationid="c", time=NOW)


class LookUps(Mapping[str, tuple[str, ...]]):
    """A start of many chains, which must not be read for each event."""

    def __getitem__(self, stream: str) -> tuple[str, ...]:
        return IDS

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("all chains were read")

    def __len__(self) -> int:
        return 25_000


@pytest.mark.parametrize(
    ("kind", "xid", "is_broken"),
    [
        (EntityCreated, f"{FULL}/versions/3", True),
        (EntityUpdated, f"{FULL}/meta", True),
        (EntityUpdated, FULL, False),
        (EntityDeleted, FULL, True),
        (EntityCreated, f"{OTHER}/versions/3", False),
        (EntityUpdated, "/dirs/d", False),
    ],
)
def test_an_event_breaks_the_chain_of_its_resource(kind: type[EntityEvent], xid: str, is_broken: bool) -> None:
    chains = KnownVersionChains({FULL: IDS})
    chains.add_event(event(kind, xid))
    assert chains.find(FULL) == (None if is_broken else IDS)
    assert chains.all() == ({} if is_broken else {FULL: IDS})


def test_an_undone_command_leaves_the_chains_as_they_were() -> None:
    chains = KnownVersionChains({FULL: IDS})
    chains.add_event(event(EntityCreated, f"{FULL}/versions/3"))
    chains.add({FULL: ("2", "3")})
    chains.release()
    chains.add_event(event(EntityCreated, f"{FULL}/versions/4"))
    chains.add({FULL: ("3", "4"), OTHER: IDS})
    chains.roll_back()
    assert chains.all() == {FULL: ("2", "3")}


def test_an_event_costs_one_look_up() -> None:
    # ENT-104: a Version costs no more where many Resources are full
    chains = KnownVersionChains(LookUps())
    chains.add_event(event(EntityCreated, f"{FULL}/versions/3"))
    chains.add({FULL: ("2", "3")})
    chains.roll_back()
    assert chains.find(FULL) == IDS
