"""The sink of AMQP 1.0 against RabbitMQ and Artemis."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("proton", reason="no python-qpid-proton: pip install annals[amqp], with a C compiler and CMake")

from annals.projections.subscriptions.contract import DeliveryResult
from tests.support.brokers.artemis import Artemis
from tests.support.brokers.rabbitmq import RabbitMQ
from tests.support.brokers.suite import BAD, Contract, deliver, event, open_sink, run


def started(broker: Any) -> Iterator[Any]:
    try:
        broker.start()
        yield broker
    finally:
        broker.close()


@pytest.mark.uses("RabbitMQ")
class TestRabbitMQ(Contract):
    @pytest.fixture(scope="class")
    @classmethod
    def sink_broker(cls) -> Iterator[RabbitMQ]:
        yield from started(RabbitMQ())


@pytest.mark.uses("Artemis")
class TestArtemis(Contract):
    @pytest.fixture(scope="class")
    @classmethod
    def sink_broker(cls) -> Iterator[Artemis]:
        yield from started(Artemis())

    @pytest.mark.parametrize("tls", [False, True])
    def test_through_a_websocket(self, sink_broker: Artemis, tls: bool, monkeypatch: pytest.MonkeyPatch) -> None:  # 2.4
        monkeypatch.setenv("SSL_CERT_FILE", str(sink_broker.ca))
        with sink_broker.receiving() as receiver:

            async def scenario() -> None:
                async with open_sink(sink_broker.target(tls=tls, web=True), "AMQP") as sink:
                    sends = [deliver(sink, event(n, {"text": "x" * 3**n})) for n in range(1, 11)]
                    assert {each.result for each in await asyncio.gather(*sends)} == {DeliveryResult.DELIVERED}

            run(scenario)
            received = receiver.take(10)
        assert [len(each.event.get_data()["text"]) for each in received] == [3**n for n in range(1, 11)]  # type: ignore[index,call-overload]

    def test_a_wrong_password_through_a_websocket(self, sink_broker: Artemis) -> None:
        async def scenario() -> None:
            async with open_sink(sink_broker.target(web=True, credential=BAD), "AMQP") as sink:
                assert (await deliver(sink, event(1))).result is DeliveryResult.UNAUTHORIZED

        run(scenario)

    @pytest.mark.parametrize(
        ("address", "result", "code"),
        [
            ("forbidden.q", DeliveryResult.UNAUTHORIZED, "amqp:unauthorized-access"),
            ("known.q", DeliveryResult.RETRY, "amqp:not-found"),
            ("full.q", DeliveryResult.REJECTED, "amqp:resource-limit-exceeded"),
        ],
    )
    def test_refusals(self, sink_broker: Artemis, address: str, result: DeliveryResult, code: str) -> None:  # SUB-821
        async def scenario() -> None:
            async with open_sink(sink_broker.target(address=address), "AMQP") as sink:
                for number in range(3):
                    last = await deliver(sink, event(number))
                assert (last.result, last.code) == (result, code)

        run(scenario)

    def test_settled_messages_arrive(self, sink_broker: Artemis) -> None:  # SUB-709: at most once, and here once
        with sink_broker.receiving() as receiver:

            async def scenario() -> None:
                async with open_sink(sink_broker.target(sendersettlementmode="settled"), "AMQP") as sink:
                    sends = [deliver(sink, event(n, {"text": "x" * 20_000})) for n in range(500)]
                    assert {each.result for each in await asyncio.gather(*sends)} == {DeliveryResult.DELIVERED}

            run(scenario)
            assert len(receiver.take(500)) == 500
