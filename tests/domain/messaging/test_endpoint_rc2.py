"""Translation of documents of 1.0-rc2 to the current specification, one difference at a time."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annals.domain.messaging.rc2 import DialectMismatch
from annals.domain.messaging.rc2.endpoints import translate

Json = dict[str, Any]


def options(**given: Any) -> Json:
    return {"protocoloptions": given}


AMQP, MQTT3, MQTT5 = {"protocol": "AMQP/1.0"}, {"protocol": "MQTT/3.1.1"}, {"protocol": "mqtt/5.0"}
KAFKA, NATS = {"protocol": "Kafka/2.0"}, {"protocol": "NATS/1.0.0"}
SUBSCRIBER, PRODUCER = {"usage": ["subscriber"]}, {"usage": ["producer"]}

#: An endpoint, its translation, and the paths below it that were changed.
ENDPOINTS: list[tuple[Json, Json, list[str]]] = [
    # usage, addresses, authorization, deployed
    ({"usage": "producer"}, {"usage": ["producer"]}, [""]),
    ({"usage": ["consumer", "producer"]}, {"usage": ["consumer", "producer"]}, []),
    (
        AMQP | options(endpoints=[{"url": "amqp://h", "x": 1}, {"uri": "amqp://i"}]),
        AMQP | options(endpoints=[{"uri": "amqp://h", "x": 1}, {"uri": "amqp://i"}]),
        ["/protocoloptions/endpoints/0"],
    ),
    (
        AMQP | options(endpoints=[{"url": "amqp://h", "uri": "amqp://i"}]),
        AMQP | options(endpoints=[{"url": "amqp://h", "uri": "amqp://i"}]),
        [],
    ),
    (
        options(authorization={"type": "OAuth2", "resourceurl": "https://r", "grant_types": ["a"]}),
        options(authorization=[{"type": "OAuth2", "resourceuri": "https://r", "grant_types": ["a"]}]),
        ["/protocoloptions", "/protocoloptions/authorization/0"],
    ),
    (options(authorization=[{"granttypes": []}]), options(authorization=[{"granttypes": []}]), []),
    (options(), options(), []),
    # `options` inside `protocoloptions`
    (options(a=1, options={"b": 2}), options(a=1, b=2), ["/protocoloptions"]),
    (options(a=1, options={"a": 2}), options(a=1, options={"a": 2}), []),
    (
        AMQP | options(options={"linkproperties": {}}),
        AMQP | options(**{"link-properties": {}}),
        ["/protocoloptions", "/protocoloptions"],
    ),
    # names of AMQP
    (
        AMQP | options(linkproperties={"a": "b"}, connectionproperties={}, distributionmode="copy", durable=True),
        AMQP
        | options(
            **{"link-properties": {"a": "b"}, "connection-properties": {}, "distribution-mode": "copy"}, durable=True
        ),
        ["/protocoloptions"] * 3,
    ),
    (
        {"protocol": "amqp"} | options(distributionmode="x"),
        {"protocol": "amqp"} | options(**{"distribution-mode": "x"}),
        ["/protocoloptions"],
    ),
    (NATS | options(linkproperties={}), NATS | options(linkproperties={}), []),
    # MQTT and NATS
    (MQTT5 | options(cleansession=False), MQTT5 | options(cleanstart=False), ["/protocoloptions"]),
    (MQTT3 | options(cleansession=False), MQTT3 | options(cleansession=False), []),
    (MQTT5 | SUBSCRIBER | options(topic="a/#"), MQTT5 | SUBSCRIBER | options(topicfilter="a/#"), ["/protocoloptions"]),
    (MQTT3 | SUBSCRIBER | options(topic="a"), MQTT3 | SUBSCRIBER | options(topicfilter="a"), ["/protocoloptions"]),
    (
        MQTT3 | {"usage": "subscriber"} | options(topic="a"),
        MQTT3 | SUBSCRIBER | options(topicfilter="a"),
        ["", "/protocoloptions"],
    ),
    (MQTT5 | PRODUCER | options(topic="a"), MQTT5 | PRODUCER | options(topic="a"), []),
    (
        NATS | SUBSCRIBER | options(subject="a.>"),
        NATS | SUBSCRIBER | options(subjectfilter="a.>"),
        ["/protocoloptions"],
    ),
    (KAFKA | SUBSCRIBER | options(topic="a"), KAFKA | SUBSCRIBER | options(topic="a"), []),
    # Kafka addresses
    (
        KAFKA | options(endpoints=[{"uri": "SASL_SSL://h:1,i:2/", "x": 1}]),
        KAFKA | options(endpoints=[{"x": 1, "bootstrap.servers": ["h:1", "i:2"], "security.protocol": "SASL_SSL"}]),
        ["/protocoloptions/endpoints/0"],
    ),
    (
        KAFKA | options(endpoints=[{"uri": "kafka://h:1"}, {"uri": "h:2"}, {"uri": "http://h"}]),
        KAFKA
        | options(endpoints=[{"bootstrap.servers": ["h:1"]}, {"bootstrap.servers": ["h:2"]}, {"uri": "http://h"}]),
        ["/protocoloptions/endpoints/0", "/protocoloptions/endpoints/1"],
    ),
    # names that are not translated stay, and so do unknown values
    ({"protocol": "HTTP/1.1"} | options(method="POST"), {"protocol": "HTTP/1.1"} | options(method="POST"), []),
    (
        {"protocol": 5, "protocoloptions": [1], "usage": None},
        {"protocol": 5, "protocoloptions": [1], "usage": None},
        [],
    ),
    # references
    (
        {"messagegroups": ["/messagegroups/a", "#/messagegroups/b", 5, "http://x"]},
        {"messagegroups": ["/messagegroups/a", "/messagegroups/b", 5, "http://x"]},
        [""],
    ),
]

#: The same for a message of a message group, or a Version of one.
MESSAGES: list[tuple[Json, Json, list[str]]] = [
    ({"basemessageurl": "/m"}, {"basemessageuri": "/m"}, [""]),
    ({"basemessage": "#/messagegroups/g/messages/m"}, {"basemessageuri": "/messagegroups/g/messages/m"}, ["", ""]),
    ({"dataschemauri": "#/schemagroups/g/schemas/s"}, {"dataschemauri": "/schemagroups/g/schemas/s"}, [""]),
    ({"ancestor": "1"}, {"ancestorid": "1"}, [""]),
    (
        {"envelopemetadata": {"attributes": {"type": {"value": "x"}}}},
        {"envelopemetadata": {"type": {"value": "x"}}},
        ["/envelopemetadata"],
    ),
    ({"envelopemetadata": {"attributes": {"value": "x"}}}, {"envelopemetadata": {"attributes": {"value": "x"}}}, []),
    (
        {"envelopemetadata": {"type": {}, "attributes": {"type": {"value": "x"}}}},
        {"envelopemetadata": {"type": {}, "attributes": {"type": {"value": "x"}}}},
        [],
    ),
    ({"protocol": "HTTP/1.1", **options(method="GET")}, {"protocol": "HTTP", **options(method="GET")}, [""]),
    ({"protocol": "HTTP/1.1"}, {"protocol": "HTTP/1.1"}, []),
    ({"protocol": "NATS", **options(subject="a")}, {"protocol": "NATS", **options(subject="a")}, []),
    ({"epoch": 5, "name": "n"}, {"name": "n"}, []),
]


@pytest.mark.parametrize(("given", "expected", "paths"), ENDPOINTS)
def test_endpoints(given: Json, expected: Json, paths: list[str]) -> None:
    # § 3 of the endpoint registry's history: each difference between the two release candidates, reported with its path
    document = {"specversion": "1.0-rc2", "endpoints": {"e": given}}
    before = deepcopy(document)
    found = translate(document)
    assert found.tree == {"endpoints": {"e": expected}}
    assert [change.path for change in found.report] == ["", *(f"/endpoints/e{path}" for path in paths)]
    assert document == before


@pytest.mark.parametrize(("given", "expected", "paths"), MESSAGES)
def test_messages(given: Json, expected: Json, paths: list[str]) -> None:
    for place in ("messagegroups", "endpoints"):
        found = translate({place: {"g": {"messages": {"m/~": {**given, "versions": {"1": given}}}}}})
        assert found.tree == {place: {"g": {"messages": {"m/~": {**expected, "versions": {"1": expected}}}}}}
        at = f"/{place}/g/messages/m~1~0"
        assert [change.path for change in found.report] == [f"{at}{path}" for path in paths] + [
            f"{at}/versions/1{path}" for path in paths
        ]


def test_a_map_of_endpoints_is_taken_as_well() -> None:
    found = translate({"e": {"usage": "producer", "epoch": 3}})
    assert found.tree == {"endpoints": {"e": {"usage": ["producer"]}}}
    assert [change.members() for change in found.report] == [
        {"path": "/e", "from": {"usage": "producer"}, "to": {"usage": ["producer"]}, "why": "roles have to be a list"}
    ]


def test_what_is_of_the_registry_stays_out() -> None:
    given = {
        "specversion": "1.0-rc2",
        "name": "n",
        "model": {"groups": {}},
        "endpointsurl": "u",
        "endpointscount": 0,
        "endpoints": {},
    }
    found = translate(given)
    assert found.tree == {"endpointsurl": "u", "endpointscount": 0, "endpoints": {}}
    (change,) = found.report
    assert (change.path, list(change.before), change.after) == ("", ["specversion", "name", "model"], {})


def test_metas_lose_what_is_gone() -> None:
    meta = {"compatibility": "none", "compatibilityauthority": "server", "validation": True, "epoch": 2, "labels": {}}
    schema = {"meta": meta, "versions": {"1": {"ancestor": "1", "epoch": 7}}}
    found = translate({"schemagroups": {"g": {"schemas": {"s": schema}}}})
    expected = {"meta": {"labels": {}}, "versions": {"1": {"ancestorid": "1"}}}
    assert found.tree == {"schemagroups": {"g": {"schemas": {"s": expected}}}}
    unchanged = translate({"schemagroups": {"g": {"schemas": {"s": {"meta": {"compatibility": "forward"}}}}}})
    assert unchanged.report == ()


@pytest.mark.parametrize("document", [[], "text", None, {"specversion": "1.0-rc4"}, {"specversion": 1}])
def test_documents_of_another_kind_are_refused(document: Any) -> None:
    with pytest.raises(DialectMismatch):
        translate(document)


NAMES = st.sampled_from(
    [
        *("endpoints", "messagegroups", "messages", "versions", "meta", "protocoloptions", "options", "usage", "url"),
        *("uri", "authorization", "topic", "envelopemetadata", "attributes", "protocol", "basemessageurl", "ancestor"),
    ]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["MQTT/5.0", "kafka", "#/a", "SSL://h", "subscriber"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(NAMES, VALUES, max_size=4))
def test_any_document_is_translated(document: Json) -> None:
    before = deepcopy(document)
    found = translate(document)
    assert document == before
    assert all(change.before != change.after for change in found.report)
