"""What the errors of Kafka and of its client library come to for a delivery (subscriptions 8.3)."""

from __future__ import annotations

import re
import ssl
from typing import Final

from kafka import errors

from projections.outgoing.resolver import ForbiddenAddress
from projections.subscriptions.contract import DeliveryResult, Outcome
from projections.subscriptions.transport.connect import failure_outcome

#: How much is kept of what is said, in bytes (SUB-823).
MAX_MESSAGE_BYTES: Final = 1024

#: The record will not get better.
_REJECTED: Final = (
    errors.MessageSizeTooLargeError,
    errors.RecordListTooLargeError,
    errors.InvalidRecordError,
    errors.InvalidTimestampError,
    errors.InvalidTopicError,
    errors.UnsupportedForMessageFormatError,
)
#: Another credential is needed, or more rights for this one.
_UNAUTHORIZED: Final = (
    errors.SaslAuthenticationFailedError,
    errors.UnsupportedSaslMechanismError,
    errors.IllegalSaslStateError,
    errors.AuthorizationError,
)
#: What the library says of a connection that cannot be made: the system's number and name of why.
_ERRNO: Final = re.compile(r"([0-9]+) E[A-Z]+\Z")


class KafkaConnectionRefused(errors.KafkaError):
    """A connection that may not be made. outcome: what that comes to."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.message)
        self.outcome = outcome


def error_outcome(error: Exception, *secrets: str) -> Outcome:
    """What an attempt has come to that ended with an error. secrets: are blotted out of what is said."""
    found = _network_outcome(error)
    if found is not None:
        return found
    result = DeliveryResult.RETRY
    if isinstance(error, _REJECTED):
        result = DeliveryResult.REJECTED
    elif isinstance(error, _UNAUTHORIZED):
        result = DeliveryResult.UNAUTHORIZED
    return Outcome(result, _code(error), _message(error, secrets))


def is_final(error: Exception) -> bool:
    """Whether connecting again at once would only meet the same error."""
    return isinstance(error, (KafkaConnectionRefused, *_UNAUTHORIZED)) or isinstance(
        error.__context__, ssl.SSLCertVerificationError
    )


def _network_outcome(error: Exception) -> Outcome | None:
    """The outcome of what goes wrong below Kafka, as all protocols have it."""
    match error:
        case KafkaConnectionRefused(outcome=outcome):
            return outcome
        case errors.KafkaConnectionError(__context__=ssl.SSLError() as cause):
            return failure_outcome(cause)
        case errors.KafkaConnectionError(args=[str(told)]) if found := _ERRNO.match(told):
            return failure_outcome(OSError(int(found[1]), ""))
        case OSError() | ForbiddenAddress():
            return failure_outcome(error)
    return None


def _code(error: Exception) -> str:
    match error:
        case errors.KafkaTimeoutError():
            return "timeout"
        case errors.KafkaConnectionError():
            return "connection"
        case errors.BrokerResponseError() if type(error).message:
            return "kafka:" + str(type(error).message).lower().replace("_", "-")
    return "kafka"


def _message(error: Exception, secrets: tuple[str, ...]) -> str:
    told = " ".join(str(each) for each in error.args if each) or getattr(type(error), "description", "")
    for secret in filter(None, secrets):
        told = told.replace(secret, "…")
    return str(told).encode(errors="replace")[:MAX_MESSAGE_BYTES].decode(errors="ignore")
