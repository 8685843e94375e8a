"""For tests of subscriptions: callers, keys, a sink with an allowed address, and deliveries in memory."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any, Final

import httpx

from annals.api.subscriptions.ports import NoDeliveries
from annals.domain.access.roles import CanRead
from annals.domain.subscriptions.subscription import Subscription
from tests.support.registries.in_process import Api

KEY: Final = b64encode(bytes(32)).decode()
SINK: Final = "https://93.184.216.34/in"
BODY: Final[dict[str, Any]] = {"sink": SINK, "protocol": "HTTP", "types": ["io.xregistry.version.created"]}
TOKENS: Final = json.dumps(
    {
        "ann": {"name": "ann", "role": "writer"},
        "bob": {"name": "bob", "role": "writer"},
        "rita": {"name": "rita", "role": "reader"},
        "gina": {"name": "gina", "groups": {"/dirs/d1": "writer"}},
        "root": {"name": "root", "role": "admin"},
        "nemo": {"name": "nemo"},
    }
)


class InMemoryDeliveries(NoDeliveries):
    """Deliveries whose state a test sets. by_sequence: dead letters. done: the calls, in order."""

    def __init__(self) -> None:
        self.by_sequence: dict[str, dict[str, Any]] = {}
        self.state: dict[str, Any] = {}
        self.running = False
        self.done: list[tuple[str, ...]] = []

    def status(self, subscription: Subscription) -> Mapping[str, Any]:
        return {**super().status(subscription), **self.state}

    def is_replaying(self, subscription: Subscription) -> bool:
        return self.running

    def deadletters(self, id: str, after: str, limit: int, can_read: CanRead) -> Sequence[Mapping[str, Any]]:
        return [self.by_sequence[each] for each in sorted(self.by_sequence) if each > after][:limit]

    def deadletter(self, id: str, sequence: str, can_read: CanRead) -> Mapping[str, Any] | None:
        return self.by_sequence.get(sequence)

    def redeliver(self, id: str, sequence: str) -> None:
        self.done.append(("redeliver", sequence))

    def discard(self, id: str, sequence: str) -> None:
        del self.by_sequence[sequence]

    def consent(self, id: str, secret: str, rate: int | None) -> bool:
        self.done.append(("consent", id, secret, str(rate)))
        return secret == "right"


def bearer(token: str) -> dict[str, Any]:
    """The request headers of a caller with a token."""
    return {"authorization": f"Bearer {token}"}


def create_subscription(api: Api, body: dict[str, Any] | None = None, **headers: str) -> dict[str, Any]:
    """Creates a subscription and returns the response."""
    answer: dict[str, Any] = api.done("POST", "/subscriptions", {**BODY, **(body or {})}, **headers).json()
    return answer


def refusal(answer: httpx.Response) -> tuple[int, str, str | None]:
    """Status, code and pointer of a refused request."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    found = answer.json()
    assert found["status"] == answer.status_code
    return answer.status_code, found["code"], found.get("pointer")
