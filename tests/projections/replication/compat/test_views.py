"""The two legacy APIs of a replica give the same responses as those of its primary (LEG-903, LEG-904)."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import pytest

from annals.commands.verify.verify_log import verify_log, verify_row_hashes
from annals.domain.model.builtin import default_source
from tests.api.compat.test_asof import READS, SCHEMAS, SR, writes
from tests.support.registries.linked import ManualLink, NamedRegistry, manual_link, named_registry

SCOPES = (None, {"groups": ["/schemagroups/g", "/messagegroups/g"]})


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("seed", range(2))
def test_a_replica_publishes_what_its_primary_publishes(tmp_path: Path, seed: int, scope: Any) -> None:
    # LEG-903, LEG-904, LEG-707: the replica has the same documents, numbers, remaining Versions and URIs; these begin
    # with the URL of the registry that published them, not with the replica's
    async def run() -> None:
        async with (
            named_registry("primary1", f"sqlite:///{tmp_path}/one.db") as there,
            named_registry("replica1", f"sqlite:///{tmp_path}/other.db", 1) as here,
            manual_link(here, there, scope) as pull,
        ):
            await published(there, pull, random.Random(seed))
            moments = [facts.xregcorrelationid for facts, _ in here.interactions() if facts.registry_url == there.url]
            for read in READS:
                for asof in ("", *random.Random(seed).sample(moments[1:], 3)):
                    path = f"{read}{'&' if '?' in read else '?'}asof={asof}" if asof else read
                    assert await comparable_answer(here, path) == await comparable_answer(there, path), path
            response = await here.ask("GET", f"{SCHEMAS}/a")
            assert f"{here.url}{SR}/schema?uri=http%3A%2F%2Fprimary1%2F" in response.headers["schema-id-location"]
            assert [*verify_log(here.store), *verify_row_hashes(here.store)] == []

    asyncio.run(run())


async def published(there: NamedRegistry, pull: ManualLink, chance: random.Random) -> None:
    """Writes over all three APIs, which also prunes Versions, and ingests now and then."""
    model = json.loads(json.dumps(default_source()))
    model["groups"]["schemagroups"]["resources"]["schemas"]["maxversions"] = 2
    await there.write("PUT", "/modelsource", model)
    for path in (READS[1], READS[4]):
        await there.write("PUT", path, {"format": "own"})
    for method, path, body in writes(chance):
        await there.ask(method, path, body)
        if chance.random() < 0.3:
            await pull.ingest(lines=chance.randrange(40))
    await there.ask("POST", f"{SCHEMAS}/a?format=own", b"last")
    await pull.ingest()


async def comparable_answer(registry: NamedRegistry, path: str) -> tuple[int, dict[str, str], str]:
    """A response without what differs between registries: positions, their URLs in headers, and problem documents."""
    answer = await registry.ask("GET", path)
    own = ("etag", "content-length", "link", "annals-position")
    headers = {name: value for name, value in answer.headers.items() if name not in own}
    comparable = {name: value.replace(registry.url, "") for name, value in headers.items()}
    return answer.status, comparable, answer.content.decode() if answer.status < 400 else ""
