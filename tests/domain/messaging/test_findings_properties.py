"""The rules for findings never fail and never take long, whatever attributes an entity has."""

from __future__ import annotations

import re
import string
from collections.abc import Iterator
from time import process_time
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annals.domain.messaging.findings import (
    L2,
    L3,
    VALIDATORS,
    ValidatedEntity,
    change_findings,
    entity_findings,
    membership_findings,
)
from annals.domain.messaging.findings.names import DEFINED_PROTOCOLS

NAMES: Final = (
    *("usage", "channel", "envelope", "envelopeoptions", "envelopemetadata", "protocol", "protocoloptions"),
    *("messagegroups", "basemessageuri", "dataschema", "dataschemauri", "dataschemaxid", "dataschemaformat"),
    *("datacontenttype", "meta"),
)
INSIDE: Final = (
    *(
        "endpoints",
        "uri",
        "bootstrap.servers",
        "authorization",
        "type",
        "mechanism",
        "headers",
        "name",
        "value",
        "mode",
    ),
    *(
        "format",
        "topic",
        "topicfilter",
        "subject",
        "subjectfilter",
        "queuegroup",
        "willmessage",
        "qos",
        "acks",
        "method",
    ),
    *("properties", "footer", "message-id", "dataschema", "datacontenttype", "key_base64", "topic_name", "password"),
)
WORDS: Final = (
    *DEFINED_PROTOCOLS,
    *("MQTT", "CloudEvents/1.0", "producer", "consumer", "subscriber", "SASL", "binary", "structured", "integer"),
    *("timestamp", "uri", "duration", "uuid", "/messagegroups/g", "/messagegroups/g/messages/m", "#/a", "Protobuf/3"),
    *("/schemagroups/g/schemas/s:a", "mqtt://h/+", "https://u:p@h", "{+a}", "{a}", "a/b;c", "\0", "/", "//", ":"),
)
texts = st.sampled_from(WORDS) | st.text(max_size=12)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(INSIDE) | texts, inner, max_size=4),
    max_leaves=12,
)
entities = st.dictionaries(st.sampled_from(NAMES), values, max_size=8)


class Everything:
    """Lookups that find an entity with the same attributes for every xid."""

    def __init__(self, attributes: dict[str, Any]) -> None:
        self._attributes = attributes

    def get(self, xid: str) -> dict[str, Any]:
        return self._attributes

    def members(self, collection: str) -> tuple[str, ...]:
        return f"{collection}/m", f"{collection}/n"


def subjects(attributes: dict[str, Any], others: dict[str, Any]) -> Iterator[tuple[str, ValidatedEntity]]:
    places = {"endpoints": "/endpoints/e", "messagegroups": "/messagegroups/g"}
    for kind in VALIDATORS:
        for xid in (places.get(kind), "/messagegroups/g/messages/m", "/endpoints/e/messages/m"):
            if xid is not None and (kind == "messages") == ("/messages/" in xid):
                yield kind, ValidatedEntity(xid, attributes, Everything(others), lambda name, document: "wrong")


@given(entities, entities)
def test_nothing_fails(attributes: dict[str, Any], others: dict[str, Any]) -> None:
    # V-01 to V-13: each finding has a level, a rule, a place and a text
    meta = attributes.get("meta")
    attributes = {**attributes, "meta": meta if isinstance(meta, dict) else {}}
    others = {**others, "meta": {}}
    for kind, subject in subjects(attributes, others):
        found = list(entity_findings(kind, subject))
        if kind == "messages":
            found += [*membership_findings(subject), *change_findings(others, subject)]
        for finding in found:
            assert finding.level in (L2, L3)
            assert re.fullmatch(r"(?:CM|EP|MS|SC)-\d\d", finding.rule)
            assert finding.path == "" or finding.path.startswith("/")
            assert finding.text and finding.xid == subject.xid


LONG: Final = 200_000
HOSTILE: Final = {
    "braces": "{" * LONG,
    "letters": "a" * LONG,
    "schemes": "a" * LONG + "://",
    "ats": "a://" + "@:" * (LONG // 2),
    "colons": "/schemagroups/g/schemas/" + ":" * LONG,
    "slashes": "/" * LONG,
    "semicolons": "a/b" + ";" * LONG,
    "quotes": 'a/b;c="' + "\\" * LONG,
    "spaces": "a/b" + " " * LONG,
    "commas": "{" + "a," * (LONG // 2) + "}",
    "digits": "P" + "1" * LONG,
    "hyphens": string.hexdigits * 20 + "-" * LONG,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_long_texts_take_no_time(name: str) -> None:
    # CM-12, EP-28, MS-34: the time for a text grows linearly with its length
    text = HOSTILE[name]
    rows = [{"uri": text, "bootstrap.servers": [text], "name": text, "value": text}]
    options = {"endpoints": rows, "headers": rows, "method": text, "topic": text, "topicfilter": text, "subject": text}
    metadata = {kind: {"type": kind, "value": text} for kind in ("integer", "number", "duration", "uri", "uritemplate")}
    began = process_time()
    for protocol in (*DEFINED_PROTOCOLS, text):
        for envelope in ("CloudEvents/1.0", text):
            attributes = {
                **dict.fromkeys(("dataschemauri", "dataschemaformat", "datacontenttype", "basemessageuri"), text),
                **{"usage": [text], "protocol": protocol, "envelope": envelope, "messagegroups": [text], "meta": {}},
                **{"protocoloptions": options, "envelopemetadata": metadata},
            }
            for kind, subject in subjects(attributes, {"meta": {}}):
                list(entity_findings(kind, subject))
    assert process_time() - began < 20
