"""The HTTP sink passes the tests for all sinks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.brokers.suite import Contract
from tests.support.brokers.webhook import Webhook


class TestHttp(Contract):
    @pytest.fixture(scope="class")
    @classmethod
    def sink_broker(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Webhook]:
        made = Webhook(tmp_path_factory.mktemp("webhook"))
        made.start()
        yield made
        made.stop()
