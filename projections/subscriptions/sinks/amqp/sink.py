"""The sinks of AMQP 1.0: one connection with one link each, made when something is sent and again after it broke.

python-qpid-proton is optional; this module can be imported without it.
Spec: CloudEvents AMQP protocol binding 1.0.2; AMQP 1.0, parts 2, 3 and 5.
"""

from __future__ import annotations

from projections.outgoing.resolver import Resolver
from projections.subscriptions.contract import Sink, SinkTarget, sink


@sink("AMQP")
def open_amqp(target: SinkTarget, resolver: Resolver) -> Sink:
    """A sink, which takes any number of `send` calls at a time. Raises: ImportError without python-qpid-proton."""
    from projections.subscriptions.sinks.amqp.sender import AmqpSink

    return AmqpSink(target, resolver)
