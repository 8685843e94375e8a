"""The built-in models of endpoints, messages and schemas."""

from __future__ import annotations

from typing import Any

import pytest

from annals.domain.errors.problems import InvalidAttribute, Problem, RequiredAttributeMissing, UnknownAttribute
from annals.domain.model import compile_model
from annals.domain.model.builtin import default_source
from annals.domain.model.source.includes import expand_includes
from tests.data import MODELS, SPEC, read, read_from_folder
from tests.data.model_rows import rows

MODEL = compile_model(default_source())
#: Two sources of the expected models: rows stored in this repository, and the published files of the specification.
SOURCES = ["rows", *(["published"] if SPEC is not None else [])]
TIMES = {"createdat": "2025-01-01T00:00:00Z", "modifiedat": "2025-01-01T00:00:00Z"}


def endpoint(**attributes: Any) -> dict[str, Any]:
    return MODEL.groups["endpoints"].level.complete({"endpointid": "e", **TIMES, **attributes}, "/endpoints/e")


def message(**attributes: Any) -> dict[str, Any]:
    ids = {"messageid": "m", "versionid": "1", "ancestorid": "1", **TIMES}
    version = MODEL.groups["messagegroups"].resources["messages"].version
    return version.complete({**ids, **attributes}, "/messagegroups/g/messages/m/versions/1")


@pytest.mark.parametrize("said", SOURCES)
def test_builtin_models_match_the_specification(said: str) -> None:
    # CM-01, EP-41: equal to the published models, except for the target of an endpoint's message groups
    if said == "rows":
        assert rows(default_source()) == read(MODELS / "builtin.json")
        return
    assert SPEC is not None
    folder = SPEC / "cloudevents"
    model = compile_model(expand_includes(read(folder / "model.json"), read_from_folder(folder), is_lenient=True))
    expected = rows(model.full) | {"/endpoints messagegroups": "[uri -> /messagegroups]"}
    assert rows(MODEL.full) == expected


def test_messages_are_one_type_in_both_places() -> None:
    # CM-02, CM-03: one definition and one origin; the full model does not contain the import directive
    groups = MODEL.full["groups"]
    assert groups["endpoints"]["resources"] == groups["messagegroups"]["resources"]
    assert "ximportresources" not in groups["endpoints"]
    assert MODEL.groups["endpoints"].resources["messages"].origin == "/messagegroups/messages"


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"protocol": "MQTT/5.0", "protocoloptions": {"qos": "1"}}, "protocoloptions.qos"),
        (
            {"protocol": "AMQP/1.0", "protocoloptions": {"distribution-mode": "MOVE"}},
            "protocoloptions.distribution-mode",
        ),
        ({"protocol": "HTTP", "protocoloptions": {"deployed": "true"}}, "protocoloptions.deployed"),
        ({"protocol": "HTTP", "protocoloptions": {"authorization": {}}}, "protocoloptions.authorization"),
        ({"protocol": "HTTP", "protocoloptions": {"query": {"userId": "x"}}}, "protocoloptions.query.userId"),
        ({"usage": "consumer"}, "usage"),
        ({"usage": ["reader"]}, "usage[0]"),
        ({"messagegroups": ["/messagegroups/g/messages/m"]}, "messagegroups[0]"),
        ({"envelope": "CloudEvents/1.0", "envelopeoptions": {"mode": "Binary"}}, "envelopeoptions.mode"),
    ],
)
def test_endpoints_are_checked(options: dict[str, Any], path: str) -> None:
    # EP-01, EP-14, EP-20, EP-26, EP-41, CM-11: types, enums, targets and map keys of the published tables
    with pytest.raises(InvalidAttribute) as caught:
        endpoint(**options)
    assert caught.value.arguments["name"] == path


def test_endpoint_defaults_come_with_their_object() -> None:
    # CM-09, EP-22, EP-38: no defaults without protocoloptions, all defaults with an empty protocoloptions
    assert "protocoloptions" not in endpoint(protocol="KAFKA")
    serializer = "org.apache.kafka.common.serialization.StringSerializer"
    options = {"deployed": True, "acks": 1, "keyserializer": serializer, "valueserializer": serializer}
    assert endpoint(protocol="kafka", protocoloptions={})["protocoloptions"] == options


