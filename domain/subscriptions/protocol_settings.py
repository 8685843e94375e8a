"""`protocolsettings`: the settings of each protocol, as tables (subscriptions 2.1 to 2.6)."""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import unquote

from annals.domain.subscriptions import sink_uris
from annals.domain.subscriptions.error_places import ErrorPlace
from annals.domain.subscriptions.member_types import (
    BOOLEAN,
    TEXT,
    Member,
    MemberTable,
    MemberType,
    choice_type,
    integer_type,
    map_type,
    number_type,
    object_type,
    parse_line,
    parse_members,
    parse_object,
    pattern_type,
)
from annals.domain.subscriptions.sink_uris import AMQP, HTTP, KAFKA, MQTT3, MQTT5, NATS, SinkAddress
from annals.domain.values.json_text import Json

#: The prefix of the names of secret headers, and the name of the signing key.
HEADERS_PREFIX: Final = "protocolsettings.headers."
SIGNINGKEY: Final = "protocolsettings.signingkey"
#: Alternative spellings that are accepted (SUB-106).
ALIASES: Final = {"linkName": "linkname", "linkProperties": "linkproperties", "ackmode": "acks"}

_TOKEN: Final = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_REFUSED_HEADERS: Final = re.compile(
    r"(?:host|content-length|content-type|transfer-encoding|connection|upgrade|te|trailer|ce-.*|webhook-.*)\Z"
)
_SECRET_HEADER: Final = re.compile(r"auth|cookie|token|key|secret")
_MAX_SECONDS: Final = 10**9
_STRUCTURED: Final = "structured"


def _check_retry(settings: dict[str, Json], place: ErrorPlace) -> None:
    if settings["maxdelay"] < settings["initialdelay"]:
        raise place.child("maxdelay").error("value", "it is less than initialdelay")


_RETRY_MEMBERS: Final[MemberTable] = {
    "maxattempts": Member(integer_type(1, 1000), 20),
    "maxage": Member(integer_type(1, _MAX_SECONDS), 86400),
    "initialdelay": Member(number_type(0.001, _MAX_SECONDS), 1),
    "maxdelay": Member(number_type(0.001, _MAX_SECONDS), 300),
    "multiplier": Member(number_type(1, 1000), 2),
}
_DEADLETTER_MEMBERS: Final[MemberTable] = {
    "mode": Member(choice_type("store", "drop", "sink"), "store"),
    "uri": Member(TEXT),
}
_COMMON_MEMBERS: Final[MemberTable] = {
    "retry": Member(
        object_type(_RETRY_MEMBERS, _check_retry), {name: member.default for name, member in _RETRY_MEMBERS.items()}
    ),
    "deadletter": Member(object_type(_DEADLETTER_MEMBERS), {"mode": "store"}),
    "timeout": Member(integer_type(1, 120), 30),
    "ordering": Member(choice_type("subject", "source", "none"), "subject"),
}
_MODES: Final = {
    HTTP: (_STRUCTURED, "binary", "batched"),
    MQTT3: (_STRUCTURED,),
    **dict.fromkeys((MQTT5, AMQP, KAFKA, NATS), (_STRUCTURED, "binary")),
}


def _parse_header(value: Any, place: ErrorPlace) -> str:
    """The value of a header: printable ASCII, and spaces in it. HTTP has no others."""
    if not isinstance(value, str):
        raise place.error("type", "a string is needed")
    if not re.fullmatch(r"[\x20-\x7e]*", value):
        raise place.error("value", "a header can have printable ASCII only")
    if value != value.strip():
        raise place.error("value", "a header cannot begin or end with a blank")
    return value


def _parse_header_name(value: Any, place: ErrorPlace) -> str:
    name: Json = pattern_type(_TOKEN, "it is not the name of a header").parse(value, place)
    if _REFUSED_HEADERS.match(name.lower()):
        raise place.error("value", "a subscription cannot set this header")
    return str(name)


def _parse_property_name(value: Any, place: ErrorPlace) -> str:
    name = parse_line(value, place)
    if name in _CLOUDEVENTS_ATTRIBUTES:
        raise place.error("value", "it is the name of a CloudEvents attribute")
    return name


