"""In a registry with its own Groups and copied ones, a time names the same position in every API (FLAG-80)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from annals.spark_projections.sources.remote_log import RemoteLog
from tests.support.polling import until
from tests.support.registries.restarted import TOKEN, Registry, registries

_NDJSON = {"accept": "application/x-ndjson"}


def now() -> str:
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


def tree(registry: Registry) -> list[tuple[int, str]]:
    """Last position and time of each interaction that changed the tree, in the order of the log, without the first."""
    with registry.client(TOKEN) as client:
        lines = client.get("/-/log", headers=_NDJSON).text.splitlines()
    found = [json.loads(line) for line in lines]
    apart = {each["position"] for each in found if each.get("stream", "").startswith(("/-/", "/subscriptions"))}
    return [(each["last"], each["time"]) for each in found if each.get("first", 1) > 1 and each["first"] not in apart]


@pytest.mark.parametrize("database", ["sqlite", "postgresql"])
def test_a_time_names_one_position_wherever_it_is_given(
    tmp_path: Path, database: str, request: pytest.FixtureRequest
) -> None:
    """FLAG-80, LEG-910: copied events keep the times of their source, so times in the log are not ascending."""
    databases = {"b": request.getfixturevalue("postgres_url")} if database == "postgresql" else {}
    with registries(tmp_path, "a", "b", **databases) as (a, b):
        moments = [now()]
        for number in range(3):
            a.write(f"theirs/s/{number}")
            moments.append(now())
            b.write(f"own/s/{number}")
            moments.append(now())
        b.link("a", a.url, scope={"groups": ["/schemagroups/theirs"]})
        until(lambda: b.request("GET", "/schemagroups/theirs/schemas/s/versions/2").status_code == 200)
        a.write("theirs/s/3")
        until(lambda: b.request("GET", "/schemagroups/theirs/schemas/s/versions/3").status_code == 200)
        b.write("own/s/3")
        moments.append(now())
        happened = tree(b)
        assert happened != sorted(happened, key=lambda each: each[1])
        named = [named_everywhere(b, moment) for moment in moments]
        assert named == sorted(named)
        for moment, position in zip(moments, named, strict=True):
            assert all(time <= moment for last, time in happened if last <= position)
            following = next((time for last, time in happened if last > position), None)
            assert following is None or following > moment
        assert named[-1] == b.head()["position"]


def named_everywhere(registry: Registry, moment: str) -> int:
    """The position that a time names. Checks that it is the same in each API."""
    position = int(registry.done("GET", f"/-/log/head?asof={moment}")["position"])
    at: dict[str, Any] = {"asof": str(position)}
    with registry.client(TOKEN) as client:
        for path in ("/schemagroups/own/schemas", "/schemagroups/theirs", "/schemagroups"):
            by_time, by_position = client.get(path, params={"asof": moment}), client.get(path, params=at)
            assert by_time.status_code == by_position.status_code
            unlinked = (
                answer.text.replace(f"asof={name}", "asof=then")
                for answer, name in ((by_time, moment), (by_position, at["asof"]))
            )
            assert by_time.status_code != 200 or len(set(unlinked)) == 1
        feeds = [client.get("/-/log", params={"after": each}, headers=_NDJSON).text for each in (moment, position)]
        assert feeds[0] == feeds[1]
        events = [client.get("/-/events", params={"after": each}, headers=_NDJSON).text for each in (moment, position)]
        assert events[0] == events[1]
        histories = [client.get("/-/history/", params={"from": each}).text for each in (moment, position)]
        assert histories[0] == histories[1]
        hashes = [client.get("/-/hash/", params={"asof": each}).json()["hash"] for each in (moment, position)]
        assert hashes[0] == hashes[1]
    assert RemoteLog(registry.url, TOKEN).head(moment).position == position
    return position
