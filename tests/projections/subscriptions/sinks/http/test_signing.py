"""Signatures of deliveries, checked by the libraries that receivers use."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from typing import Any, Protocol

import pytest
import standardwebhooks
import svix
from cloudevents.core.v1.event import CloudEvent
from starlette.responses import Response

from annals.projections.subscriptions.contract import SinkTarget
from tests.projections.subscriptions.events import event, send_batches, target
from tests.support.receivers import ReceivedRequest, Receiver, serve_receiver

KEY = bytes(range(32))
SECRET = f"whsec_{b64encode(KEY).decode()}"


class Verifier(Protocol):
    def verify(self, data: bytes, headers: dict[str, str]) -> Any: ...


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with serve_receiver(Receiver()) as served:
        yield served


def got(receiver: Receiver, to: SinkTarget, *events: CloudEvent) -> ReceivedRequest:
    receiver.requests.clear()
    send_batches(to, events)
    return receiver.requests[0]


VERIFIERS: list[tuple[type, type[Exception]]] = [
    (standardwebhooks.Webhook, standardwebhooks.WebhookVerificationError),
    (svix.Webhook, svix.WebhookVerificationError),
]


@pytest.mark.parametrize(("verifier", "refusal"), VERIFIERS)
@pytest.mark.parametrize("mode", ["structured", "binary", "batched"])
def test_receivers_verify_signatures(receiver: Receiver, verifier: type, refusal: type[Exception], mode: str) -> None:
    # Standard Webhooks, "Verifying webhook authenticity": in every mode, and never for changed requests
    request = got(receiver, target(receiver.url, mode, key=KEY), event("a b.1", data={"changed": ["é"]}))
    webhook: Verifier = verifier(SECRET)
    webhook.verify(request.body, dict(request.headers))
    changed: list[tuple[Verifier, bytes, dict[str, str]]] = [
        (webhook, request.body.replace(b"changed", b"Changed"), {}),
        (webhook, request.body, {"webhook-id": "other"}),
        (webhook, request.body, {"webhook-timestamp": "1700000000"}),
        (verifier("whsec_" + b64encode(b"x" * 32).decode()), request.body, {}),
    ]
    for each, body, headers in changed:
        with pytest.raises(refusal):
            each.verify(body, dict(request.headers) | headers)


def test_an_event_has_one_id_in_all_attempts(receiver: Receiver) -> None:
    # SUB-114: by which receivers recognize duplicates
    receiver.requests.clear()
    receiver.answers = [Response(status_code=503)]
    once = event("0193e2b8.1.xregistry.version.created")
    send_batches(target(receiver.url, key=KEY), [once], [once])
    assert [request.header("webhook-id") for request in receiver.requests] == [once.get_id()] * 2
    batch = [event("1"), event("2")]
    to = target(receiver.url, "batched", key=KEY)
    ids = {got(receiver, to, *batch).header("webhook-id") for _ in range(2)}
    assert len(ids) == 1 and ids != {got(receiver, to, event("1")).header("webhook-id")}


def test_without_a_key_nothing_is_signed(receiver: Receiver) -> None:
    request = got(receiver, target(receiver.url), event())
    assert not [name for name, _ in request.headers if name.startswith("webhook-")]
