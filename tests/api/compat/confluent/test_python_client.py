"""Confluent's own Python client against a served registry: serializers and deserializers of the three types."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, message_factory
from google.protobuf.descriptor_pool import DescriptorPool

from tests.support.serving import serving

pytest.importorskip("confluent_kafka.schema_registry", reason="Confluent's client is not installed")

from confluent_kafka.schema_registry import Schema, SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

ORDER = (
    '{"type": "record", "name": "Order", "namespace": "shop", "fields": ['
    '{"name": "id", "type": "long"}, {"name": "note", "type": "string", "default": ""}]}'
)
PERSON = '{"title": "Person", "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}'
_OWN_ADDRESS = re.compile(r"Confluent's API at (http://\S+)")


@pytest.fixture
def client(store_url: str, tmp_path: Path) -> Iterator[SchemaRegistryClient]:
    # CSR-101, CSR-102: a port of its own, whose root is the API
    with serving(store_url, tmp_path, ANNALS_CONFLUENT_PORT="0"):
        address = _OWN_ADDRESS.search((tmp_path / "serve.log").read_text())
        assert address is not None
        yield SchemaRegistryClient({"url": address[1]})


def value_of(topic: str) -> SerializationContext:
    return SerializationContext(topic, MessageField.VALUE)


def test_avro_goes_there_and_back(client: SchemaRegistryClient) -> None:
    # CSR-1101
    serializer, deserializer = AvroSerializer(client, ORDER), AvroDeserializer(client)
    data = serializer({"id": 7, "note": "x"}, value_of("orders"))
    assert data is not None and data[0] == 0
    assert deserializer(data, value_of("orders")) == {"id": 7, "note": "x"}
    assert client.get_subjects() == ["orders-value"]
    assert int.from_bytes(data[1:5], "big") == client.get_latest_version("orders-value").schema_id


def test_a_serializer_finds_what_is_registered(client: SchemaRegistryClient) -> None:
    # CSR-503: without registering, and with the latest version
    id = client.register_schema("orders-value", Schema(ORDER, "AVRO"))
    by_lookup = AvroSerializer(client, ORDER.replace(" ", ""), conf={"auto.register.schemas": False})
    by_latest = AvroSerializer(client, ORDER, conf={"auto.register.schemas": False, "use.latest.version": True})
    for serializer in (by_lookup, by_latest):
        data = serializer({"id": 1, "note": ""}, value_of("orders"))
        assert data is not None and int.from_bytes(data[1:5], "big") == id
    unknown = AvroSerializer(client, ORDER.replace("Order", "Other"), conf={"auto.register.schemas": False})
    with pytest.raises(SchemaRegistryError) as refused:
        unknown({"id": 1, "note": ""}, value_of("orders"))
    assert refused.value.error_code == 40403


def test_json_goes_there_and_back(client: SchemaRegistryClient) -> None:
    serializer = JSONSerializer(PERSON, client)
    deserializer = JSONDeserializer(PERSON, schema_registry_client=client)
    data = serializer({"name": "Ada"}, value_of("people"))
    assert deserializer(data, value_of("people")) == {"name": "Ada"}


def message_type() -> Any:
    """A message type of a file that imports another one."""
    address = descriptor_pb2.FileDescriptorProto(name="shop/address.proto", package="shop", syntax="proto3")
    city = address.message_type.add(name="Address").field.add(name="city", number=1, label=1, type=9)
    city.json_name = "city"
    person = descriptor_pb2.FileDescriptorProto(
        name="shop/person.proto", package="shop", syntax="proto3", dependency=["shop/address.proto"]
    )
    fields = person.message_type.add(name="Person").field
    fields.add(name="name", number=1, label=1, type=9, json_name="name")
    fields.add(name="home", number=2, label=1, type=11, type_name=".shop.Address", json_name="home")
    pool = DescriptorPool()
    for file in (address, person):
        pool.Add(file)  # type: ignore[no-untyped-call, unused-ignore]
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Person"))


def test_protobuf_goes_there_and_back(client: SchemaRegistryClient) -> None:
    # CSR-417, CSR-420: descriptors in base64, with the imported file as a reference
    person = message_type()
    serializer = ProtobufSerializer(person, client)
    deserializer = ProtobufDeserializer(person, schema_registry_client=client)
    sent = person(name="Ada")
    sent.home.city = "London"
    data = serializer(sent, value_of("people"))
    received = deserializer(data, value_of("people"))
    assert received is not None and (received.name, received.home.city) == ("Ada", "London")
    latest = client.get_latest_version("people-value")
    assert [reference.name for reference in latest.schema.references or ()] == ["shop/address.proto"]


def test_the_client_manages_subjects(client: SchemaRegistryClient) -> None:
    first = client.register_schema("s", Schema(ORDER, "AVRO"))
    narrower = Schema('{"type": "record", "name": "Order", "namespace": "shop", "fields": []}', "AVRO")
    client.register_schema("s", narrower)
    assert client.get_versions("s") == [1, 2]
    assert not client.test_compatibility("s", Schema(ORDER.replace(', "default": ""', ""), "AVRO"))
    registered = client.lookup_schema("s", Schema(ORDER, "AVRO"))
    assert (registered.schema_id, registered.version) == (first, 1)
    assert client.get_schema(first).schema_type == "AVRO"
    client.set_compatibility("s", "NONE")
    assert client.get_compatibility("s") == "NONE"
    user = Schema(
        '{"type": "record", "name": "User", "fields": [{"name": "last", "type": "shop.Order"}]}',
        "AVRO",
        [SchemaReference("shop.Order", "s", 1)],
    )
    client.register_schema("users", user)
    assert client.delete_version("s", 2) == 2
    with pytest.raises(SchemaRegistryError) as refused:
        client.delete_subject("s")
    assert refused.value.error_code == 42206
    assert client.delete_subject("users") == [1]
    assert client.delete_subject("users", permanent=True) == [1]
    assert client.delete_subject("s") == [1]
    assert client.get_schema(first).schema_str is not None
