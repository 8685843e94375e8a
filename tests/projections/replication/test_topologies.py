"""More than two registries: a hub between two, and a registry with Groups of several others (LEG-909, LEG-910)."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from annals.commands.verify.verify_log import verify_log, verify_row_hashes
from tests.projections.replication.test_partial_replica import assert_counts, assert_equal_group, leads_out
from tests.projections.replication.test_whole_replica import LOCAL_WRITES, assert_equal_logs, assert_equal_responses
from tests.spec.properties.test_asof import URLS, extended_histories
from tests.support.histories import UNHURRIED, Step, model
from tests.support.registries.linked import SyncRound, manual_link, named_registry, replicate_history, sync_rounds

OWN = ("/modelsource", "/capabilities")
#: One model for both, which no history changes.
MODEL = Step("PUT", "/modelsource", model("createdat", 2, documents=True))
OF_ONE_MODEL = extended_histories().map(
    lambda history: [MODEL, *(step for step in history if step.path not in OWN and not leads_out(step, "/none"))]
)


@settings(max_examples=4, **UNHURRIED)
@given(
    extended_histories(),
    sync_rounds(LOCAL_WRITES),
    sync_rounds(LOCAL_WRITES),
    st.lists(st.sampled_from(URLS), min_size=10, max_size=10),
    st.randoms(),
)
def test_a_replica_of_a_replica_is_the_first_one(
    history: list[Step], rounds: list[SyncRound], further: list[SyncRound], paths: list[str], random: Any
) -> None:
    # LEG-910: ids, callers, times and URLs pass unchanged through a registry in between
    async def run(folder: str) -> None:
        async with (
            named_registry("primary1", f"sqlite:///{folder}/1.db") as first,
            named_registry("hub", f"sqlite:///{folder}/2.db", 1) as hub,
            named_registry("replica1", f"sqlite:///{folder}/3.db", 2) as last,
            manual_link(hub, first) as pull,
            manual_link(last, hub) as outflow,
        ):
            half = len(history) // 2
            await replicate_history(first, hub, pull, history[:half], rounds)
            await replicate_history(hub, last, outflow, [], further)
            await replicate_history(first, hub, pull, history[half:], rounds)
            await replicate_history(hub, last, outflow, [], further)
            await assert_equal_logs(first, last, "hub")
            await assert_equal_responses(first, last, paths, random)
            assert [*verify_log(last.store), *verify_row_hashes(last.store)] == []

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(folder))


@settings(max_examples=4, **UNHURRIED)
@given(OF_ONE_MODEL, OF_ONE_MODEL, sync_rounds([None]), sync_rounds([None]), st.randoms())
def test_registries_share_one_that_holds_groups_of_each(
    ones: list[Step], others: list[Step], rounds: Sequence[SyncRound], further: Sequence[SyncRound], random: Any
) -> None:
    # LEG-901, LEG-909: one registry can hold Groups of several authorities, each equal to the one at its source
    async def run(folder: str) -> None:
        async with (
            named_registry("primary1", f"sqlite:///{folder}/1.db") as one,
            named_registry("primary2", f"sqlite:///{folder}/2.db") as other,
            named_registry("replica1", f"sqlite:///{folder}/3.db", 1) as here,
            manual_link(here, one, {"groups": ["/dirs/a"]}) as first,
            manual_link(here, other, {"groups": ["/dirs/b"]}) as second,
        ):
            half = len(ones) // 2
            await replicate_history(one, here, first, ones[:half], rounds)
            await replicate_history(other, here, second, others, further)
            await replicate_history(one, here, first, ones[half:], rounds)
            await assert_equal_group(one, here, "/dirs/a", random)
            await assert_equal_group(other, here, "/dirs/b", random)
            await assert_counts(here)
            assert [*verify_log(here.store), *verify_row_hashes(here.store)] == []

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(run(folder))
