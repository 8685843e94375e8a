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
from tests.spec.properties.test_asof import lives
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
#: Of the Group `a` and what is below it.
PATHS: Final = (
    *("", "?inline=*", "?doc&inline", "/files?inline=versions,meta", "/files/f1$details?inline", "/files/f1"),
    *("/files/f1/meta", "/files/f1/versions", "/files/f1/versions/1.0.0", "/files?filter=stage=alpha", "/notes?inline"),
)
#: What a registry has beside what comes in, under a type of its own; that it is there is no part of any scope.
CRATES: Final = {"crates": {"singular": "crate", "resources": {"jars": {"singular": "jar"}}}}
BESIDE: Final = (
    Step("PUT", "/crates/x", {"name": "own"}),
    Step("PUT", "/crates/x/jars/j", b"own"),
    Step("DELETE", "/crates/x"),
    Step("PUT", "/dirs/own", {"name": "own"}),
    Step("DELETE", "/dirs/own"),
    Step("PUT", "/dirs/a", {"name": "not mine"}),
    Step("PUT", "/dirs/a/files/f1", b"not mine"),
)


def leads_out(step: Step, scope: str = "/dirs/a") -> bool:
    """Whether what a step writes would be a pointer to something outside of a Group."""
    target = step.body.get("xref") if isinstance(step.body, dict) else None
    return isinstance(target, str) and not target.startswith(f"{scope}/")


#: What a registry can do is its own, and so is what it shows where a pointer leads out of the scope.
PARTS_OF_LIVES: Final = lives().map(
    lambda history: [step for step in history if step.path != "/capabilities" and not leads_out(step)]
)


@pytest.mark.generated
def test_groups_of_another_registry_are_what_they_are_there(empty_databases: tuple[str, EmptyDatabases]) -> None:
    # LEG-901, LEG-909: what is in the scope of a link is as it is there, at each moment; what is beside it is not
    # touched, and can be written
    kind, empty = empty_databases

    @settings(max_examples=examples(EXAMPLES[kind]), **UNHURRIED)
    @given(PARTS_OF_LIVES, sync_rounds(BESIDE), st.sampled_from(SCOPES), st.randoms())
    def run(history: list[Step], looks: list[SyncRound], scope: dict[str, Any], random: Any) -> None:
        with empty() as (one, other):
            asyncio.run(check_history(one, other, history, looks, scope, random))

    run()


async def check_history(
    one: str, other: str, history: Sequence[Step], looks: Sequence[SyncRound], scope: dict[str, Any], random: Any
) -> None:
    async with named_registry("primary1", one) as primary, named_registry("replica1", other, 1) as replica:
        await replica.write("PUT", "/modelsource", {"groups": CRATES})
        async with manual_link(replica, primary, scope) as pull:
            await replicate_history(primary, replica, pull, history, looks)
        await is_there(primary, replica, "/dirs/a", random)
        await counts_are_right(replica)
        assert [*verify_log(replica.store), *verify_row_hashes(replica.store)] == []


async def is_there(primary: NamedRegistry, replica: NamedRegistry, group: str, random: Any) -> None:
    """Whether a Group is the same at both, now and at a moment by its id: times of several registries are mixed."""
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
    """The events of a Group and of what is below it, by interaction; where there are none, nothing."""
    for id, events in recorded.items():
        found = [event for event in events if f"{event['xid'].lower()}/".startswith(f"{group}/")]
        if found:
            yield id, found


async def counts_are_right(replica: NamedRegistry) -> None:
    found = json.loads((await replica.ask("GET", "/?inline=*")).content)
    counts = {name: number for name, number in found.items() if name.endswith("count")}
    assert counts == {f"{name}count": len(found[name]) for name in [count.removesuffix("count") for count in counts]}
