"""Runs compat_events.yaml as requests to real stores: the events of the legacy APIs that each request results in."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import yaml

from annals.domain.compat.legacy_apis import LEGACY_APIS
from annals.projections.compat.events import CompatEvents
from annals.projections.database.connections import connect
from annals.projections.events import event_families
from annals.projections.log.reader import Log
from tests.support.registries.requests import BASE, Registry, Request, serving

#: Headers of a document, for the xRegistry API and for a legacy API.
DOCUMENT = {"Content-Type": "text/plain", "xRegistry-format": "Own/1", "Schema-Format": "Own/1"}
ROWS: list[dict[str, Any]] = yaml.load(Path(__file__).with_name("compat_events.yaml").read_text(), yaml.CSafeLoader)


@pytest.mark.parametrize("row", ROWS, ids=[f"{row['rule']}: {row['says']}" for row in ROWS])
def test_events_of_a_request(row: dict[str, Any], store_url: str) -> None:
    async def run() -> None:
        async with serving(store_url) as registry:
            for write in (*row.get("given", ()), row["when"]):
                answer = await registry.ask(request(*write))
                assert 200 <= answer.status < 300, (write, answer)
            everything = events_of_both(store_url)
            id = f"c{registry.moment.number}"
            found = [each for each in map(json.loads, everything) if each["xregcorrelationid"] == id]
            assert found == [event(line, id, registry) for line in row["then"]]
            assert events_of_both(store_url) == everything  # LEG-1006: projecting the log again gives the same events

    asyncio.run(run())


def request(method: str, path: str, body: Any = None) -> Request:
    """A request. A body that is a string is a document."""
    return Request(method, path, body, DOCUMENT if isinstance(body, str) else {})


def events_of_both(url: str) -> list[bytes]:
    """All events of both legacy APIs, projected from the log of a store."""
    both = [CompatEvents(family) for family in LEGACY_APIS]
    with closing(connect(url)) as reader:
        log = Log(reader)
        return [
            message.json()
            for interaction in log.interactions(0, 1_000)
            for _, message in event_families.published_events(
                both, interaction, log.events(interaction.first, interaction.last)
            )
        ]


def event(line: str, id: str, registry: Registry) -> Mapping[str, Any]:
    """The whole event that a line of the table describes."""
    index, action, subject, *time = line.split()
    family = next(family for family in LEGACY_APIS if subject.startswith(f"/{family.path}/"))
    type = f"{family.events}.{action}.v1"
    return {
        "specversion": "1.0",
        "id": f"{id}.{index}.{type.removeprefix('io.')}",
        "source": BASE + family.base,
        "type": type,
        "subject": subject,
        "time": time[0] if time else moment(action, registry),
        "xregcorrelationid": id,
    }


def moment(action: str, registry: Registry) -> str:
    """The time of the last request: in the format of the log for deletions, else in that of entities."""
    digits = "microseconds" if action == "deleted" else "auto"
    return registry.moment.clock().isoformat(timespec=digits).replace("+00:00", "Z")
