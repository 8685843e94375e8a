"""Subscribers of a replica receive the events of its primary, unchanged (LEG-910)."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from tests.support.polling import until
from tests.support.registries.restarted import registries
from tests.support.webhooks import Webhooks, webhooks

LAST = "/schemagroups/last/schemas/s/versions/1"


def test_subscribers_of_a_replica_receive_events_of_its_primary(tmp_path: Path) -> None:
    # LEG-910, EV-79, SUB-113: subscribers of both registries get equal ids, sources, times and data; only the sequence
    # of an event comes from the log of each registry
    with registries(tmp_path, "one", "other") as (one, other), webhooks() as sinks:
        for registry, path in ((one, "/one"), (other, "/other")):
            registry.done("POST", "/subscriptions", {"protocol": "HTTP", "sink": sinks.url + path})
            until(partial(sinks.consent_requests.get, path))
        other.link("primary", one.url)
        one.write("g/s/1")
        one.write("g/s/1", name="again")
        one.write("last/s/1")
        until(lambda: all(LAST in sinks.subjects(path) for path in ("/one", "/other")))
        assert received_events(sinks, "/other") == received_events(sinks, "/one")
        assert {event["source"] for event in received_events(sinks, "/other")} == {one.url}


def received_events(sinks: Webhooks, path: str) -> list[dict[str, Any]]:
    """The events that arrived at a path, without sequence, sorted by id: order is only guaranteed for one subject."""
    found = [{name: value for name, value in event.items() if name != "sequence"} for event in sinks.events(path)]
    return sorted(found, key=lambda event: str(event["id"]))
