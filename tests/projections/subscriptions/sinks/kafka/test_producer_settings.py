"""The settings of a producer, as docs/guides/subscriptions/kafka.md describes them."""

from __future__ import annotations

import pytest
from kafka.errors import KafkaConnectionError, KafkaTimeoutError

from annals.projections.subscriptions.contract import SinkTarget
from annals.projections.subscriptions.sinks.kafka.outcomes import error_outcome

#: The security protocol of each scheme in the guide, without a credential.
SCHEMES = {"kafka": "PLAINTEXT", "PLAINTEXT": "PLAINTEXT", "SSL": "SSL", "SASL_SSL": "SSL"}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_settings_of_the_producer(scheme: str) -> None:  # § 2.5: schemes, several servers, defaults
    from annals.projections.subscriptions.sinks.kafka.sender import producer_config

    config = producer_config(SinkTarget("s1", f"{scheme}://one:1,[2001:db8::1],three/orders", {"acks": "-1"}))
    assert config["security_protocol"] == SCHEMES[scheme]
    assert config["bootstrap_servers"] == ["one:1", "[2001:db8::1]:9092", "three:9092"]
    assert (config["client_id"], config["acks"]) == ("annals", "all")


@pytest.mark.parametrize("error", [KafkaConnectionError(), KafkaTimeoutError()])
def test_each_error_has_a_text(error: Exception) -> None:
    # 8.5: the status of a subscription says something, though the library gave no reason
    assert error_outcome(error).message.strip()
