"""An AMQP connection whose peer gives no credit."""

from __future__ import annotations

import asyncio
import gc
import weakref

import pytest

pytest.importorskip("proton", reason="no python-qpid-proton: pip install annals[amqp], with a C compiler and CMake")

from annals.projections.subscriptions.sinks.amqp.connection import AmqpConnection, AmqpConnectionSettings


def test_a_cancelled_message_does_not_wait_for_credit() -> None:
    # each attempt is cancelled at its timeout: its message must not stay until the peer gives credit
    async def scenario() -> None:
        connection = AmqpConnection(AmqpConnectionSettings("broker.test", "address"))
        first, cancelled, last = (connection.send(b"message") for _ in range(3))
        reference = weakref.ref(cancelled)
        cancelled.cancel()
        del cancelled
        await asyncio.sleep(0.01)
        gc.collect()
        assert reference() is None
        connection.close()
        assert [(await each).code for each in (first, last)] == ["closed", "closed"]

    asyncio.run(scenario())