def test_endpoint_values_stay_as_sent() -> None:
    # CM-06, EP-08, EP-21, EP-40, EP-42: spelling, order, negative numbers, references of any kind
    sent = {
        "usage": ["subscriber", "consumer"],
        "protocol": "Kafka",
        "protocoloptions": {"acks": -1, "deployed": False, "keyserializer": "a", "valueserializer": "b", "x": [None]},
        "messagegroups": ["/messagegroups/none", "http://other/messagegroups/g", "#/messagegroups/g"],
    }
    done = endpoint(**sent)
    assert {name: done[name] for name in sent} == sent


def test_unknown_protocols_leave_options_alone_on_endpoints_only() -> None:
    # CM-07, MS-06: the model allows any name (`*`) in the options of an endpoint, and not in those of a message
    options = {"protocol": "HTTP/1.1", "protocoloptions": {"Any": None}}
    assert endpoint(**options)["protocoloptions"] == {"Any": None}
    with pytest.raises(UnknownAttribute):
        message(**options)


def test_changing_the_protocol_changes_what_is_allowed() -> None:
    # CM-08: options of the old protocol are unknown under the new one
    stored = message(protocol="NATS", protocoloptions={"subject": "a.b"})
    with pytest.raises(UnknownAttribute) as caught:
        message(**(stored | {"protocol": "KAFKA"}))
    assert caught.value.arguments["name"] == "protocoloptions.subject"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"foo": 1}, "unknown_attribute"),
        ({"basemessage": "x"}, "unknown_attribute"),
        ({"protocol": "NATS", "protocoloptions": {"reply-to": "x"}}, "unknown_attribute"),
        ({"protocol": "HTTP", "protocoloptions": {"status": "200"}}, "unknown_attribute"),
        ({"envelope": "CloudEvents/1.0", "envelopemetadata": {"id": {"required": False}}}, "invalid_attribute"),
        ({"envelope": "CloudEvents/1.0", "envelopemetadata": {"id": {"specurl": "x"}}}, "unknown_attribute"),
        ({"basemessageuri": "/messagegroups/g"}, "invalid_attribute"),
        ({"basemessageuri": "/endpoints/e/messages/m"}, "invalid_attribute"),
    ],
)
def test_messages_are_checked(options: dict[str, Any], problem: str) -> None:
    # MS-02, MS-10, MS-11, MS-30, MS-40: exactly the members of the published tables
    with pytest.raises(Problem) as caught:
        message(**options)
    assert caught.value.name == problem


def test_message_defaults_are_read_back() -> None:
    # MS-31, MS-40: each property object gets its defaults
    done = message(envelope="CloudEvents/1.0", envelopemetadata={"type": {"value": "a.b"}, "source": {}, "ext": {}})
    assert done["envelopemetadata"] == {
        "type": {"type": "string", "value": "a.b", "required": True},
        "source": {"type": "uritemplate", "required": True},
        "ext": {"type": "string", "required": False},
    }
    done = message(protocol="AMQP/1.0", protocoloptions={"properties": {"subject": {"value": "x"}}})
    assert done["protocoloptions"]["properties"]["subject"] == {"value": "x", "required": True}


def test_schemas_need_a_format() -> None:
    # SC-01, SC-02, SC-03: required, the same in all Versions, and equal to the format of the Group if it has one
    schemas = MODEL.groups["schemagroups"].resources["schemas"]
    with pytest.raises(RequiredAttributeMissing) as caught:
        schemas.version.complete({"schemaid": "s", "versionid": "1", "ancestorid": "1", **TIMES}, "/x")
    assert caught.value.arguments["list"] == "format"
    assert schemas.matchversions == (("format",),)
    assert MODEL.groups["schemagroups"].constraints == {"schemas.format": {"equals": "format"}}
