"""The acceptance walk-through of subscriptions: a server in its own process, sinks with real sockets, both databases.

Docstrings have the numbers of its steps. They are one test, because a killed deliverer is replaced only after ten
seconds.
"""

from __future__ import annotations

import json
import signal
import time
from base64 import b64encode
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.polling import until
from tests.support.registries.client import VERSION, xid
from tests.support.registries.subscribed import Registry, registry
from tests.support.serving import annals
from tests.support.subscribing import KEY
from tests.support.webhooks import Webhooks, webhooks

CREATED: Final = "io.xregistry.version.created"
#: Retries after a short delay, and often enough for the test.
SOON: Final = {"retry": {"initialdelay": 1, "maxdelay": 1, "multiplier": 1, "maxattempts": 100}}
SECRETS: Final = ("marker-one", "marker-two")


@pytest.fixture
def sinks() -> Iterator[Webhooks]:
    with webhooks() as sinks:
        yield sinks


@pytest.mark.timeout(240)
def test_the_acceptance_walk_through(store_url: str, tmp_path: Path, sinks: Webhooks) -> None:
    # SUB-801, 802, 803, 805, 811, 833, 834, 711, 713, 715, 304, 901: as each step says
    with registry(store_url, tmp_path, ANNALS_MASTER_KEY=KEY) as server:
        first = _matching_events_arrive(server, sinks)
        _rejected_events_are_retried(server, sinks, first)
        _pauses_and_replays(server, sinks)
        _expressions(server, sinks)
        _secrets_stay_with_their_sink(server, sinks)
        _forbidden_addresses(server)
        many = 10_000 if store_url.startswith("sqlite") else 2_000
        id = _killed_before_an_answer(server, sinks, many)
    with registry(store_url, tmp_path, ANNALS_MASTER_KEY=KEY) as server:
        _none_of_many_is_missing(server, sinks, id, many)
        until(lambda: _settled(server))
    before = _stored_statuses(store_url, tmp_path)
    count = sum(map(len, sinks.received.values()))
    rebuilt = annals("rebuild", "--database", store_url, cwd=tmp_path)
    assert rebuilt.returncode == 0, rebuilt.stderr
    with registry(store_url, tmp_path, ANNALS_MASTER_KEY=KEY) as server:
        _nothing_is_sent_again(server, sinks, before, count)
    printed = (tmp_path / "serve.log").read_text()
    assert not any(secret in printed for secret in SECRETS)


def _matching_events_arrive(server: Registry, sinks: Webhooks) -> str:
    """1: the sink is asked for consent and gets only matching events, structured, with the ids of the writes."""
    id = server.subscribe(
        f"{sinks.url}/one", types=[CREATED], filters=[{"prefix": {"subject": "/schemagroups/a/"}}], settings=SOON
    )
    until(lambda: server.status(id)["validation"]["state"] == "validated")
    [asked] = sinks.consent_requests["/one"]
    assert asked["webhook-request-origin"] == "localhost"
    writes = [server.write(version) for version in ("a/s/1", "b/s/1", "a/s/2", "a/t/1")]
    server.delete("a/s/1")
    until(lambda: len(sinks.received["/one"]) == 3)
    until(lambda: server.status(id)["lag"] == 0)
    found = sorted(sinks.events("/one"), key=_sequence)  # subjects may overtake each other
    assert [each["xregcorrelationid"] for each in found] == [writes[0], writes[2], writes[3]]
    assert [each["subject"] for each in found] == [xid("a/s/1"), xid("a/s/2"), xid("a/t/1")]
    assert {each["type"] for each in found} == {CREATED}
    assert server.status(id)["webhookconformant"] is False  # SUB-715: without TLS
    for event in sinks.received["/one"]:
        assert event.headers["content-type"].lower() == "application/cloudevents+json; charset=utf-8"
        assert event.headers["webhook-request-origin"] == "localhost"
    return id