def _parse_text(value: Any, place: ErrorPlace) -> str:
    """A string that may be empty, without control characters (SUB-907)."""
    return "" if value == "" else parse_line(value, place)


def _parse_acks(value: Any, place: ErrorPlace) -> str:
    """Integers are accepted, because an older description of the API has them."""
    text = str(value) if type(value) is int else value
    return str(choice_type("0", "1", "all", "-1").parse(text, place))


def _parse_signing_key(value: Any, place: ErrorPlace) -> str:
    """A key of Standard Webhooks: `whsec_` and base64 of 24 to 64 bytes."""
    text = parse_line(value, place)
    try:
        length = len(b64decode(text.removeprefix("whsec_"), validate=True)) if text.startswith("whsec_") else 0
    except Error:
        length = 0
    if not 24 <= length <= 64:
        raise place.error("value", "a signing key has to be whsec_ followed by base64 of 24 to 64 bytes")
    return text


_CLOUDEVENTS_ATTRIBUTES: Final = frozenset(
    (
        *("specversion", "id", "source", "type", "subject", "time", "datacontenttype", "dataschema", "data"),
        *("xregcorrelationid", "sequence"),
    )
)
_HEADERS_TYPE: Final = map_type(MemberType("string", _parse_header_name), MemberType("string", _parse_header))
_TEXT_TYPE: Final = MemberType("string", _parse_text)
_SYMBOL_TYPE: Final = pattern_type(r"[\x20-\x7e]+", "a name of AMQP can have printable ASCII only")
#: Bytes of a client id, whose length Kafka writes as a signed number of 16 bits.
_MAX_CLIENT_ID: Final = (1 << 15) - 1
_TOPIC_TYPE: Final = pattern_type(r"[^+#\x00]+", "a topic to send to cannot have wildcards", 65535)
_MQTT_MEMBERS: Final[MemberTable] = {
    "topicname": Member(_TOPIC_TYPE, required=True),
    "qos": Member(integer_type(0, 2), 1),
    "retain": Member(BOOLEAN, False),
}
_PROTOCOL_MEMBERS: Final[Mapping[str, MemberTable]] = {
    HTTP: {
        "headers": Member(_HEADERS_TYPE),
        "method": Member(choice_type("POST", "PUT", "PATCH"), "POST"),
        "maxbatchsize": Member(integer_type(1, 1000)),
        "maxbatchwait": Member(integer_type(0, 10000)),
        "requestrate": Member(integer_type(1, _MAX_SECONDS)),
        "signingkey": Member(MemberType("string", _parse_signing_key, {"secret": True})),
    },
    MQTT3: _MQTT_MEMBERS,
    MQTT5: {
        **_MQTT_MEMBERS,
        "expiry": Member(integer_type(1, (1 << 32) - 1)),
        "userproperties": Member(map_type(MemberType("string", _parse_property_name), _TEXT_TYPE)),
    },
    AMQP: {
        "address": Member(TEXT),
        "linkname": Member(TEXT),
        "sendersettlementmode": Member(choice_type("settled", "unsettled"), "unsettled"),
        "linkproperties": Member(map_type(_SYMBOL_TYPE, _TEXT_TYPE)),
    },
    KAFKA: {
        "topicname": Member(
            pattern_type(r"(?!\.{1,2}\Z)[A-Za-z0-9._\-]{1,249}", "it is not a legal name of a Kafka topic")
        ),
        "partitionkeyextractor": Member(
            pattern_type(r"[a-z0-9]+", "it is not the name of a context attribute"), "subject"
        ),
        "clientid": Member(pattern_type(r".+", "it is empty", _MAX_CLIENT_ID)),
        "acks": Member(MemberType("string", _parse_acks, {"values": ["0", "1", "all", "-1"]}), "all"),
    },
    NATS: {
        "subject": Member(
            pattern_type(
                r"[^\s.*>]+(?:\.[^\s.*>]+)*", "a subject to send to cannot have blanks, wildcards or empty tokens"
            ),
            required=True,
        ),
    },
}
#: All settings of each protocol.
SETTINGS_BY_PROTOCOL: Final[Mapping[str, MemberTable]] = {
    protocol: {**own, "contentmode": Member(choice_type(*_MODES[protocol]), _STRUCTURED), **_COMMON_MEMBERS}
    for protocol, own in _PROTOCOL_MEMBERS.items()
}
#: Defaults for batches.
_BATCH_DEFAULTS: Final = {"maxbatchsize": 100, "maxbatchwait": 200}


