"""Options of endpoints that all protocols have rules for: ranges, tokens, and the roles that they are for.

Spec: endpoint 1.0-rc4, "Protocol Options". Rules EP-20, EP-21, EP-34, EP-36, EP-37.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from domain.findings import names
from domain.findings.endpoints import CONSUMER, PRODUCER, SUBSCRIBER
from domain.findings.finding import Finding, Subject
from domain.findings.placeholders import blanked
from domain.findings.values import is_token, number, options, sequence, text, texts

_LARGEST: Final = 2**32 - 1
_SERIALIZER: Final = "org.apache.kafka.common.serialization.StringSerializer"


class _Range(NamedTuple):
    """What an option may be beyond its type. has: whether a value is inside."""

    says: str
    has: Callable[[Any], bool]


def _between(low: int, high: int) -> Callable[[Any], bool]:
    return lambda value: number(value) is None or low <= value <= high


def _among(*values: str) -> Callable[[Any], bool]:
    return lambda value: not isinstance(value, str) or value in values


_RANGES: Final[dict[str, dict[str, _Range]]] = {
    names.KAFKA: {"acks": _Range("it is not -1, 0 or 1", _between(-1, 1))},
    names.MQTT5: {"sessionexpiryinterval": _Range(f"it is larger than {_LARGEST}", _between(0, _LARGEST))},
    names.HTTP: {
        "apikeyin": _Range("it is not header or query", _among("header", "query")),
        "plainscheme": _Range("it is not basic, form or query", _among("basic", "form", "query")),
    },
}


class _For(NamedTuple):
    """The roles that an option is for. default: the value that the model fills in, which says nothing (EP-22)."""

    roles: tuple[str, ...]
    default: Any = None


_SENDS: Final = _For((PRODUCER,))
_SUBSCRIBES: Final = _For((SUBSCRIBER,))
_RECEIVES: Final = _For((CONSUMER, SUBSCRIBER))
_MQTT: Final = {"topic": _SENDS, "topicfilter": _SUBSCRIBES, "retain": _For((PRODUCER,), False)}
#: Options that are not for every role, but for those that have rules of their own.
_ROLES: Final[dict[str, dict[str, _For]]] = {
    names.AMQP: {
        "durable": _For((PRODUCER,), False),
        "distribution-mode": _For((CONSUMER, SUBSCRIBER), "move"),
        "source-filters": _RECEIVES,
    },
    names.MQTT3: _MQTT,
    names.MQTT5: {
        **_MQTT,
        **dict.fromkeys(("sharedsubscriptiongroup", "nolocal", "retainaspublished", "retainhandling"), _SUBSCRIBES),
    },
    names.KAFKA: {
        "acks": _For((PRODUCER,), 1),
        "key": _SENDS,
        "partition": _For((PRODUCER, CONSUMER)),
        "consumergroup": _RECEIVES,
        "headers": _SENDS,
        "keyserializer": _For((PRODUCER,), _SERIALIZER),
        "valueserializer": _For((PRODUCER,), _SERIALIZER),
    },
    names.NATS: {"subject": _SENDS, "subjectfilter": _SUBSCRIBES, "queuegroup": _SUBSCRIBES},
}
#: How AMQP options were called before: they are kept, and mean nothing.
_FORMER: Final = {
    name.replace("-", ""): name for name in ("link-properties", "connection-properties", "distribution-mode")
}


def options_are_in_range(subject: Subject) -> Iterator[Finding]:
    """EP-21: ranges and choices that the model does not have."""
    given = options(subject.attributes)
    for name, range in _RANGES.get(_protocol(subject) or "", {}).items():
        if name in given and not range.has(given[name]):
            yield subject.must("EP-21", range.says, "protocoloptions", name)


def http_options_are_tokens(subject: Subject) -> Iterator[Finding]:
    """EP-34: methods and names of headers are tokens."""
    if _protocol(subject) != names.HTTP:
        return
    given = options(subject.attributes)
    method = text(given.get("method"))
    if method is not None and not is_token(blanked(method)):
        yield subject.must("EP-34", "it is no HTTP method", "protocoloptions", "method")
    for index, row in enumerate(sequence(given.get("headers"))):
        name = text(row.get("name")) if isinstance(row, dict) else None
        if name is not None and not is_token(blanked(name)):
            yield subject.must("EP-34", "it is no name of a header", "protocoloptions", "headers", index, "name")


def options_are_for_the_role(subject: Subject) -> Iterator[Finding]:
    """EP-20, EP-37: options that clients in this role do not use, or that are called otherwise now."""
    given, known = options(subject.attributes), _protocol(subject) or ""
    roles = texts(subject.attributes.get("usage"))
    for name, meant in _ROLES.get(known, {}).items():
        if roles and name in given and not set(roles) & set(meant.roles) and not _same(given[name], meant.default):
            says = f"it is for the role {' or '.join(meant.roles)}"
            yield subject.should("EP-37", says, "protocoloptions", name)
    for former, name in _FORMER.items() if known == names.AMQP else ():
        if former in given:
            yield subject.should("EP-20", f'the option is called "{name}"', "protocoloptions", former)


def _protocol(subject: Subject) -> str | None:
    return names.protocol(text(subject.attributes.get("protocol")))


def _same(value: Any, default: Any) -> bool:
    return type(value) is type(default) and bool(value == default)
