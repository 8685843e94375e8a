"""A registry that follows the whole log of another one equals it, over generated histories (LEG-910)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annals.commands.verify.verify_log import verify_log, verify_row_hashes
from annals.projections.entities.rebuild import rebuild
from tests.spec.properties.test_asof import URLS, extended_histories
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
#: Writes at the replica. The last two are refused, because they change what the link copies.
LOCAL_WRITES: Final = (
    Step("POST", "/subscriptions", {"sink": "http://127.0.0.1/x", "protocol": "HTTP", "types": ["a"]}),
    Step("PUT", "/-/links/other", {"url": "http://other.example", "mode": "push"}),
    Step("PUT", "/-/links/other", {"url": "http://other.example", "mode": "push", "interval": 5}),
    Step("DELETE", "/-/links/other"),
    Step("PUT", "/dirs/a", {"name": "not mine"}),
    Step("PATCH", "/", {"name": "not mine"}),
)


@pytest.mark.generated
def test_a_replica_is_what_it_copies(empty_databases: tuple[str, EmptyDatabases]) -> None:
    # LEG-910: interactions are appended whole under their own ids, each once, however often and in whatever pieces they
    # arrive; every response, about the present and the past, equals the primary's
    kind, empty = empty_databases

    @settings(max_examples=examples(EXAMPLES[kind]), **UNHURRIED)
    @given(
        extended_histories(),
        sync_rounds(LOCAL_WRITES),
        st.lists(st.sampled_from(URLS), min_size=15, max_size=15, unique=True),
        st.randoms(),
    )
    def run(history: list[Step], rounds: list[SyncRound], paths: list[str], random: Any) -> None:
        with empty() as (one, other):
            asyncio.run(check_history(one, other, history, rounds, paths, random))

    run()


async def check_history(
    one: str, other: str, history: Sequence[Step], rounds: Sequence[SyncRound], paths: Sequence[str], random: Any
) -> None:
    async with named_registry("primary1", one) as primary, named_registry("replica1", other, 1) as replica:
        async with manual_link(replica, primary) as pull:
            await replicate_history(primary, replica, pull, history, rounds)
        await assert_equal_logs(primary, replica)
        await assert_equal_responses(primary, replica, paths, random)
        is_sound(replica)
        await assert_equal_responses(primary, replica, paths[:5], random)


async def assert_equal_logs(primary: NamedRegistry, replica: NamedRegistry, *made: str) -> None:
    """Asserts that both logs have the same interactions of the tree, and that both registries publish the same events.

    made: names of registries in between, whose creation was copied as well.
    """
    there, here = tree_interactions(primary.interactions()), tree_interactions(replica.interactions())
    for name in (replica.name, *made):
        del here[f"{name}-1"]
    assert [*here.items()] == [*there.items()]
    assert replica.documents() == primary.documents()
    assert await replica.events() == await primary.events()


async def assert_equal_responses(
    primary: NamedRegistry, replica: NamedRegistry, paths: Sequence[str], random: Any
) -> None:
    """Asserts that both give the same responses, now and as of an interaction's id and time."""
    known = [(facts.xregcorrelationid, facts.time) for facts, _ in primary.interactions()]
    for path in paths:
        for moment in ("", random.choice(known)[0], random.choice(known)[1]):
            asof = f"{'&' if '?' in path else '?'}asof={moment}" if moment else ""
            here, there = await replica.read(path + asof), await primary.read(path + asof)
            assert here == there, (path, asof)


def is_sound(replica: NamedRegistry) -> None:
    """Asserts that the log verifies, and that a rebuilt read model equals the updated one."""
    assert [*verify_log(replica.store), *verify_row_hashes(replica.store)] == []
    before = replica.rows()
    rebuild(replica.store)
    assert replica.rows() == before
