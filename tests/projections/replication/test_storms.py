"""What another registry or any client sends does not make a link send requests without a pause."""

from __future__ import annotations

import time
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from annals.domain.compat.legacy_apis import SCHEMAREGISTRY
from annals.projections.replication.link_worker import MIN_FETCH_SECONDS, LinkWorkerContext
from annals.projections.replication.log.log_push import MAX_GAPS
from tests.support.polling import until
from tests.support.registries.other_registry import json_answer, other_registry
from tests.support.registries.restarted import registries

_GAP = json_answer({"type": "http://other/-/docs#log_gap", "title": "There is a gap.", "position": 0}, 409)


def test_a_push_that_never_fits_is_an_error(tmp_path: Path) -> None:
    """LEG-901: a receiver that refuses each batch and names a position is asked again after growing pauses."""
    answers = {"GET /-/links/in": json_answer({"status": {"position": 0}}), "POST /-/links/in/log": _GAP}
    with registries(tmp_path, "a") as (a,), other_registry(answers) as other:
        a.write("g/s/1")
        a.link("out", other.url, mode="push", remote="in", interval=1)
        until(lambda: "answers 409: There is a gap." in a.status("out").get("error", ""))
        assert a.status("out")["state"] == "failing"
        time.sleep(3)
        assert MAX_GAPS <= other.counts["POST /-/links/in/log"] <= 6 * MAX_GAPS


_GROUPS = f"{SCHEMAREGISTRY.base}/{SCHEMAREGISTRY.path}"
_EVENT = {"specversion": "1.0", "id": "1", "source": "x", "type": "t", "subject": "/schemagroups/g"}
_CLOUDEVENT = {"content-type": "application/cloudevents+json"}
#: By dialect: the path of the API, and the request that each event causes.
_NOTIFIED = {"log": ("", "GET /-/log"), "schemaregistry": (SCHEMAREGISTRY.base, f"GET {_GROUPS}/g")}


@pytest.mark.parametrize("dialect", _NOTIFIED)
def test_many_events_cause_one_fetch_in_a_while(tmp_path: Path, dialect: str) -> None:
    """LEG-912, LEG-914: any client may send events; the link collects them, and fetches after the last one."""
    base, request_line = _NOTIFIED[dialect]
    members: dict[str, Any] = {"dialect": dialect, "mode": "events", "scope": {"groups": ["/schemagroups/g"]}}
    with (
        registries(tmp_path, "b") as (b,),
        b.client(None) as client,
        other_registry({f"GET {_GROUPS}": json_answer([])}) as other,
    ):
        b.link("l", other.url + base, interval=3600, **members)
        until(lambda: "lastcontact" in b.status("l") if dialect == "log" else other.counts[f"GET {_GROUPS}"])

        def notify() -> bool:
            return client.post("/-/links/l/events", json=_EVENT, headers=_CLOUDEVENT).status_code == 202

        until(lambda: notify() and other.counts[request_line] > 1)
        count, started_at = other.counts[request_line], time.monotonic()
        until(lambda: notify() and other.counts[request_line] - count > 3)
        fetches = other.counts[request_line] - count
        assert fetches <= (time.monotonic() - started_at) / MIN_FETCH_SECONDS + 2

        def is_fetched_at_once() -> bool:
            time.sleep(2 * MIN_FETCH_SECONDS)
            count, notified_at = other.counts[request_line], time.monotonic()
            notify()
            until(lambda: other.counts[request_line] > count)
            return time.monotonic() - notified_at < MIN_FETCH_SECONDS

        until(is_fetched_at_once)  # the machine may be slow once
        assert "error" not in b.status("l")


class _LateEvent(Event):
    """It is set right after a wait has ended."""

    def wait(self, timeout: float | None = None) -> bool:
        is_set = super().wait(timeout)
        self.set()
        return is_set


def test_an_event_at_the_end_of_a_wait_is_not_lost() -> None:
    """LEG-912, LEG-914: the next wait returns at once."""
    nothing: Any = None
    context = LinkWorkerContext(nothing, nothing, nothing, nothing, nothing, event_received=_LateEvent())
    assert [context.wait_for_event(0, 0) for _ in range(2)] == [False, True]
