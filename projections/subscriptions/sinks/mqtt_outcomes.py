"""What the reason codes of MQTT come to (SUB-821; the table of outcomes there).

Spec: MQTT 5.0, section 2.4; MQTT 3.1.1, table 3.1.
"""

from __future__ import annotations

from typing import Final

from projections.subscriptions.contract import DELIVERED, Outcome, Result

#: From here on, reason codes are errors.
ERRORS: Final = 0x80
PACKET_TOO_LARGE: Final = 0x95
RETAIN_NOT_SUPPORTED: Final = 0x9A
QOS_NOT_SUPPORTED: Final = 0x9B

#: Codes that say who is refused, and codes that say what is. Whatever else goes wrong may go well another time.
_OUTCOMES: Final = {
    0x86: (Result.UNAUTHORIZED, "bad user name or password"),
    0x87: (Result.UNAUTHORIZED, "not authorized"),
    0x8A: (Result.UNAUTHORIZED, "banned"),
    0x8C: (Result.UNAUTHORIZED, "bad authentication method"),
    0x90: (Result.REJECTED, "topic name invalid"),
    PACKET_TOO_LARGE: (Result.REJECTED, "packet too large"),
    0x99: (Result.REJECTED, "payload format invalid"),
    RETAIN_NOT_SUPPORTED: (Result.REJECTED, "retain not supported"),
    QOS_NOT_SUPPORTED: (Result.REJECTED, "QoS not supported"),
}
_NAMES: Final = {
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


def answered(code: int) -> Outcome:
    """The outcome of a reason code."""
    if code < ERRORS:
        return DELIVERED
    result, name = _OUTCOMES.get(code, (Result.RETRY, _NAMES.get(code, "unknown reason")))
    return Outcome(result, f"mqtt:0x{code:02x}", name)


def disconnected(code: str, message: str = "the connection was closed") -> Outcome:
    """The outcome of what was on its way when the connection ended."""
    return Outcome(Result.RETRY, code, message)
