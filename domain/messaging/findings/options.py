"""Options of endpoints, for all protocols: ranges, tokens, and the roles that may have them.

Spec: endpoint 1.0-rc4, "Protocol Options". Rules EP-20, EP-21, EP-34, EP-36, EP-37.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from annals.domain.messaging.findings import names
from annals.domain.messaging.findings.endpoints import CONSUMER, PRODUCER, SUBSCRIBER
from annals.domain.messaging.findings.finding import Finding, ValidatedEntity
from annals.domain.messaging.findings.placeholders import blank_placeholders
from annals.domain.messaging.findings.unchecked_values import (
    as_integer,
    as_mapping,
    as_sequence,
    as_text,
    as_texts,
    is_token,
)
from annals.domain.values import xid as xids

_MAX_UINT32: Final = 2**32 - 1
_SERIALIZER: Final = "org.apache.kafka.common.serialization.StringSerializer"


class _OptionRange(NamedTuple):
    """The values of an option beyond its type. is_allowed: whether a value is allowed."""

    requirement: str
    is_allowed: Callable[[Any], bool]


def _is_between(minimum: int, maximum: int) -> Callable[[Any], bool]:
    return lambda value: as_integer(value) is None or minimum <= value <= maximum


def _is_among(*values: str) -> Callable[[Any], bool]:
    return lambda value: not isinstance(value, str) or value in values


_RANGES: Final[dict[str, dict[str, _OptionRange]]] = {
    names.KAFKA: {"acks": _OptionRange("it is not -1, 0 or 1", _is_between(-1, 1))},
    names.MQTT5: {
        "sessionexpiryinterval": _OptionRange(f"it is larger than {_MAX_UINT32}", _is_between(0, _MAX_UINT32))
    },
    names.HTTP: {
        "apikeyin": _OptionRange("it is not header or query", _is_among("header", "query")),
        "plainscheme": _OptionRange("it is not basic, form or query", _is_among("basic", "form", "query")),
    },
}


class _OptionRoles(NamedTuple):
    """The roles that use an option. default: the value that the model fills in, which is not a statement (EP-22)."""

    roles: tuple[str, ...]
    default: Any = None


_FOR_PRODUCERS: Final = _OptionRoles((PRODUCER,))
_FOR_SUBSCRIBERS: Final = _OptionRoles((SUBSCRIBER,))
_FOR_RECEIVERS: Final = _OptionRoles((CONSUMER, SUBSCRIBER))
_MQTT: Final = {"topic": _FOR_PRODUCERS, "topicfilter": _FOR_SUBSCRIBERS, "retain": _OptionRoles((PRODUCER,), False)}
#: Options that only some roles use, without those that have rules of their own.
_ROLES: Final[dict[str, dict[str, _OptionRoles]]] = {
    names.AMQP: {
        "durable": _OptionRoles((PRODUCER,), False),
        "distribution-mode": _OptionRoles((CONSUMER, SUBSCRIBER), "move"),
        "source-filters": _FOR_RECEIVERS,
    },
    names.MQTT3: _MQTT,
    names.MQTT5: {
        **_MQTT,
        **dict.fromkeys(
            ("sharedsubscriptiongroup", "nolocal", "retainaspublished", "retainhandling"), _FOR_SUBSCRIBERS
        ),
    },
    names.KAFKA: {
        "acks": _OptionRoles((PRODUCER,), 1),
        "key": _FOR_PRODUCERS,
        "partition": _OptionRoles((PRODUCER, CONSUMER)),
        "consumergroup": _FOR_RECEIVERS,
        "headers": _FOR_PRODUCERS,
        "keyserializer": _OptionRoles((PRODUCER,), _SERIALIZER),
        "valueserializer": _OptionRoles((PRODUCER,), _SERIALIZER),
    },
    names.NATS: {"subject": _FOR_PRODUCERS, "subjectfilter": _FOR_SUBSCRIBERS, "queuegroup": _FOR_SUBSCRIBERS},
}
#: Former names of AMQP options: they are stored, but have no effect.
_FORMER_NAMES: Final = {
    name.replace("-", ""): name for name in ("link-properties", "connection-properties", "distribution-mode")
}


def options_are_in_range(subject: ValidatedEntity) -> Iterator[Finding]:
    """EP-21: ranges and choices that the model does not have."""
    options = subject.options
    for name, value_range in _RANGES.get(subject.protocol or "", {}).items():
        if name in options and not value_range.is_allowed(options[name]):
            yield subject.must("EP-21", value_range.requirement, "protocoloptions", name)


def http_options_are_tokens(subject: ValidatedEntity) -> Iterator[Finding]:
    """EP-34, MS-43: methods and names of headers are tokens; a header may appear several times."""
    if subject.protocol != names.HTTP:
        return
    options, rule = subject.options, "EP-34" if xids.type_of(subject.xid) == "endpoints" else "MS-43"
    method = as_text(options.get("method"))
    if method is not None and not is_token(blank_placeholders(method)):
        yield subject.must(rule, "it is not an HTTP method", "protocoloptions", "method")
    for index, row in enumerate(as_sequence(options.get("headers"))):
        name = as_text(as_mapping(row).get("name"))
        if name is not None and not is_token(blank_placeholders(name)):
            yield subject.must(rule, "it is not the name of a header", "protocoloptions", "headers", index, "name")


def options_fit_the_role(subject: ValidatedEntity) -> Iterator[Finding]:
    """EP-20, EP-37: options that clients in this role do not use, or that have a new name."""
    options, protocol = subject.options, subject.protocol or ""
    roles = as_texts(subject.attributes.get("usage"))
    for name, role_option in _ROLES.get(protocol, {}).items():
        if (
            roles
            and name in options
            and not set(roles) & set(role_option.roles)
            and not _is_same(options[name], role_option.default)
        ):
            text = f"it is for the role {' or '.join(role_option.roles)}"
            yield subject.should("EP-37", text, "protocoloptions", name)
    for old_name, name in _FORMER_NAMES.items() if protocol == names.AMQP else ():
        if old_name in options:
            yield subject.should("EP-20", f'use the name "{name}" for this option', "protocoloptions", old_name)


def _is_same(value: Any, default: Any) -> bool:
    return type(value) is type(default) and bool(value == default)
