"""Envelopes: their names, the metadata of CloudEvents, and other members that describe the same data.

Spec: message 1.0-rc4, "Metadata Envelopes"; endpoint 1.0-rc4, "envelopeoptions". Rules EP-15, MS-04, MS-05, MS-08,
EP-44, MS-32, MS-34, MS-36, MS-38.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from annals.domain.messaging.findings import names
from annals.domain.messaging.findings.finding import Finding, ValidatedEntity
from annals.domain.messaging.findings.kafka import is_base64
from annals.domain.messaging.findings.unchecked_values import as_mapping, as_text, parse_media_type
from annals.domain.model.validation import rfc3339, uris
from annals.domain.values import xid as xids

_ATTRIBUTE: Final = re.compile(r"[a-z0-9]+\Z")
_SYMBOL: Final = re.compile(r"[A-Za-z0-9_]+\Z")
_DURATION: Final = re.compile(
    r"-?P(?=[0-9T])(?:[0-9]+W|(?:[0-9]+Y)?(?:[0-9]+M)?(?:[0-9]+D)?(?:T(?=[0-9])(?:[0-9]+H)?(?:[0-9]+M)?(?:[0-9]+(?:\.[0-9]+)?S)?)?)\Z"
)
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?\Z")
_UUID: Final = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\Z")
#: Represents the time at which a message is sent.
_ANY_TIME: Final = "0000-01-01T00:00:00Z"
#: The sections of an AMQP message whose members declare properties.
_AMQP_SECTIONS: Final = (
    *("properties", "application-properties", "message-annotations", "delivery-annotations", "footer"),
)


def options_fit_the_mode(subject: ValidatedEntity) -> Iterator[Finding]:
    """EP-15, MS-38: only structured mode has a format, and the format is a media type."""
    if not names.is_cloudevents(subject.text("envelope")):
        return
    options = as_mapping(subject.attributes.get("envelopeoptions"))
    rule = "EP-15" if xids.type_of(subject.xid) == "endpoints" else "MS-38"
    format = as_text(options.get("format"))
    if "format" in options and options.get("mode") == "binary":
        yield subject.must(rule, "a format is not allowed in binary mode", "envelopeoptions", "format")
    elif format is not None and parse_media_type(format) is None:
        yield subject.should(rule, "it is not a media type", "envelopeoptions", "format")


def envelope_and_protocol_names_are_well_formed(subject: ValidatedEntity) -> Iterator[Finding]:
    """MS-04: <NAME>/<VERSION> and <NAME>[/<VERSION>]. A message in an endpoint may omit the version (EP-13)."""
    envelope, protocol = subject.text("envelope"), subject.text("protocol")
    is_well_formed = names.is_name if xids.segments(subject.xid)[0] == "endpoints" else names.is_versioned
    if envelope is not None and not is_well_formed(envelope):
        yield subject.must("MS-04", "it is not <NAME>/<VERSION>", "envelope")
    if protocol is not None and not names.is_name(protocol):
        yield subject.must("MS-04", "it is not <NAME> or <NAME>/<VERSION>", "protocol")


def metadata_and_options_are_present(subject: ValidatedEntity) -> Iterator[Finding]:
    """MS-05, for names that the model knows: for others it has no such attribute. A base message may have it."""
    attributes = subject.attributes
    if "basemessageuri" in attributes:
        return
    if names.is_cloudevents(as_text(attributes.get("envelope"))) and "envelopemetadata" not in attributes:
        yield subject.must("MS-05", "it is missing: the message has an envelope", "envelopemetadata")
    if names.selects_options(as_text(attributes.get("protocol")) or "") and "protocoloptions" not in attributes:
        yield subject.must("MS-05", "it is missing: the message has a protocol", "protocoloptions")


def messageid_is_the_type(subject: ValidatedEntity) -> Iterator[Finding]:
    """MS-08, EP-44: events are found by their type."""
    type = as_text(as_mapping(_cloudevent_metadata(subject).get("type")).get("value"))
    if type is not None and type != xids.segments(subject.xid)[3]:
        rule = "EP-44" if xids.segments(subject.xid)[0] == "endpoints" else "MS-08"
        yield subject.should(rule, "it differs from the messageid", "envelopemetadata", "type", "value")


def metadata_is_cloudevents(subject: ValidatedEntity) -> Iterator[Finding]:
    """MS-32, MS-34: names are valid in CloudEvents, values parse as their types."""
    for name, declared in _cloudevent_metadata(subject).items():
        if not _ATTRIBUTE.match(name):
            text = "names of CloudEvents attributes have lower-case letters and digits only"
            yield subject.must("MS-32", text, "envelopemetadata", name)
        if isinstance(declared, dict):
            yield from _check_declared(subject, declared, "envelopemetadata", name)


def properties_parse(subject: ValidatedEntity) -> Iterator[Finding]:
    """MS-34 for the properties of AMQP messages."""
    if subject.protocol != names.AMQP:
        return
    options = subject.options
    for section in _AMQP_SECTIONS:
        for name, declared in as_mapping(options.get(section)).items():
            if isinstance(declared, dict):
                yield from _check_declared(subject, declared, "protocoloptions", section, name)


def data_descriptions_agree(subject: ValidatedEntity) -> Iterator[Finding]:
    """MS-36, MS-38: two descriptions of the data agree."""
    attributes, metadata = subject.attributes, _cloudevent_metadata(subject)
    schema, uri = as_mapping(metadata.get("dataschema")).get("value"), attributes.get("dataschemauri")
    if schema is not None and uri is not None and schema != uri:
        yield subject.must("MS-36", "it differs from dataschemauri", "envelopemetadata", "dataschema", "value")
    message_type = as_text(attributes.get("datacontenttype"))
    metadata_type = as_text(as_mapping(metadata.get("datacontenttype")).get("value"))
    is_structured = as_mapping(attributes.get("envelopeoptions")).get("mode") == "structured"
    if (
        is_structured
        and metadata is not None
        and message_type is not None
        and not message_type.lower().startswith("application/cloudevents")
    ):
        yield subject.must("MS-38", "in structured mode it has to be the type of the envelope", "datacontenttype")
    if (
        not is_structured
        and message_type is not None
        and metadata_type is not None
        and not _is_same_media_type(message_type, metadata_type)
    ):
        yield subject.must("MS-36", "it differs from datacontenttype", "envelopemetadata", "datacontenttype", "value")


def _cloudevent_metadata(subject: ValidatedEntity) -> Mapping[str, Any]:
    """The metadata of a CloudEvent; empty for any other envelope."""
    is_cloudevent = names.is_cloudevents(subject.text("envelope"))
    return as_mapping(subject.attributes.get("envelopemetadata")) if is_cloudevent else {}


def _is_same_media_type(first: str, other: str) -> bool:
    return first == other or (parse_media_type(first) or first) == (parse_media_type(other) or other)


def _check_declared(subject: ValidatedEntity, declared: Mapping[str, Any], *path: str) -> Iterator[Finding]:
    type, value = as_text(declared.get("type")), as_text(declared.get("value"))
    if type is not None and type not in _TYPE_TESTS and not (type in _ID_TYPE_TESTS and path[-1] == "message-id"):
        yield subject.must("MS-34", "this type of property does not exist", *path, "type")
    elif type is not None and value is not None and not (_TYPE_TESTS | _ID_TYPE_TESTS)[type](value):
        yield subject.must("MS-34", "it is not a value of its type", *path, "value")


def _parse_test(parse: Callable[[str], Any]) -> Callable[[str], bool]:
    def parses(value: str) -> bool:
        try:
            parse(value)
        except (ValueError, OverflowError):
            return False
        return value != ""

    return parses


def _is_any(value: str) -> bool:
    return True


def _is_timestamp(value: str) -> bool:
    return value == _ANY_TIME or _parse_test(rfc3339.to_utc)(value)


def _is_ulong(value: str) -> bool:
    return value.isascii() and value.isdecimal() and len(value) <= 20 and int(value) < 2**64


def _is_integer(value: str) -> bool:
    digits = value.removeprefix("-")
    return digits.isascii() and digits.isdecimal()


#: The types of properties: whether a text is a value of each type.
_TYPE_TESTS: Final[dict[str, Callable[[str], bool]]] = {
    "any": _is_any,
    "string": _is_any,
    "binary": is_base64,
    "boolean": lambda value: value in ("true", "false"),
    "duration": lambda value: bool(_DURATION.match(value)),
    "integer": _is_integer,
    "number": lambda value: bool(_NUMBER.match(value)),
    "symbol": lambda value: bool(_SYMBOL.match(value)),
    "timestamp": _is_timestamp,
    "uri": _parse_test(uris.reference),
    "uritemplate": _parse_test(uris.template),
}
#: Additional types of the message-id of AMQP.
_ID_TYPE_TESTS: Final[dict[str, Callable[[str], bool]]] = {
    "ulong": _is_ulong,
    "uuid": lambda value: bool(_UUID.match(value)),
}
