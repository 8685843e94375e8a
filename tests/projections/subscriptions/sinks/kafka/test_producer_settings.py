"""The settings of a producer, as docs/guides/subscriptions/kafka.md says."""

from __future__ import annotations

import pytest

from annals.projections.subscriptions.contract import SinkTarget

#: What the guide says of sinks and credentials, by scheme: the channel with and without one.
SCHEMES = {"kafka": "PLAINTEXT", "PLAINTEXT": "PLAINTEXT", "SSL": "SSL", "SASL_SSL": "SSL"}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_settings_of_the_producer(scheme: str) -> None:  # § 2.5: schemes, several servers, defaults
    from annals.projections.subscriptions.sinks.kafka.sender import producer_config

    told = producer_config(SinkTarget("s1", f"{scheme}://one:1,[2001:db8::1],three/orders", {"acks": "-1"}))
    assert told["security_protocol"] == SCHEMES[scheme]
    assert told["bootstrap_servers"] == ["one:1", "[2001:db8::1]:9092", "three:9092"]
    assert (told["client_id"], told["acks"]) == ("annals", "all")