def _rejected_events_are_retried(server: Registry, sinks: Webhooks, id: str) -> None:
    """2: after three responses 503 the same event arrives a fourth time; another subject overtakes it."""
    start, refused, overtaken = len(sinks.received["/one"]), list[str](), list[bool]()

    def answer(path: str, event: dict[str, Any]) -> int:
        if event["subject"] != xid("a/refused/1") or (overtaken and len(refused) >= 3):
            return 204
        refused.append(event["id"])
        return 503

    sinks.answer = answer
    server.write("a/refused/1")
    until(lambda: server.status(id)["state"] == "retrying")
    server.write("a/other/1")
    until(lambda: xid("a/other/1") in sinks.subjects("/one"))
    overtaken.append(True)
    until(lambda: server.status(id)["state"] == "active")
    ids = [each["id"] for each in sinks.events("/one")[start:] if each["subject"] == xid("a/refused/1")]
    assert ids == [refused[0]] * (len(refused) + 1)


def _pauses_and_replays(server: Registry, sinks: Webhooks) -> None:
    """4: events written during a pause arrive in order; a replay has the same ids and times, in the same order."""
    settings = {**SOON, "ordering": "source"}
    id = server.subscribe(f"{sinks.url}/paused", types=[CREATED], settings=settings)
    server.write("b/before/1")
    until(lambda: len(sinks.received["/paused"]) == 1)
    assert server.act(id, "pause")["state"] == "paused"
    for number in range(5):
        server.write(f"b/paused/{number}")
    time.sleep(0.3)
    assert len(sinks.received["/paused"]) == 1
    server.act(id, "resume")
    until(lambda: len(sinks.received["/paused"]) == 6)
    found = sinks.events("/paused")
    assert [each["subject"] for each in found[1:]] == [xid(f"b/paused/{number}") for number in range(5)]
    assert found == sorted(found, key=_sequence)
    server.act(id, "replay", fromposition=int(found[0]["sequence"].partition(".")[0]))
    until(lambda: len(sinks.received["/paused"]) == 12)
    assert sinks.events("/paused")[6:] == found
    until(lambda: "replay" not in server.status(id))
    server.done("DELETE", f"/subscriptions/{id}")


def _expressions(server: Registry, sinks: Webhooks) -> None:
    """5: a filter for deletes; a syntax error; a filter that cannot be evaluated matches no event."""
    deletes = server.subscribe(f"{sinks.url}/deletes", filters=[{"sql": "type LIKE '%.deleted' AND EXISTS subject"}])
    errors = server.subscribe(f"{sinks.url}/errors", filters=[{"sql": "subject + 1 > 0"}])
    refused = server.request(
        "POST", "/subscriptions", {"protocol": "HTTP", "sink": sinks.url, "filters": [{"sql": "type LIKE"}]}
    )
    assert (refused.status_code, refused.json()["pointer"]) == (400, "/filters/0/sql")
    server.write("a/deleted/1")
    server.write("a/deleted/2")
    server.delete("a/deleted/1")
    until(lambda: sinks.received["/deletes"])
    for id in (deletes, errors):
        until(partial(lambda id: (found := server.status(id))["lag"] == 0 and found["state"] == "active", id))
    assert sinks.subjects("/deletes") == [xid("a/deleted/1")]
    assert not sinks.received["/errors"]
    for id in (deletes, errors):
        server.done("DELETE", f"/subscriptions/{id}")


def _secrets_stay_with_their_sink(server: Registry, sinks: Webhooks) -> None:
    """6: a change of the host requires the secret again; only the sink receives it."""
    body: dict[str, Any] = {"protocol": "HTTP", "filters": [{"suffix": {"subject": "/sealed"}}], "types": [CREATED]}
    login = {"credentialtype": "PLAIN", "identifier": "user"}
    given = [{**login, "secret": secret} for secret in SECRETS]
    id = server.subscribe(f"{sinks.url}/sealed", **{**body, "sinkcredential": given[0]})
    server.write("a/s/sealed")
    until(lambda: sinks.received["/sealed"])
    elsewhere = {**body, "sink": sinks.url.replace("127.0.0.1", "localhost") + "/sealed"}
    refused = server.request("PUT", f"/subscriptions/{id}", {**elsewhere, "sinkcredential": login})
    assert (refused.status_code, refused.json()["code"]) == (400, "secretrequired")
    refused_at = server.status(id)["headposition"]
    written = server.request("PUT", f"/subscriptions/{id}", {**elsewhere, "sinkcredential": given[1]})
    assert written.status_code == 200
    server.write("b/s/sealed")
    until(lambda: len(sinks.received["/sealed"]) == 2)
    encoded = [b64encode(f"user:{secret}".encode()).decode() for secret in SECRETS]
    assert [event.headers["authorization"] for event in sinks.received["/sealed"]] == [
        f"Basic {each}" for each in encoded
    ]
    answers = [written.text, refused.text]
    paths = ("/subscriptions", f"/subscriptions/{id}", f"/subscriptions/{id}?asof={refused_at}", "/-/log", "/-/events")
    answers += [server.request("GET", path).text for path in paths]
    assert not any(secret in answer for secret in (*SECRETS, *encoded) for answer in answers)
    server.done("DELETE", f"/subscriptions/{id}")


