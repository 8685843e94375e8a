"""The destination guard: the addresses that the server may connect to."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from annals.projections.outgoing.destination_guard import DestinationGuard, DestinationRefused
from annals.projections.outgoing.dns import LookUp
from annals.projections.outgoing.resolver import ForbiddenAddress
from annals.projections.subscriptions.transport.connect import dial

CASES: list[dict[str, Any]] = yaml.load(Path(__file__).with_name("guard.yaml").read_text(), yaml.CSafeLoader)


def lookup(*answers: Sequence[str]) -> LookUp:
    """A name lookup that returns the answers in turn, and then always the last one."""
    left = list(answers)

    async def look_up(host: str, port: int) -> Sequence[str]:
        return left.pop(0) if len(left) > 1 else left[0]

    return look_up


@pytest.mark.parametrize("row", CASES, ids=lambda row: row["case"])
def test_permitted_and_refused_addresses(row: dict[str, Any]) -> None:
    # SUB-901, SUB-902, SUB-903: all addresses are checked, numbers like dotted forms; low ports need permission
    guard = DestinationGuard(row.get("allow", ""), look_up=lookup(row.get("has", [])))
    if not row["is"].isalpha():
        assert asyncio.run(guard.resolve(*row["ask"])) == row["is"]
        return
    with pytest.raises(DestinationRefused) as refused:
        asyncio.run(guard.resolve(*row["ask"]))
    assert refused.value.code == row["is"]
    # SUB-904: the message contains no address
    assert not any(each in str(refused.value) for each in [row["ask"][0], *row.get("has", [])] if each)


def test_real_names() -> None:
    # SUB-901: a name of this machine is looked up and refused like its address
    with pytest.raises(ForbiddenAddress):
        asyncio.run(DestinationGuard().resolve("localhost", 8080))
    with pytest.raises(ForbiddenAddress):
        asyncio.run(DestinationGuard().resolve(socket.gethostname(), 8080))
    assert asyncio.run(DestinationGuard("localhost").resolve("LOCALHOST.", 8080)) in ("127.0.0.1", "::1")
    with pytest.raises(OSError):
        asyncio.run(DestinationGuard().resolve(f"{'a' * 64}.invalid", 443))


def test_brokers_are_tried_at_each_address() -> None:
    # SUB-901: for MQTT, AMQP and NATS; the first address does not answer
    with socket.create_server(("127.0.0.1", 0)) as server:
        guard = DestinationGuard("broker", look_up=lookup(["127.0.0.9", "127.0.0.1"]))
        with asyncio.run(dial("broker", server.getsockname()[1], guard)) as connection:
            assert connection.getpeername() == server.getsockname()


def test_a_name_is_looked_up_each_time() -> None:
    # SUB-901: every lookup is checked, because a name can get another address
    guard = DestinationGuard(look_up=lookup(["93.184.216.34"], ["10.0.0.1"]))
    assert asyncio.run(guard.resolve("sink.test", 443)) == "93.184.216.34"
    with pytest.raises(ForbiddenAddress):
        asyncio.run(guard.resolve("sink.test", 443))


def test_names_are_resolved_concurrently() -> None:
    # SUB-806: a lookup that hangs delays no other lookup
    async def slow(host: str, port: int) -> Sequence[str]:
        await asyncio.sleep(60 if host == "slow.test" else 0)
        return ["93.184.216.34"]

    async def both() -> str:
        guard = DestinationGuard(look_up=slow)
        waiting = asyncio.create_task(guard.resolve("slow.test", 443))
        found = await asyncio.wait_for(guard.resolve("quick.test", 443), 30)
        waiting.cancel()
        return found

    assert asyncio.run(both()) == "93.184.216.34"


URIS = [
    ("https://sink.test/events?token=1", "HTTP", ""),
    ("http://sink.test/", "HTTP", "plaintext"),
    ("mqtt://sink.test", "MQTT5", "plaintext"),
    ("mqtts://sink.test", "MQTT3", ""),
    ("amqp://sink.test/q", "AMQP", "plaintext"),
    ("amqps://sink.test/q", "AMQP", ""),
    ("nats://sink.test:4222", "NATS", "plaintext"),
    ("tls://sink.test:4222", "NATS", ""),
    ("kafka://sink.test:9092", "KAFKA", "plaintext"),
    ("PLAINTEXT://sink.test:9092", "KAFKA", "plaintext"),
    ("SASL_SSL://sink.test:9093,other.test:9093", "KAFKA", ""),
    ("SASL_SSL://sink.test:9093,10.0.0.1:9093", "KAFKA", "address"),
    ("file:///etc/passwd", "HTTP", "scheme"),
    ("ftp://sink.test/", "HTTP", "scheme"),
    ("gopher://sink.test/", "HTTP", "scheme"),
    ("unix:///var/run/docker.sock", "HTTP", "scheme"),
    ("mqtts://sink.test", "HTTP", "scheme"),
    ("https://10.0.0.1/", "HTTP", "address"),
    ("https://169.254.169.254/latest/meta-data", "HTTP", "address"),
    ("https://[::ffff:10.0.0.1]/", "HTTP", "address"),
    ("https://2130706433/", "HTTP", "host"),
    ("https://sink.test:22/", "HTTP", "port"),
    ("https://sink.test@10.0.0.1/", "HTTP", "userinfo"),
    ("https://sink.test\\@10.0.0.1/", "HTTP", "value"),
    # A lookup that fails is accepted, because the name may get an address later. The other hosts are still checked.
    ("https://nobody.test/", "HTTP", ""),
    ("http://nobody.test/", "HTTP", "plaintext"),
    ("SASL_SSL://nobody.test:9093,10.0.0.1:9093", "KAFKA", "address"),
]


@pytest.mark.parametrize(("uri", "protocol", "code"), URIS)
def test_what_may_be_stored(uri: str, protocol: str, code: str) -> None:
    # SUB-901, SUB-902, SUB-904, SUB-905: addresses, schemes and channels are checked before a URI is stored
    async def look_up(host: str, port: int) -> Sequence[str]:
        if host == "nobody.test":
            raise OSError("nobody")
        return ["93.184.216.34"]

    check = DestinationGuard(look_up=look_up).check(uri, protocol)
    if not code:
        asyncio.run(check)
        return
    with pytest.raises(DestinationRefused) as refused:
        asyncio.run(check)
    assert refused.value.code == code
    assert "10.0.0.1" not in str(refused.value)


def test_channels_without_tls_where_they_are_allowed() -> None:
    # SUB-905: only if a setting allows them
    asyncio.run(
        DestinationGuard(allows_plaintext=True, look_up=lookup(["93.184.216.34"])).check("http://sink.test/", "HTTP")
    )


@pytest.mark.parametrize("text", ["10.0.0.1/8", "sink test", "sink.test:0", "sink.test:70000", "sink.test:x", "::1::"])
def test_lists_that_are_none(text: str) -> None:
    with pytest.raises(ValueError):
        DestinationGuard(text)
