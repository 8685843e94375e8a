"""The Kafka sink. kafka-python takes long to import, so only the first sink imports it."""

from __future__ import annotations

from annals.domain.subscriptions.sink_uris import KAFKA
from annals.projections.outgoing.resolver import Resolver
from annals.projections.subscriptions.contract import Sink, SinkTarget, sink


@sink(KAFKA)
def open_kafka(target: SinkTarget, resolver: Resolver) -> Sink:
    """The sink of a target, not connected yet."""
    from annals.projections.subscriptions.sinks.kafka.sender import KafkaSink

    return KafkaSink(target, resolver)
