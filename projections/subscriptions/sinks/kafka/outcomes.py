"""The outcomes of errors of Kafka and its client library (subscriptions 8.3)."""

from __future__ import annotations

import re
import ssl
from typing import Final

from kafka import errors

from annals.projections.outgoing.resolver import ForbiddenAddress
from annals.projections.subscriptions.contract import DeliveryResult, Outcome
from annals.projections.subscriptions.transport.connect import failure_outcome
from annals.projections.subscriptions.transport.scrub import scrub_secrets

#: Errors for which retrying the record is useless.
_REJECTED_ERRORS: Final = (
    errors.MessageSizeTooLargeError,
    errors.RecordListTooLargeError,
    errors.InvalidRecordError,
    errors.InvalidTimestampError,
    errors.InvalidTopicError,
    errors.UnsupportedForMessageFormatError,
)
#: Errors that need another credential, or more rights for this one.
_UNAUTHORIZED_ERRORS: Final = (
    errors.SaslAuthenticationFailedError,
    errors.UnsupportedSaslMechanismError,
    errors.IllegalSaslStateError,
    errors.AuthorizationError,
)
#: The library's message for a failed connection: the system's errno and its name.
_ERRNO: Final = re.compile(r"([0-9]+) E[A-Z]+\Z")


class KafkaConnectionRefused(errors.KafkaError):
    """A connection that policy forbids. outcome: the outcome of the attempt."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.message)
        self.outcome = outcome


def error_outcome(error: Exception, *secrets: str) -> Outcome:
    """The outcome of an attempt that failed with an error. secrets: are removed from the message."""
    network_outcome = _network_outcome(error)
    if network_outcome is not None:
        return network_outcome
    result = DeliveryResult.RETRY
    if isinstance(error, _REJECTED_ERRORS):
        result = DeliveryResult.REJECTED
    elif isinstance(error, _UNAUTHORIZED_ERRORS):
        result = DeliveryResult.UNAUTHORIZED
    return Outcome(result, _error_code(error), _error_message(error, secrets))


def is_final(error: Exception) -> bool:
    """Whether an immediate reconnect would fail with the same error."""
    return isinstance(error, (KafkaConnectionRefused, *_UNAUTHORIZED_ERRORS)) or isinstance(
        error.__context__, ssl.SSLCertVerificationError
    )


def _network_outcome(error: Exception) -> Outcome | None:
    """The outcome of an error below Kafka, such as a network error; the same for all protocols.

    None for other errors.
    """
    match error:
        case KafkaConnectionRefused(outcome=outcome):
            return outcome
        case errors.KafkaConnectionError(__context__=ssl.SSLError() as cause):
            return failure_outcome(cause)
        case errors.KafkaConnectionError(args=[str(message)]) if match := _ERRNO.match(message):
            return failure_outcome(OSError(int(match[1]), ""))
        case OSError() | ForbiddenAddress():
            return failure_outcome(error)
    return None


def _error_code(error: Exception) -> str:
    match error:
        case errors.KafkaTimeoutError():
            return "timeout"
        case errors.KafkaConnectionError():
            return "connection"
        case errors.BrokerResponseError() if type(error).message:
            return "kafka:" + str(type(error).message).lower().replace("_", "-")
    return "kafka"


def _error_message(error: Exception, secrets: tuple[str, ...]) -> str:
    text = " ".join(str(argument) for argument in error.args if argument) or getattr(type(error), "description", "")
    text = text or f"no reason is known ({type(error).__name__})"
    return scrub_secrets(str(text).encode(errors="replace"), secrets)
