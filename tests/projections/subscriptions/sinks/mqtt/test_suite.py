"""The sinks of MQTT 3.1.1 and 5 pass the tests for all sinks, with a real Mosquitto."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from annals.domain.subscriptions.sink_uris import MQTT3, MQTT5
from tests.support.brokers.mosquitto import mosquitto
from tests.support.brokers.suite import Broker, Contract


@pytest.mark.uses("Mosquitto")
class TestMqtt3(Contract):
    @pytest.fixture(scope="class")
    @classmethod
    def sink_broker(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
        with mosquitto(tmp_path_factory.mktemp("mosquitto"), MQTT3) as sink_broker:
            yield sink_broker


@pytest.mark.uses("Mosquitto")
class TestMqtt5(Contract):
    @pytest.fixture(scope="class")
    @classmethod
    def sink_broker(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
        with mosquitto(tmp_path_factory.mktemp("mosquitto"), MQTT5) as sink_broker:
            yield sink_broker
