"""The status of deliveries, from any process, and what a rebuild of projections leaves unchanged."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from prometheus_client import generate_latest

from annals.projections.entities.apply import EntityProjection
from annals.projections.entities.rebuild import rebuild
from annals.projections.subscriptions.contract import DeliveryResult, Outcome
from annals.projections.subscriptions.delivery_status import StoredDeliveries
from annals.projections.subscriptions.service import DeliveryService
from annals.projections.subscriptions.state import delivery_queries
from tests.support.delivery_rig import FAMILIES, Rig, until


@pytest.mark.parametrize(
    ("members", "shown"),
    [
        ({}, {"guarantee": "atleastonce", "webhookconformant": True}),
        ({"sink": "http://h/"}, {"guarantee": "atleastonce", "webhookconformant": False}),
        ({"settings": {"method": "PUT"}}, {"guarantee": "atleastonce", "webhookconformant": False}),
        ({"protocol": "NATS", "sink": "nats://h"}, {"guarantee": "atmostonce"}),
        ({"protocol": "KAFKA", "settings": {"acks": "0"}}, {"guarantee": "atmostonce"}),
        ({"protocol": "KAFKA", "settings": {"acks": "1"}}, {"guarantee": "atleastonce"}),
        ({"protocol": "MQTT5", "settings": {"qos": 0}}, {"guarantee": "atmostonce"}),
        ({"protocol": "MQTT5", "settings": {"qos": 1}}, {"guarantee": "atleastonce"}),
        ({"protocol": "AMQP", "settings": {"sendersettlementmode": "settled"}}, {"guarantee": "atmostonce"}),
        ({"protocol": "AMQP"}, {"guarantee": "atleastonce"}),
    ],
)
def test_what_an_acknowledgement_is_worth(sqlite_url: str, members: dict[str, Any], shown: dict[str, Any]) -> None:
    # SUB-709, SUB-715
    rig = Rig(sqlite_url)
    settings = members.pop("settings", {})
    subscription = rig.subscribe(**members)
    subscription.attributes["protocolsettings"].update(settings)
    status = rig.deliveries.status(subscription)
    assert {name: status[name] for name in ("guarantee", "webhookconformant") if name in status} == shown
    rig.close()


def test_a_subscription_without_deliveries(store_url: str) -> None:
    # 8.5: the status from the log alone
    rig = Rig(store_url)
    rig.groups("a", "b")
    rig.subscribe()
    status = rig.status()
    assert (status["state"], status["position"], status["headposition"], status["lag"]) == ("active", 3, 3, 0)
    rig.close()


def test_a_status_reads_no_pending_events(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # 8.5: a page of subscriptions costs the same, however many events wait
    rig = Rig(store_url)
    rig.receiver.answer = lambda id, events: Outcome(DeliveryResult.RETRY, "503")

    async def deliver() -> None:
        rig.subscribe()
        rig.groups("a", "b", "c")
        async with rig.delivering():
            await until(lambda: len(rig.receiver.attempts["s"]) == 3)

    asyncio.run(deliver())
    checked: list[Any] = []
    check = delivery_queries.has_column_types

    def note(row: Sequence[Any], column_types: delivery_queries.ColumnTypes) -> bool:
        checked.append(row)
        return check(row, column_types)

    monkeypatch.setattr(delivery_queries, "has_column_types", note)
    assert (rig.status()["state"], rig.status()["pending"]) == ("retrying", 3)
    assert not rig.deliveries.is_replaying(rig.subscription())
    assert len(checked) == 3 * 2  # for each of these the row of the subscription, and its last pending event
    rig.close()


def test_a_replay_that_has_not_begun(store_url: str) -> None:
    # SUB-834: the status shows it as soon as it is accepted, because no other one is
    rig = Rig(store_url)
    rig.groups("a", "b")
    rig.subscribe()
    rig.act("replay", "s", **{"from": 2, "to": 3})
    assert rig.status()["replay"] == {"from": 2, "to": 3, "position": 1}
    assert rig.deliveries.is_replaying(rig.subscription())
    rig.close()


def test_a_rebuild_sends_nothing_again(store_url: str) -> None:
    # SUB-802, walk-through 8: cursors and dead letters are not part of a projection
    rig = Rig(store_url)
    with rig.store.writing() as tx:
        EntityProjection().create(tx.connection)
    rig.receiver.answer = lambda id, events: Outcome(DeliveryResult.REJECTED, "400")

    async def deliver() -> None:
        rig.subscribe()
        async with rig.delivering():
            rig.groups("a", "b")
            await until(lambda: len(rig.deadletters()) == 2)
            await until(lambda: rig.status()["position"] == rig.position)

    async def again() -> None:
        async with rig.delivering():
            await asyncio.sleep(0.3)

    asyncio.run(deliver())
    before, letters = rig.status(), rig.deadletters()
    rebuild(rig.store)
    asyncio.run(again())
    assert len(rig.receiver.attempts["s"]) == 2
    assert (rig.status(), rig.deadletters()) == (before, letters)
    rig.close()


def test_a_service_in_a_thread(store_url: str) -> None:
    # SUB-833, SUB-842, SUB-803: it delivers with and without notice of commits; metrics do not contain the sink's URI
    rig = Rig(store_url)
    rig.clock.now = 0.0
    service = DeliveryService(rig.url, rig.ports, FAMILIES)
    service.start()

    async def deliver() -> None:
        rig.services.append(service)
        rig.subscribe(sink="https://sink.example/in?token=marker")
        rig.groups("a", "b")
        await until(lambda: len(rig.receiver.arrived["s"]) == 2)
        rig.services.clear()  # as though another process had committed
        rig.groups("c")
        await until(lambda: len(rig.receiver.arrived["s"]) == 3)
        other = StoredDeliveries(rig.url, rig.ports, FAMILIES)
        rig.act("pause")
        assert await asyncio.to_thread(other.wait_until_applied, rig.subscription())
        rig.groups("d")
        await asyncio.sleep(0.3)
        assert len(rig.receiver.arrived["s"]) == 3
        other.close()

    try:
        asyncio.run(deliver())
        text = generate_latest(service.metrics.registry).decode()
    finally:
        service.stop()
    assert 'annals_delivery_attempts_total{outcome="delivered",subscription="s"} 3.0' in text
    assert 'annals_delivery_seconds_count{subscription="s"} 3.0' in text
    assert 'annals_delivery_lag{subscription="s"} ' in text
    assert "marker" not in text
    rig.close()


def test_a_service_that_never_began(sqlite_url: str) -> None:
    # It can be stopped before its event loop runs
    rig = Rig(sqlite_url)
    for _ in range(5):
        service = DeliveryService(rig.url, rig.ports, FAMILIES)
        service.start()
        service.stop()
    rig.close()
