"""Reads from AMQP 1.0 brokers with Proton's blocking client and the cloudevents library."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, cast

from cloudevents.core.bindings.amqp import AMQPMessage, from_amqp_event
from proton import Message, Timeout
from proton.utils import BlockingConnection, BlockingReceiver

from annals.projections.subscriptions.contract import Credential, SinkTarget
from tests.support.brokers.suite import PASSWORD, USER, Received

_QUIET: Final = 0.3


def target(host: str, port: int, address: str, **given: Any) -> SinkTarget:
    """A target. given: the arguments of `Broker.target`, and `scheme`."""
    settings = {"address": address, "sendersettlementmode": "unsettled"} | given.get("settings", {})
    return SinkTarget(
        subscription="s1",
        uri=f"{given['scheme']}://{host}:{port}",
        settings=settings,
        contentmode=given["contentmode"],
        credential=given["credential"],
        timeout=given["seconds"],
    )


class Reader:
    """See suite.Receiver."""

    def __init__(self, receiver: BlockingReceiver) -> None:
        self._receiver = receiver

    def messages(self, count: int, seconds: float) -> Iterator[Message]:
        """The next messages, at most `count`."""
        for _ in range(count):
            try:
                message = self._receiver.receive(timeout=seconds)
            except Timeout:
                return
            self._receiver.accept()
            yield message

    def take(self, count: int, seconds: float = 60.0) -> list[Received]:
        return [_received(message) for message in self.messages(count, seconds)]


@contextmanager
def reading(port: int, address: str, *, emptied: bool = True) -> Iterator[Reader]:
    """A client that reads from an address. emptied: discards the messages that are there first."""
    credential = Credential("PLAIN", USER, PASSWORD)
    connection = BlockingConnection(
        f"amqp://127.0.0.1:{port}",
        user=credential.identifier,
        password=credential.secret,
        allowed_mechs="PLAIN",
        allow_insecure_mechs=True,
    )
    try:
        reader = Reader(connection.create_receiver(address, credit=100))
        while emptied and list(reader.messages(1, _QUIET)):
            pass
        yield reader
    finally:
        connection.close()


def _received(message: Message) -> Received:
    content_type = str(message.content_type)
    structured = content_type.startswith("application/cloudevents")
    whole = AMQPMessage(
        {"content-type": content_type}, dict(message.properties or {}), bytes(cast("bytes", message.body))
    )
    return Received("structured" if structured else "binary", from_amqp_event(whole))
