"""The NATS sink passes the tests for all sinks, with a real server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.brokers.nats import nats_server
from tests.support.brokers.suite import Broker, Contract


@pytest.mark.uses("NATS")
class TestNats(Contract):
    @pytest.fixture(scope="class")
    @classmethod
    def sink_broker(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
        with nats_server(tmp_path_factory.mktemp("nats")) as sink_broker:
            yield sink_broker


@pytest.mark.uses("NATS")
class TestNatsWithJetStream(Contract):
    """The same with a stream that stores the messages."""

    @pytest.fixture(scope="class")
    @classmethod
    def sink_broker(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
        folder = tmp_path_factory.mktemp("nats")
        with nats_server(folder, f'jetstream: {{store_dir: "{folder / "store"}"}}') as sink_broker:
            sink_broker.add_stream()
            yield sink_broker