def parse_settings(
    value: Any, protocol: str, sink: SinkAddress, has_credential: bool, place: ErrorPlace
) -> dict[str, Json]:
    """`protocolsettings` with all defaults, including secret values. Raises: InvalidSubscription."""
    members = rename_aliases(parse_object({} if value is None else value, place), ALIASES, place)
    settings = parse_members(members, SETTINGS_BY_PROTOCOL[protocol], place)
    _check_deadletter(settings["deadletter"], place.child("deadletter"))
    if check := _COMPLETIONS.get(protocol):
        check(settings, sink, place)
    if has_credential and any(name.lower() == "authorization" for name in settings.get("headers", {})):
        raise place.child("headers", "authorization").error("value", "use sinkcredential for this header")
    return {name: settings[name] for name in SETTINGS_BY_PROTOCOL[protocol] if name in settings}


def is_secret_header(header: str) -> bool:
    """Whether the value of a header is stored as a secret (SUB-915)."""
    return _SECRET_HEADER.search(header.lower()) is not None


def rename_aliases(members: Mapping[str, Any], aliases: Mapping[str, str], place: ErrorPlace) -> dict[str, Any]:
    """The members under their proper names. Raises: InvalidSubscription if one is present under both names."""
    renamed: dict[str, Any] = {}
    for name, value in members.items():
        proper_name = aliases.get(name, name)
        if proper_name in renamed or (proper_name != name and proper_name in members):
            raise place.child(name).error(
                "alias", f"it is another name of {proper_name}, which is present too; remove one of them"
            )
        renamed[proper_name] = value
    return renamed


def _check_deadletter(settings: dict[str, Json], place: ErrorPlace) -> None:
    if "uri" not in settings and settings["mode"] == "sink":
        raise place.child("uri").error("required", 'it is needed with the mode "sink"')
    if "uri" in settings and settings["mode"] != "sink":
        raise place.child("uri").error("value", 'it is allowed with the mode "sink" only')
    if "uri" in settings:
        sink_uris.parse_sink(settings["uri"], HTTP, place.child("uri"))


def _complete_http(settings: dict[str, Json], sink: SinkAddress, place: ErrorPlace) -> None:
    names = [name.lower() for name in settings.get("headers", {})]
    if len(set(names)) != len(names):
        raise place.child("headers").error("value", "a header is present twice, in different letter case")
    if settings["contentmode"] == "batched":
        settings.update({name: settings.get(name, default) for name, default in _BATCH_DEFAULTS.items()})
        return
    for name in _BATCH_DEFAULTS:
        if name in settings:
            raise place.child(name).error("value", 'it is allowed with the contentmode "batched" only')


def _complete_amqp(settings: dict[str, Json], sink: SinkAddress, place: ErrorPlace) -> None:
    path = unquote(sink.path.removeprefix("/")) if sink.scheme.startswith("amqp") else ""
    address = settings.setdefault("address", path)
    if not address:
        raise place.child("address").error("required", "it is required if the sink has no path")
    if path and address != path:
        raise place.child("address").error("value", "it differs from the path of the sink")
    parse_line(address, place.child("address"))


def _complete_kafka(settings: dict[str, Json], sink: SinkAddress, place: ErrorPlace) -> None:
    if "topicname" not in settings:
        path = sink.path.strip("/")
        default_topic = path if path and "/" not in path else "cloudevents"
        settings["topicname"] = SETTINGS_BY_PROTOCOL[KAFKA]["topicname"].kind.parse(
            default_topic, place.child("topicname")
        )


#: Checks that depend on several members.
_COMPLETIONS: Final[Mapping[str, Callable[[dict[str, Json], SinkAddress, ErrorPlace], None]]] = {
    HTTP: _complete_http,
    AMQP: _complete_amqp,
    KAFKA: _complete_kafka,
}
