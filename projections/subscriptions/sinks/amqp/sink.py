"""The AMQP 1.0 sinks, with one connection and one link each. They connect on first use, and again after a failure.

python-qpid-proton is optional; this module can be imported without it.
Spec: CloudEvents AMQP protocol binding 1.0.2; AMQP 1.0, parts 2, 3 and 5.
"""

from __future__ import annotations

from annals.projections.outgoing.resolver import Resolver
from annals.projections.subscriptions.contract import Sink, SinkTarget, sink


@sink("AMQP")
def open_amqp(target: SinkTarget, resolver: Resolver) -> Sink:
    """A sink that accepts concurrent `send` calls. Raises: ImportError without python-qpid-proton."""
    from annals.projections.subscriptions.sinks.amqp.sender import AmqpSink

    return AmqpSink(target, resolver)
