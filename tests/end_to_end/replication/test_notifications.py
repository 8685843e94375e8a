"""A registry subscribes to events of its source, and pulls when one arrives."""

from __future__ import annotations

import json
import socket
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx
import pytest

from annals.api.replication.notifications import MAX_CONCURRENT
from tests.support.polling import until
from tests.support.registries.restarted import Registry, registries, wait_until_equal_logs

#: Interval of full pulls in seconds: longer than any test.
_NEVER = 7 * 86400
_EVENT = {"specversion": "1.0", "id": "1", "source": "http://a", "type": "io.xregistry.group.created", "subject": "/x"}


def subscriptions(registry: Registry) -> list[dict[str, Any]]:
    """All subscriptions of a registry."""
    found: list[dict[str, Any]] = registry.done("GET", "/subscriptions")
    return found


@pytest.mark.parametrize("primary", ["sqlite", "postgresql"])
def test_a_notification_triggers_a_pull(tmp_path: Path, primary: str, request: pytest.FixtureRequest) -> None:
    """LEG-912, LEG-913: the link pulls everything at the start, and the present state when an event arrives."""
    databases = {"a": request.getfixturevalue("postgres_url")} if primary == "postgresql" else {}
    with registries(tmp_path, "a", "b", **databases) as (a, b):
        a.fill(2, 5)
        b.link("a", a.url, mode="events", interval=_NEVER)
        wait_until_equal_logs(a, b)
        for number in range(3):
            a.write(f"later/s/{number}", name="written later")
            wait_until_equal_logs(a, b)
        a.done("DELETE", "/schemagroups/group0")
        wait_until_equal_logs(a, b)
        [subscription] = subscriptions(a)
        assert (subscription["sink"], subscription["status"]["state"]) == (f"{b.url}/-/links/a/events", "active")
        assert subscription["status"]["validation"]["state"] == "validated"
        b.verified()


def test_a_group_is_not_another_one_that_begins_like_it(tmp_path: Path) -> None:
    """LEG-911: the subscription for the Group 5 matches its subject and the subjects below it, but not those of 55."""
    with registries(tmp_path, "a", "b") as (a, b):
        b.link("a", a.url, mode="events", interval=_NEVER, scope={"groups": ["/schemagroups/5"]})
        until(lambda: subscriptions(a))
        a.write("55/s/1")
        a.write("5/s/1")
        until(lambda: b.request("GET", "/schemagroups/5/schemas/s").status_code == 200)
        a.done("PATCH", "/schemagroups/5", {"name": "five"})
        until(lambda: b.done("GET", "/schemagroups/5").get("name") == "five")
        assert list(b.done("GET", "/schemagroups")) == ["5"]
        [subscription] = subscriptions(a)
        preview = a.done("POST", "/-/subscriptions/preview", {"filters": subscription["filters"], "limit": 1000})
        subjects = {each["subject"] for each in preview["matches"]}
        assert subjects == {f"/schemagroups/5{below}" for below in ("", "/schemas/s", "/schemas/s/versions/1")}
        b.verified()


def test_a_subscription_that_is_gone_is_made_again(tmp_path: Path) -> None:
    """LEG-913: the next pull fetches changes without a notification."""
    with registries(tmp_path, "a", "b") as (a, b):
        b.link("a", a.url, mode="events", interval=1)
        [first] = until(lambda: subscriptions(a))
        a.done("DELETE", f"/subscriptions/{first['id']}")
        a.write("g/s/1")
        [second] = until(lambda: subscriptions(a))
        assert second["id"] != first["id"]
        wait_until_equal_logs(a, b)


@pytest.mark.parametrize("end", ["deleted", "resting", "promoted"])
def test_the_subscription_goes_with_the_link(tmp_path: Path, end: str) -> None:
    """LEG-901: a link that ends deletes its subscription at the other registry."""
    with registries(tmp_path, "a", "b") as (a, b):
        b.link("a", a.url, mode="events")
        until(lambda: subscriptions(a))
        if end == "deleted":
            b.done("DELETE", "/-/links/a")
        elif end == "resting":
            b.link("a", a.url, mode="events", enabled=False)
        else:
            b.done("POST", "/-/links/a/actions/promote")
        until(lambda: not subscriptions(a))


