"""What the answers of AMQP peers come to (SUB-821; the table of outcomes there)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from projections.subscriptions.contract import DELIVERED, DeliveryResult, Outcome

UNAUTHORIZED: Final = "amqp:unauthorized-access"
TOO_LARGE: Final = "amqp:link:message-size-exceeded"

#: Bytes of what a peer says that are kept, and of its name for it.
_MOST: Final = 1024
_MOST_CODE: Final = 200
#: Errors that end a connection, a session or a link and are more than a refusal for now. A missing target may come, a
#: deleted one may come back, a redirect is not followed.
_ERRORS: Final = {UNAUTHORIZED: DeliveryResult.UNAUTHORIZED, TOO_LARGE: DeliveryResult.REJECTED}


def condition_outcome(code: str, message: str = "") -> Outcome:
    """The outcome of an error, by its condition or our own word for it."""
    return Outcome(_ERRORS.get(code, DeliveryResult.RETRY), _short(code, _MOST_CODE), _short(message))


def rejected_outcome(code: str, message: str = "") -> Outcome:
    """The outcome of a message that the peer rejects, for the reason that it gives, if any."""
    if code == UNAUTHORIZED:  # the message would be welcome from somebody else
        return condition_outcome(code, message)
    return Outcome(DeliveryResult.REJECTED, _short(code, _MOST_CODE) or "rejected", _short(message))


#: What terminal states of a delivery come to, by their names in AMQP; conditions go with rejections only.
STATE_OUTCOMES: Final[dict[str, Callable[[str, str], Outcome]]] = {
    "accepted": lambda code, message: DELIVERED,
    "rejected": rejected_outcome,
    "released": lambda code, message: Outcome(DeliveryResult.RETRY, "released"),
    "modified": lambda code, message: Outcome(DeliveryResult.RETRY, "modified"),
}


def _short(text: str, most: int = _MOST) -> str:
    return text.encode(errors="replace")[:most].decode(errors="ignore")
