"""Groups copied from another registry next to local ones, over generated histories (LEG-901, LEG-909)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annals.commands.verify.verify_log import verify_log, verify_row_hashes
from tests.spec.properties.test_asof import extended_histories
from tests.support.examples import examples
from tests.support.histories import UNHURRIED, Step
from tests.support.registries.linked import (
    EmptyDatabases,
    NamedRegistry,
    SyncRound,
    empty_databases,
    manual_link,
    named_registry,
    replicate_history,
    sync_rounds,
    tree_interactions,
)

__all__ = ["empty_databases"]

EXAMPLES: Final = {"sqlite": 12, "postgresql": 2}
SCOPES: Final = ({"groups": ["/dirs/a"]}, {"filters": [{"prefix": {"subject": "/dirs/a"}}]})
#: Reads of the Group `a` and of entities below it.
PATHS: Final = (
    *("", "?inline=*", "?doc&inline", "/files?inline=versions,meta", "/files/f1$details?inline", "/files/f1"),
    *("/files/f1/meta", "/files/f1/versions", "/files/f1/versions/1.0.0", "/files?filter=stage=alpha", "/notes?inline"),
)
#: A Group type of the replica alone, which is in no scope.
CRATES: Final = {"crates": {"singular": "crate", "resources": {"jars": {"singular": "jar"}}}}
LOCAL_WRITES: Final = (
    Step("PUT", "/crates/x", {"name": "own"}),
    Step("PUT", "/crates/x/jars/j", b"own"),
    Step("DELETE", "/crates/x"),
    Step("PUT", "/dirs/own", {"name": "own"}),
    Step("DELETE", "/dirs/own"),
    Step("PUT", "/dirs/a", {"name": "not mine"}),
    Step("PUT", "/dirs/a/files/f1", b"not mine"),
)


def leads_out(step: Step, scope: str = "/dirs/a") -> bool:
    """Whether a step writes an xref that points outside of a Group."""
    target = step.body.get("xref") if isinstance(step.body, dict) else None
    return isinstance(target, str) and not target.startswith(f"{scope}/")


#: Without what a replica may have differently: capabilities, and the targets of xrefs that point out of the scope.
PARTS_OF_LIVES: Final = extended_histories().map(
    lambda history: [step for step in history if step.path != "/capabilities" and not leads_out(step)]
)


@pytest.mark.generated
def test_groups_of_another_registry_are_what_they_are_there(empty_databases: tuple[str, EmptyDatabases]) -> None:
    # LEG-901, LEG-909: the Group in a link's scope equals the source's, now and in the past; local entities outside of
    # the scope can be written, and the link does not change them
    kind, empty = empty_databases

    @settings(max_examples=examples(EXAMPLES[kind]), **UNHURRIED)
    @given(PARTS_OF_LIVES, sync_rounds(LOCAL_WRITES), st.sampled_from(SCOPES), st.randoms())
    def run(history: list[Step], rounds: list[SyncRound], scope: dict[str, Any], random: Any) -> None:
        with empty() as (one, other):
            asyncio.run(check_history(one, other, history, rounds, scope, random))

    run()


async def check_history(
    one: str, other: str, history: Sequence[Step], rounds: Sequence[SyncRound], scope: dict[str, Any], random: Any
) -> None:
    async with named_registry("primary1", one) as primary, named_registry("replica1", other, 1) as replica:
        await replica.write("PUT", "/modelsource", {"groups": CRATES})
        async with manual_link(replica, primary, scope) as pull:
            await replicate_history(primary, replica, pull, history, rounds)
        await assert_equal_group(primary, replica, "/dirs/a", random)
        await assert_counts(replica)
        assert [*verify_log(replica.store), *verify_row_hashes(replica.store)] == []


async def assert_equal_group(primary: NamedRegistry, replica: NamedRegistry, group: str, random: Any) -> None:
    """Asserts that a Group is equal at both, now and as of an interaction's id: times of several registries mix."""
    there = {id: found[1] for id, found in tree_interactions(primary.interactions()).items()}
    here = {id: found[1] for id, found in tree_interactions(replica.interactions()).items() if id in there}
    assert [*inside(here, group)] == [*inside(there, group)]
    hashes = [json.loads((await each.ask("GET", f"/-/hash{group}")).content) for each in (primary, replica)]
    assert hashes[0]["hash"] == hashes[1]["hash"]
    for path in PATHS:
        for moment in ("", random.choice([*here])):
            asof = f"{'&' if '?' in path else '?'}asof={moment}" if moment else ""
            here_, there_ = await replica.read(group + path + asof), await primary.read(group + path + asof)
            assert here_ == there_, (path, asof, str(here_), str(there_))


def inside(recorded: dict[str, Any], group: str) -> Iterator[tuple[str, Any]]:
    """The events of a Group and of entities below it, by interaction, without interactions that have none."""
    for id, events in recorded.items():
        found = [event for event in events if f"{event['xid'].lower()}/".startswith(f"{group}/")]
        if found:
            yield id, found


async def assert_counts(replica: NamedRegistry) -> None:
    found = json.loads((await replica.ask("GET", "/?inline=*")).content)
    counts = {name: number for name, number in found.items() if name.endswith("count")}
    assert counts == {f"{name}count": len(found[name]) for name in [count.removesuffix("count") for count in counts]}