def test_the_subscription_stays_while_the_server_is_away(tmp_path: Path) -> None:
    """LEG-913: a restarted server makes a full pull, and uses the existing subscription again."""
    with registries(tmp_path, "a", "b") as (a, b):
        b.link("a", a.url, mode="events", interval=_NEVER)
        [first] = until(lambda: subscriptions(a))
        b.stop()
        a.write("g/s/1")
        b.start()
        wait_until_equal_logs(a, b)
        a.write("g/s/2")
        wait_until_equal_logs(a, b)
        assert [each["id"] for each in subscriptions(a)] == [first["id"]]


def test_without_a_public_url_the_status_names_the_setting(tmp_path: Path) -> None:
    """LEG-901: the status of a failing link has the reason."""
    b = Registry(tmp_path / "b")
    del b.settings["ANNALS_PUBLIC_URL"]
    b.start()
    try:
        b.link("a", "http://127.0.0.1:1", mode="events")
        error = until(lambda: b.status("a").get("error"))
        assert "ANNALS_PUBLIC_URL" in error
        assert b.status("a")["state"] == "failing"
    finally:
        b.close()


_STRUCTURED = {"content-type": "application/cloudevents+json; charset=utf-8"}
_BATCH = {"content-type": "application/cloudevents-batch+json"}
_BINARY = {"content-type": "application/json", **{f"ce-{name}": value for name, value in _EVENT.items()}}
#: Link, headers and body of a request to a sink, and the status of the response.
_SENT: list[tuple[str, dict[str, str], bytes, int]] = [
    ("a", _STRUCTURED, json.dumps(_EVENT).encode(), 202),
    ("a", _STRUCTURED, json.dumps({**_EVENT, "type": "of.somebody.else"}).encode(), 202),
    ("a", _BATCH, json.dumps([_EVENT, _EVENT]).encode(), 202),
    ("a", _BATCH, b"[]", 202),
    ("a", _BINARY, b'{"changed":[]}', 202),
    ("a", _BINARY, b"", 202),
    ("rests", _STRUCTURED, json.dumps(_EVENT).encode(), 202),
    ("pulls", _STRUCTURED, json.dumps(_EVENT).encode(), 202),
    ("nowhere", _STRUCTURED, json.dumps(_EVENT).encode(), 202),
    ("a", _STRUCTURED, b"no json", 400),
    ("a", _STRUCTURED, b'{"specversion":"1.0"}', 400),
    ("a", _BATCH, json.dumps(_EVENT).encode(), 400),
    ("a", {"content-type": "application/json"}, b"{}", 415),
    ("a", {}, b"", 415),
    ("a", _STRUCTURED, b" " * (1 << 21), 413),
]
#: Link, origin that requests consent, and whether the sink consents.
_CONSENTS: list[tuple[str, str | None, bool]] = [
    ("a", "registry.example", True),
    ("a", "REGISTRY.example", True),
    ("a", "example", False),
    ("a", "registry.example.com", False),
    ("a", "*", False),
    ("a", None, False),
]


def test_the_sink_consents_and_takes_events(tmp_path: Path) -> None:
    """LEG-914, SUB-716: a link's sink consents only to the link's registry, and takes events from any client.

    It does not trust their content.
    """
    scope = {"scope": {"groups": ["/schemagroups/a"]}}
    with registries(tmp_path, "b") as (b,), b.client(None) as client:
        b.link("a", "https://registry.example:1", mode="events", **scope)
        b.link("rests", "https://registry.example:2", mode="events", enabled=False, scope={"groups": ["/x/b"]})
        b.link("pulls", "https://registry.example:3", scope={"groups": ["/x/c"]})
        for id, origin, consents in _CONSENTS:
            headers = {"webhook-request-origin": origin, "webhook-request-rate": "120"} if origin else {}
            answer = client.options(f"/-/links/{id}/events", headers=headers)
            consent = {name: answer.headers.get(f"webhook-allowed-{name}") for name in ("origin", "rate")}
            assert consent == ({"origin": origin, "rate": "*"} if consents else {"origin": None, "rate": None})
            assert (answer.status_code, answer.headers["allow"]) == (200, "POST, OPTIONS")
        for id, headers, body, status in _SENT:
            answer = client.post(f"/-/links/{id}/events", content=body, headers=headers)
            assert answer.status_code == status, (id, headers, body[:80], answer.text)
        assert client.get("/-/links/a/events").status_code == 405
        assert client.get("/-/links/a").status_code == 401


