"""The outcomes of MQTT reason codes (SUB-821; the table of outcomes there).

Spec: MQTT 5.0, section 2.4; MQTT 3.1.1, table 3.1.
"""

from __future__ import annotations

from typing import Final

from annals.projections.subscriptions.contract import DELIVERED, DeliveryResult, Outcome

#: Reason codes from here on are errors.
FIRST_ERROR_CODE: Final = 0x80
PACKET_TOO_LARGE: Final = 0x95
RETAIN_NOT_SUPPORTED: Final = 0x9A
QOS_NOT_SUPPORTED: Final = 0x9B

#: Codes that refuse the client and codes that refuse the message. Every other error is retried.
_OUTCOMES: Final = {
    0x86: (DeliveryResult.UNAUTHORIZED, "bad user name or password"),
    0x87: (DeliveryResult.UNAUTHORIZED, "not authorized"),
    0x8A: (DeliveryResult.UNAUTHORIZED, "banned"),
    0x8C: (DeliveryResult.UNAUTHORIZED, "bad authentication method"),
    0x90: (DeliveryResult.REJECTED, "topic name invalid"),
    PACKET_TOO_LARGE: (DeliveryResult.REJECTED, "packet too large"),
    0x99: (DeliveryResult.REJECTED, "payload format invalid"),
    RETAIN_NOT_SUPPORTED: (DeliveryResult.REJECTED, "retain not supported"),
    QOS_NOT_SUPPORTED: (DeliveryResult.REJECTED, "QoS not supported"),
}
_REASON_NAMES: Final = {
    0x80: "unspecified error",
    0x81: "malformed packet",
    0x82: "protocol error",
    0x83: "implementation specific error",
    0x84: "unsupported protocol version",
    0x85: "client identifier not valid",
    0x88: "server unavailable",
    0x89: "server busy",
    0x8B: "server shutting down",
    0x8D: "keep alive timeout",
    0x8E: "session taken over",
    0x91: "packet identifier in use",
    0x93: "receive maximum exceeded",
    0x96: "message rate too high",
    0x97: "quota exceeded",
    0x98: "administrative action",
    0x9C: "use another server",
    0x9D: "server moved",
    0x9F: "connection rate exceeded",
    0xA0: "maximum connect time",
}


def reason_outcome(code: int) -> Outcome:
    """The outcome of a reason code."""
    if code < FIRST_ERROR_CODE:
        return DELIVERED
    result, name = _OUTCOMES.get(code, (DeliveryResult.RETRY, _REASON_NAMES.get(code, "unknown reason")))
    return Outcome(result, f"mqtt:0x{code:02x}", name)


def disconnected_outcome(code: str) -> Outcome:
    """The outcome of messages in flight when the connection ended."""
    return Outcome(DeliveryResult.RETRY, code, "the connection was closed")
