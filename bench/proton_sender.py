"""Events sent by python-qpid-proton alone, in its own loop, as fast as the peer gives credit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cloudevents.core.v1.event import CloudEvent
from proton.handlers import MessagingHandler
from proton.reactor import Container

from annals.projections.subscriptions.contract import SinkTarget
from annals.projections.subscriptions.sinks.amqp.messages import encode_message


def send_events(port: int, target: SinkTarget, events: Sequence[CloudEvent]) -> None:
    """Sends events to the address of a target, and comes back when all of them are accepted."""
    Container(_Sending(port, target, events)).run()


class _Sending(MessagingHandler):  # type: ignore[misc, unused-ignore]  # without Proton it is of any type
    def __init__(self, port: int, target: SinkTarget, events: Sequence[CloudEvent]) -> None:
        super().__init__()
        self._port, self._target = port, target
        self._unsent, self._open = iter(events), len(events)
        self._tags = 0

    def on_start(self, event: Any) -> None:
        """See Proton."""
        credential = self._target.credential
        assert credential is not None
        connection = event.container.connect(
            f"amqp://127.0.0.1:{self._port}",
            user=credential.identifier,
            password=credential.secret,
            allowed_mechs="PLAIN",
            allow_insecure_mechs=True,
            reconnect=False,
        )
        event.container.create_sender(connection, self._target.settings["address"])

    def on_sendable(self, event: Any) -> None:
        """See Proton."""
        while event.sender.credit and (each := next(self._unsent, None)) is not None:
            self._tags += 1
            event.sender.delivery(str(self._tags))
            event.sender.stream(encode_message(each, self._target.settings["address"], binary=False))
            event.sender.advance()

    def on_accepted(self, event: Any) -> None:
        """See Proton."""
        self._open -= 1
        if not self._open:
            event.connection.close()
