"""The outcomes of answers from AMQP peers (SUB-821; the table of outcomes there)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from annals.projections.subscriptions.contract import DELIVERED, DeliveryResult, Outcome

UNAUTHORIZED: Final = "amqp:unauthorized-access"
TOO_LARGE: Final = "amqp:link:message-size-exceeded"

#: Largest size of a peer's error code, in bytes.
_MAX_CODE_BYTES: Final = 200
#: Errors of a connection, session or link that are not a plain RETRY. RETRY covers the others: a missing target may be
#: created, a deleted one may come back. Redirects are not followed.
_CONDITION_RESULTS: Final = {UNAUTHORIZED: DeliveryResult.UNAUTHORIZED, TOO_LARGE: DeliveryResult.REJECTED}


def condition_outcome(code: str, message: str = "") -> Outcome:
    """The outcome of an error, by its AMQP condition or a code of this project."""
    return Outcome(_CONDITION_RESULTS.get(code, DeliveryResult.RETRY), _shorten_code(code), message)


def rejected_outcome(code: str, message: str = "") -> Outcome:
    """The outcome of a message that the peer rejected, with the peer's reason if it gave one."""
    if code == UNAUTHORIZED:  # the peer may accept the message from another user
        return condition_outcome(code, message)
    return Outcome(DeliveryResult.REJECTED, _shorten_code(code) or "rejected", message)


#: The outcome of each terminal delivery state, by its AMQP name. Only rejections carry a condition.
STATE_OUTCOMES: Final[dict[str, Callable[[str, str], Outcome]]] = {
    "accepted": lambda code, message: DELIVERED,
    "rejected": rejected_outcome,
    "released": lambda code, message: Outcome(DeliveryResult.RETRY, "released"),
    "modified": lambda code, message: Outcome(DeliveryResult.RETRY, "modified"),
}


def _shorten_code(code: str) -> str:
    return code.encode(errors="replace")[:_MAX_CODE_BYTES].decode(errors="ignore")