def test_notifications_do_not_reveal_links(tmp_path: Path) -> None:
    """LEG-901, LEG-914: for each request, the responses for existing links and for unknown ones are equal."""
    ids = ("a", "older", "pulls", "nowhere", "x" * 200, "%00", "%20")
    with registries(tmp_path, "b") as (b,), b.client(None) as client:
        b.link("a", "https://registry.example:1", mode="events", scope={"groups": ["/schemagroups/a"]})
        b.link("older", "https://older.example/api", mode="events", dialect="schemaregistry")
        b.link("pulls", "https://pulls.example:3", scope={"groups": ["/x/c"]})

        def check_equal_responses(method: str, headers: dict[str, str], content: bytes = b"") -> None:
            found = []
            for id in ids:
                answer = client.request(method, f"/-/links/{id}/events", headers=headers, content=content)
                headers_left = {
                    name: value
                    for name, value in answer.headers.items()
                    if name not in ("date", "annals-position", "content-length")
                }
                text = answer.text
                for spelled in (id, json.dumps(unquote(id))[1:-1]):
                    text = text.replace(f"links/{spelled}/", "links/ID/")
                found.append((answer.status_code, headers_left, text))
            assert found == [found[0]] * len(ids), (method, headers, content[:80])

        for _, headers, content, _ in _SENT:
            check_equal_responses("POST", headers, content)
        for origin in ("registry.example", "older.example", "pulls.example", "elsewhere.example"):
            check_equal_responses("OPTIONS", {"webhook-request-origin": origin})
        for method in ("GET", "HEAD", "PUT", "DELETE", "OPTIONS"):
            check_equal_responses(method, {})


def test_unauthenticated_notifications_trigger_a_pull(tmp_path: Path) -> None:
    """LEG-912: an event from any client makes the link fetch the present state; a needless pull is harmless."""
    with registries(tmp_path, "a", "b") as (a, b), b.client(None) as client:
        b.link("a", a.url, mode="events", interval=_NEVER)
        [subscription] = until(lambda: subscriptions(a))
        wait_until_equal_logs(a, b)
        a.done("POST", f"/subscriptions/{subscription['id']}/actions/pause")
        a.write("g/s/1")
        event = {**_EVENT, "subject": "/schemagroups/never/schemas/was"}
        for _ in range(3):
            assert client.post("/-/links/a/events", json=event, headers=_STRUCTURED).status_code == 202
        wait_until_equal_logs(a, b)
        assert b.status("a")["state"] == "active"


def test_a_sink_takes_so_many_at_a_time(tmp_path: Path) -> None:
    """SUB-716: under load the sink responds 429 with `Retry-After`."""
    begun = (
        b"POST /-/links/a/events HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        b"Content-Type: application/json\r\nContent-Length: 9\r\n\r\n"
    )
    with registries(tmp_path, "b") as (b,), ExitStack() as held, b.client(None) as client:
        b.link("a", "https://registry.example:1", mode="events")

        def send_event() -> httpx.Response:
            return client.post("/-/links/a/events", json=_EVENT, headers=_STRUCTURED)

        def refusal() -> httpx.Response | None:
            """The response if the sink refuses an event. Otherwise opens one more unfinished request."""
            if (answer := send_event()).status_code != 202:
                return answer
            held.enter_context(socket.create_connection(("127.0.0.1", b.port))).sendall(begun)
            return None

        for _ in range(MAX_CONCURRENT - 2):
            refusal()
        refused = until(refusal)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
        held.close()
        until(lambda: send_event().status_code == 202)


def test_an_event_may_come_in_to_a_process_that_does_not_run_the_link(tmp_path: Path, postgres_url: str) -> None:
    """LEG-912: a process that receives an event notifies the process that runs the link."""
    with registries(tmp_path, "a", "b", "c", b=postgres_url, c=postgres_url) as (a, b, c):
        b.link("a", a.url, mode="events", interval=_NEVER)
        [subscription] = until(lambda: subscriptions(a))
        wait_until_equal_logs(a, b)
        a.done("POST", f"/subscriptions/{subscription['id']}/actions/pause")
        for process in (b, c):
            a.write(f"g/s/{process.port}")
            with process.client(None) as client:
                assert client.post("/-/links/a/events", json=_EVENT, headers=_STRUCTURED).status_code == 202
            wait_until_equal_logs(a, b, c)
