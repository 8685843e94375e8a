"""Many clients register schemas at the same time: one id per content, and one version per subject and schema."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from annals.api.compat.confluent.paths import BASE
from tests.support.serving import serving

CLIENTS: Final = 12
SUBJECTS: Final = ("orders", "payments", ":.lab:orders")
SCHEMAS: Final = tuple(
    json.dumps({"type": "record", "name": "R", "fields": [{"name": f"f{number}", "type": "int"}]})
    for number in range(8)
)


def register_all(url: str, seed: int) -> list[tuple[str, str, dict[str, Any]]]:
    """Registers every schema in every subject, in a random order, and returns the responses."""
    jobs = list(product(SUBJECTS, SCHEMAS))
    random.Random(seed).shuffle(jobs)
    answers = []
    with httpx.Client(base_url=url + BASE, timeout=60) as client:
        for subject, schema in jobs:
            answer = client.post(f"/subjects/{subject}/versions", json={"schema": schema})
            assert answer.status_code == 200, answer.text
            answers.append((subject, schema, answer.json()))
    return answers


@pytest.mark.both_databases
@pytest.mark.timeout(180)
def test_clients_at_once_get_one_id_for_a_schema(store_url: str, tmp_path: Path) -> None:
    # CSR-516, CSR-407, CSR-408, CSR-409
    with serving(store_url, tmp_path) as served:
        httpx.put(
            f"{served.url}{BASE}/config/:.__GLOBAL:", json={"compatibility": "NONE"}, timeout=60
        ).raise_for_status()
        with ThreadPoolExecutor(CLIENTS) as pool:
            answers = [
                one for client in pool.map(register_all, [served.url] * CLIENTS, range(CLIENTS)) for one in client
            ]
        log = httpx.get(f"{served.url}/-/log", headers={"accept": "application/x-ndjson"}, timeout=60).text.splitlines()
    ids, numbers = defaultdict[str, set[int]](set), defaultdict[tuple[str, str], set[int]](set)
    for subject, schema, answer in answers:
        ids[schema].add(answer["id"])
        numbers[subject, schema].add(answer["version"])
    assert sorted(ids.values(), key=min) == [{id} for id in range(1, len(SCHEMAS) + 1)]
    for subject in SUBJECTS:
        given = [numbers[subject, schema] for schema in SCHEMAS]
        assert sorted(given, key=min) == [{number} for number in range(1, len(SCHEMAS) + 1)], subject
    events = [event for line in map(json.loads, log) for event in line.get("events", [line])]
    written = [event["xid"] for event in events if "/versions/" in event.get("xid", "")]
    assert len(set(written)) == len(SUBJECTS) * len(SCHEMAS)
    # a new version does not update earlier versions of its subject, and a repeated registration records nothing
    assert len({event["xregcorrelationid"] for event in events if event.get("xid") in set(written)}) == len(
        set(written)
    )
