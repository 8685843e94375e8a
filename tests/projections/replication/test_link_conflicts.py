"""The conflicts of a link, as its stored status has them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from annals.commands.store.log import Store
from annals.projections.replication.link_conflicts import MAX_CONFLICTS, SUBJECT, XID, LinkConflicts
from annals.projections.replication.link_state import LinkStates

TOTAL = 50 * MAX_CONFLICTS


@pytest.fixture
def states(store_url: str) -> Iterator[LinkStates]:
    """The states of links of a new store."""
    with closing(Store(store_url)) as store:
        store.create()
    with closing(LinkStates(store_url)) as states:
        yield states


@pytest.mark.parametrize("member", [XID, SUBJECT])
def test_the_total_survives_a_restart(states: LinkStates, member: str) -> None:
    # LEG-907: a status names the first conflicts only, and has the number of all
    conflicts = LinkConflicts("up", states, member)
    for number in range(TOTAL):
        conflicts.add(f"/dirs/d{number}", "taken")
    conflicts.save(7)
    named = [{member: f"/dirs/d{number}", "reason": "taken"} for number in range(MAX_CONFLICTS)]
    status = states.read("up").status
    assert (status["conflicts"], status["conflictscount"]) == (named, TOTAL)
    restarted = LinkConflicts("up", states, member)
    restarted.resolve("/dirs/d0")
    restarted.save()
    progress = states.read("up")
    assert (progress.cursor, progress.status["conflicts"]) == (7, named[1:])
    assert progress.status["conflictscount"] == len(restarted) == TOTAL - 1


def test_a_full_pass_finds_what_a_restart_has_forgotten(states: LinkStates) -> None:
    # Only a full pass can tell which conflicts there still are beyond those that the status names
    conflicts = LinkConflicts("up", states, XID)
    for number in range(MAX_CONFLICTS + 2):
        conflicts.add(f"/dirs/d{number}", "taken")
    conflicts.save()
    restarted = LinkConflicts("up", states, XID)
    assert restarted.needs_full_pass and len(restarted) == MAX_CONFLICTS + 2
    restarted.clear()
    restarted.save()
    assert not restarted.needs_full_pass
    assert not {"conflicts", "conflictscount"} & states.read("up").status.keys()


def test_conflicts_are_tried_again_in_turns(states: LinkStates) -> None:
    # One that stays must not keep others from being tried
    conflicts = LinkConflicts("up", states, XID)
    for subject in ("/dirs/a", "/dirs/b", "/dirs/a"):
        conflicts.add(subject, "taken")
    assert conflicts.first_subjects() == ["/dirs/b", "/dirs/a"]


def test_a_subject_is_resolved_with_or_without_what_is_below_it(states: LinkStates) -> None:
    # A Group that was written says nothing about its Resources; a definition is copied with its Versions
    conflicts = LinkConflicts("up", states, XID)
    for subject in ("/dirs/d", "/dirs/d/files/f", "/dirs/d2"):
        conflicts.add(subject, "taken")
    conflicts.resolve("/dirs/d")
    assert conflicts.first_subjects() == ["/dirs/d/files/f", "/dirs/d2"]
    conflicts.resolve_tree("/dirs/d")
    assert conflicts.first_subjects() == ["/dirs/d2"]


def test_conflicts_of_a_link_that_had_another_dialect_are_only_counted(states: LinkStates) -> None:
    # LEG-902: the subjects of one dialect mean nothing to the other; its first full pass finds its own
    conflicts = LinkConflicts("up", states, XID)
    conflicts.add("/schemagroups/g", "taken")
    conflicts.save()
    changed = LinkConflicts("up", states, SUBJECT)
    assert changed.needs_full_pass and len(changed) == 1
