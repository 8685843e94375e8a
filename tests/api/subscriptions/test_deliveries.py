"""A registry that delivers, in the process of the test: compiled filters, metrics, and look-ups of names."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Final

import pytest

from annals.domain.cesql import evaluation
from annals.domain.cesql.parser import parse
from annals.domain.cesql.syntax import SyntaxNode
from annals.projections.outgoing.destination_guard import DestinationGuard
from tests.support.polling import until
from tests.support.registries.in_process import Api, create, serving
from tests.support.subscribing import KEY
from tests.support.webhooks import Webhooks, webhooks

#: Retries after short delays, and more of them than a test needs.
SOON: Final = {"retry": {"initialdelay": 1, "maxdelay": 1, "multiplier": 1, "maxattempts": 100}}
MARK: Final = "marker-of-a-token"


@pytest.fixture
def sinks() -> Iterator[Webhooks]:
    with webhooks() as sinks:
        yield sinks


@contextmanager
def delivering(
    url: str, guard: DestinationGuard | None = None, ids: str = "id", tokens: str | None = None
) -> Iterator[Api]:
    """A registry that delivers to this machine."""
    ports = {"delivers": True, "resolver": guard or DestinationGuard("127.0.0.1", allows_plaintext=True)}
    settings: dict[str, Any] = {"sinks_validation": "off", "sinks_plaintext": True, "master_key": KEY, "tokens": tokens}
    with serving(url, ids=ids, ports=ports, **settings) as api:
        yield api


def subscribed(api: Api, sink: str, **members: Any) -> str:
    """Creates a subscription; its path."""
    body = {"protocol": "HTTP", "sink": sink, "protocolsettings": SOON} | members
    return f"/subscriptions/{api.done('POST', '/subscriptions', body, content_type='application/json').json()['id']}"


def status(api: Api, path: str) -> dict[str, Any]:
    found: dict[str, Any] = api.get(path)["status"]
    return found


def test_filters_are_compiled_once(sqlite_url: str, sinks: Webhooks, monkeypatch: pytest.MonkeyPatch) -> None:
    # SUB-411: filters are compiled when they are written and when a process starts, and never for an event
    parsed: list[str] = []

    def noted(text: str) -> SyntaxNode:
        parsed.append(text)
        return parse(text)

    monkeypatch.setattr(evaluation, "parse", noted)

    def arrives(api: Api, name: str) -> None:
        """Writes an entity and waits for its delivery: the deliverer has then seen all earlier changes as well."""
        api.done("PUT", f"/dirs/{name}", {})
        until(lambda: f"/dirs/{name}" in sinks.subjects("/s"))

    create(sqlite_url)
    with delivering(sqlite_url) as api:
        path = subscribed(api, f"{sinks.url}/s", filters=[{"sql": "subject LIKE '/dirs/%'"}])
        for number in range(20):
            arrives(api, f"d{number}")
        for action in ("pause", "resume", "verify", "replay"):
            arguments = {"fromposition": 1} if action == "replay" else None
            answer = api.send("POST", f"{path}/actions/{action}", arguments, content_type="application/json")
            assert answer.status_code == 202, answer.text
            api.get("/subscriptions")
        arrives(api, "last")
        assert len(parsed) == 2  # by the API, and by the deliverer
        body = api.get(path) | {"filters": [{"sql": "subject LIKE '/dirs/d%'"}]}
        api.done("PUT", path, body, content_type="application/json")
        arrives(api, "d21")
        assert len(parsed) == 4
    parsed.clear()
    with delivering(sqlite_url, ids="later") as api:
        arrives(api, "d22")
        arrives(api, "d23")
        assert len(parsed) == 1


def test_metrics(sqlite_url: str, sinks: Webhooks) -> None:
    # SUB-842: attempts and outcomes, time to the acknowledgement, lag; by subscription, without its sink
    create(sqlite_url)
    refused = iter((503, 400))
    sinks.answer = lambda path, event: next(refused, 204)
    with delivering(sqlite_url) as api:
        path = subscribed(api, f"{sinks.url}/s?token={MARK}", types=["io.xregistry.group.created"])
        for name in ("a", "b", "c"):
            api.done("PUT", f"/dirs/{name}", {})
        until(lambda: len(sinks.received[f"/s?token={MARK}"]) == 4)
        until(lambda: (found := status(api, path))["deadletters"] == 1 and found["lag"] == 0)
        text = api.send("GET", "/-/metrics").text
        api.done("DELETE", path)
        until(lambda: path.rpartition("/")[2] not in api.send("GET", "/-/metrics").text)
    label = f'subscription="{path.rpartition("/")[2]}"'
    for outcome, count in (("delivered", 2), ("retry", 1), ("rejected", 1)):
        assert f'annals_delivery_attempts_total{{outcome="{outcome}",{label}}} {count}.0' in text
    assert f"annals_delivery_dead_letters_total{{{label}}} 1.0" in text
    assert f"annals_delivery_seconds_count{{{label}}} 2.0" in text
    assert f"annals_delivery_lag{{{label}}} 0.0" in text
    assert not re.search(rf"{MARK}|127\.0\.0\.1|token", "".join(re.findall(r"annals_delivery_.*", text)))


def test_a_name_that_moves(sqlite_url: str, sinks: Webhooks) -> None:
    # SUB-901, 904, walk-through 7: a name that passed the first check is not contacted at another address later
    create(sqlite_url)
    port = int(sinks.url.rpartition(":")[2])
    lookups: list[str] = []
    moved = True

    async def look_up(host: str, port: int) -> Sequence[str]:
        lookups.append(host)
        return ["127.0.0.2" if moved and len(lookups) > 1 else "127.0.0.1"]

    guard = DestinationGuard("127.0.0.1", allows_plaintext=True, look_up=look_up)
    with counted("127.0.0.2", port) as contacted, delivering(sqlite_url, guard) as api:
        path = subscribed(api, f"http://sink.test:{port}/moved")
        api.done("PUT", "/dirs/a", {})
        error = until(lambda: status(api, path).get("lasterror"))
        time.sleep(0.5)
        assert (error["code"], "127.0" in error["message"]) == ("address", False)
        assert not contacted and not sinks.received["/moved"]
        assert 1 < len(lookups) < 20
        moved = False
        until(lambda: sinks.received["/moved"])


@contextmanager
def counted(address: str, port: int) -> Iterator[list[object]]:
    """The connections to an address. Skips the test if the machine does not have the address."""
    found: list[object] = []
    with ExitStack() as stack:
        try:
            listening = stack.enter_context(socket.create_server((address, port)))
        except OSError:
            pytest.skip(f"this machine does not have {address}")

        def listen() -> None:
            with suppress(OSError):
                while True:
                    found.append(listening.accept())

        threading.Thread(target=listen, daemon=True).start()
        yield found
        listening.shutdown(socket.SHUT_RDWR)