def _forbidden_addresses(server: Registry) -> None:
    """7: refused at creation. For names that change see tests/api/subscriptions/test_deliveries.py."""
    for sink in ("http://169.254.169.254/", "http://10.0.0.1/", "http://[::ffff:10.0.0.1]/", "http://2852039166/"):
        refused = server.request("POST", "/subscriptions", {"protocol": "HTTP", "sink": sink})
        assert refused.status_code == 400, sink
        assert refused.json()["pointer"] == "/sink"


def _killed_before_an_answer(server: Registry, sinks: Webhooks, many: int) -> str:
    """3: a subscription whose server is killed while some of its many events are being sent."""
    id = server.subscribe(f"{sinks.url}/many", types=[CREATED], filters=[{"prefix": {"subject": "/schemagroups/m"}}])
    until(lambda: sinks.consent_requests["/many"])
    for group in range(20):
        schemas = {f"s{number}": {"versions": {"1": VERSION}} for number in range(many // 20)}
        server.done("PUT", f"/schemagroups/m{group}", {"schemas": schemas})
    until(lambda: len(sinks.received["/many"]) > many / 10)
    sinks.is_blocked = True
    count = len(sinks.received["/many"])
    until(lambda: len(sinks.received["/many"]) > count)
    server.served.process.send_signal(signal.SIGKILL)
    server.served.process.wait()
    assert len(sinks.received["/many"]) < many
    sinks.is_blocked = False
    return id


def _none_of_many_is_missing(server: Registry, sinks: Webhooks, id: str, many: int) -> None:
    """3: the next server sends those again within 15 seconds, with equal ids, and then all others."""
    count = len(sinks.received["/many"])
    ids = {each["id"] for each in sinks.events("/many")}
    until(lambda: len(sinks.received["/many"]) > count, 15)
    until(lambda: server.status(id)["lag"] == 0, 90)
    events = sinks.events("/many")
    assert len({each["subject"] for each in events}) == many
    assert len({(each["source"], each["id"], each["sequence"], each["time"]) for each in events}) == many
    assert many < len(events) < many + len(ids)


def _nothing_is_sent_again(server: Registry, sinks: Webhooks, before: dict[str, Any], count: int) -> None:
    """8: a rebuild does not change the delivery state: the status is the same as before."""
    assert len(before) == 2
    assert until(lambda: _settled(server)) == before
    server.write("a/s/last")
    until(lambda: sinks.subjects("/one")[-1] == xid("a/s/last"))
    assert sum(map(len, sinks.received.values())) == count + 1


def _stored_statuses(url: str, folder: Path) -> dict[str, Any]:
    """The status of every subscription, read from the store while no server runs."""
    listed = annals("subscriptions", "list", "--json", "--database", url, cwd=folder)
    return {each["id"]: each["status"] for each in map(json.loads, listed.stdout.splitlines())}


def _settled(server: Registry) -> dict[str, Any] | None:
    """The status of every subscription, or None while there are pending events."""
    found = {each["id"]: each["status"] for each in server.done("GET", "/subscriptions")}
    return found if all(each["lag"] == each["pending"] == 0 for each in found.values()) else None


def _sequence(event: dict[str, Any]) -> str:
    return str(event["sequence"])
