"""What the errors of Kafka and of its client library come to for a delivery (subscriptions 8.3)."""

from __future__ import annotations

import ssl
from typing import Final

from kafka import errors  # type: ignore[import-untyped]

from projections.subscriptions.contract import Outcome, Result

#: How much is kept of what is said, in bytes (SUB-823).
LONGEST: Final = 1024

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
#: Errors of the client itself, by the code that stands for them.
_CODES: Final = ((errors.KafkaTimeoutError, "timeout"), (errors.KafkaConnectionError, "connection"))


class Refused(errors.KafkaError):  # type: ignore[misc]
    """A broker's address is none that may be connected to."""


def outcome(error: BaseException, *secrets: str) -> Outcome:
    """What an attempt has come to that ended with an error. secrets: are blotted out of what is said."""
    result = Result.RETRY
    if isinstance(error, _REJECTED):
        result = Result.REJECTED
    elif isinstance(error, _UNAUTHORIZED):
        result = Result.UNAUTHORIZED
    return Outcome(result, _code(error), _message(error, secrets))


def is_final(error: BaseException) -> bool:
    """Whether connecting again would only meet the same error."""
    return isinstance(error, (Refused, *_UNAUTHORIZED))


def _code(error: BaseException) -> str:
    if isinstance(error, Refused):
        return "address"
    if isinstance(error.__context__, ssl.SSLError):
        return "tls"
    if isinstance(error, errors.BrokerResponseError) and type(error).message:
        return "kafka:" + str(type(error).message).lower().replace("_", "-")
    return next((code for kind, code in _CODES if isinstance(error, kind)), "kafka")


def _message(error: BaseException, secrets: tuple[str, ...]) -> str:
    told = " ".join(str(each) for each in error.args if each) or getattr(type(error), "description", "")
    for secret in filter(None, secrets):
        told = told.replace(secret, "…")
    return str(told).encode(errors="replace")[:LONGEST].decode(errors="ignore")
