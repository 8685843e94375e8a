"""Confluent's client for Python, with a broker between producer and consumer: `confluent_python.py URL BROKER`.

Prints the results as JSON. It runs in its own environment, which has the client with all extras.
"""

# mypy: ignore-errors
import asyncio
import json
import sys
import uuid

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from confluent_kafka.schema_registry import (
    AsyncSchemaRegistryClient,
    ConfigCompatibilityLevel,
    Metadata,
    MetadataProperties,
    Rule,
    RuleKind,
    RuleMode,
    RuleSet,
    Schema,
    SchemaReference,
    SchemaRegistryClient,
    ServerConfig,
    header_schema_id_serializer,
)
from confluent_kafka.schema_registry._async.avro import AsyncAvroDeserializer, AsyncAvroSerializer
from confluent_kafka.schema_registry._async.json_schema import AsyncJSONDeserializer, AsyncJSONSerializer
from confluent_kafka.schema_registry._async.protobuf import AsyncProtobufDeserializer, AsyncProtobufSerializer
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.schema_registry.error import SchemaRegistryError
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer
from confluent_kafka.schema_registry.rules.cel.cel_executor import CelExecutor
from confluent_kafka.schema_registry.rules.cel.cel_field_executor import CelFieldExecutor
from confluent_kafka.schema_registry.rules.jsonata.jsonata_executor import JsonataExecutor
from confluent_kafka.serialization import MessageField, SerializationContext, SerializationError
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory, timestamp_pb2
from google.type import money_pb2

URL, BROKER = sys.argv[1:]
#: The prefix of topics at the broker, which other runs share. Names of subjects do not have it.
RUN = f"{uuid.uuid4()}-"
ADDRESS = {"type": "record", "name": "Address", "namespace": "shop", "fields": [{"name": "city", "type": "string"}]}
ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [{"name": "id", "type": "long"}, {"name": "to", "type": "shop.Address"}],
}
PLAIN = {"type": "record", "name": "Plain", "namespace": "shop", "fields": [{"name": "id", "type": "long"}]}
CUSTOMER = {"$id": "customer.json", "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
SALE = {"title": "Sale", "type": "object", "properties": {"customer": {"$ref": "customer.json"}}}
NO_REGISTERING = {"auto.register.schemas": False}
LATEST = {**NO_REGISTERING, "use.latest.version": True}


def main():
    for executor in (CelExecutor, CelFieldExecutor, JsonataExecutor):
        executor.register()
    admin = AdminClient({"bootstrap.servers": BROKER})
    for created in admin.create_topics([NewTopic(RUN + topic, 1, 1) for topic in TOPICS]).values():
        created.result()
    client = SchemaRegistryClient({"url": URL})
    seen = {name: step(client) for name, step in STEPS.items()}
    seen["asynchronous"] = asyncio.run(asynchronous())
    print(json.dumps(seen))


def through_kafka(topic, value, serializer, deserializer):
    """Sends a value through Kafka. Returns the received value, and the headers and bytes of the record."""
    headers = {}
    data = serializer(value, SerializationContext(topic, MessageField.VALUE, headers))
    producer = Producer({"bootstrap.servers": BROKER})
    producer.produce(RUN + topic, data, headers=list(headers.items()))
    assert producer.flush(60) == 0
    consumer = Consumer({"bootstrap.servers": BROKER, "group.id": RUN})
    consumer.assign([TopicPartition(RUN + topic, 0, 0)])
    message = consumer.poll(60)
    consumer.close()
    assert message is not None and message.error() is None, message and message.error()
    received = dict(message.headers() or [])
    found = deserializer(message.value(), SerializationContext(topic, MessageField.VALUE, received))
    return found, received, message.value()


def avro(client):
    """The serializer finds a registered schema with a reference by its text; the record has the registered id."""
    client.register_schema("address", Schema(json.dumps(ADDRESS), "AVRO"))
    schema = Schema(json.dumps(ORDER), "AVRO", [SchemaReference("shop.Address", "address", 1)])
    id = client.register_schema("avro-value", schema)
    serializer = AvroSerializer(client, schema, conf=NO_REGISTERING)
    value = {"id": 7, "to": {"city": "London"}}
    found, _, data = through_kafka("avro", value, serializer, AvroDeserializer(client))
    unknown = AvroSerializer(client, json.dumps(PLAIN), conf=NO_REGISTERING)
    return [
        found == value,
        int.from_bytes(data[1:5], "big") == id,
        refusal(lambda: unknown({"id": 1}, SerializationContext("avro", MessageField.VALUE))),
        refusal(lambda: client.delete_subject("address")),
    ]


def registering_avro(client):
    """The serializer registers its schema once."""
    serializer = AvroSerializer(client, json.dumps(PLAIN))
    context = SerializationContext("registering", MessageField.VALUE)
    data = [serializer({"id": number}, context) for number in (1, 2)]
    read = AvroDeserializer(SchemaRegistryClient({"url": URL}))
    return [[read(each, context) for each in data], client.get_versions("registering-value")]


def json_schema(client):
    """The serializer uses the latest registered version, and refuses a value that does not match it."""
    client.register_schema("customer", Schema(json.dumps(CUSTOMER), "JSON"))
    schema = Schema(json.dumps(SALE), "JSON", [SchemaReference("customer.json", "customer", 1)])
    client.register_schema("json-value", schema)
    serializer = JSONSerializer(schema, client, conf=LATEST)
    deserializer = JSONDeserializer(schema, schema_registry_client=client)
    found, _, _ = through_kafka("json", {"customer": {"name": "Ada"}}, serializer, deserializer)
    wrong = refusal(lambda: serializer({"customer": {}}, SerializationContext("json", MessageField.VALUE)))
    return [found, wrong]


def message_class():
    """A message class whose file imports a file of its package, one of the compiler, and a common type of Google."""
    address = descriptor_pb2.FileDescriptorProto(name="shop/address.proto", package="shop", syntax="proto3")
    address.message_type.add(name="Address").field.add(name="city", number=1, label=1, type=9, json_name="city")
    imports = ["shop/address.proto", "google/protobuf/timestamp.proto", "google/type/money.proto"]
    order = descriptor_pb2.FileDescriptorProto(
        name="shop/order.proto", package="shop", syntax="proto3", dependency=imports
    )
    fields = order.message_type.add(name="Order").field
    types = (("to", ".shop.Address"), ("at", ".google.protobuf.Timestamp"), ("price", ".google.type.Money"))
    for number, (name, type_name) in enumerate(types, 1):
        fields.add(name=name, number=number, label=1, type=11, type_name=type_name, json_name=name)
    pool = descriptor_pool.DescriptorPool()
    for file in (timestamp_pb2.DESCRIPTOR, money_pb2.DESCRIPTOR):
        pool.AddSerializedFile(file.serialized_pb)
    for file in (address, order):
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))


def filled(order):
    message = order()
    message.to.city, message.at.seconds, message.price.units = "London", 5, 3
    return message


def protobuf(client):
    """The serializer registers imported files first; the well-known files get no reference."""
    order = message_class()
    serializer = ProtobufSerializer(order, client, conf={"skip.known.types": True})
    deserializer = ProtobufDeserializer(order, schema_registry_client=client)
    sent = filled(order)
    found, _, _ = through_kafka("protobuf", sent, serializer, deserializer)
    references = client.get_latest_version("protobuf-value").schema.references
    return [found == sent, [reference.name for reference in references]]


def protobuf_of_every_import(client):
    """Without `skip.known.types`, Google's files are registered too."""
    order = message_class()
    serializer = ProtobufSerializer(order, client, conf={"skip.known.types": False})
    data = serializer(filled(order), SerializationContext("every", MessageField.VALUE))
    again = ProtobufSerializer(order, SchemaRegistryClient({"url": URL}), conf={**LATEST, "skip.known.types": False})
    return [
        data == again(filled(order), SerializationContext("every", MessageField.VALUE)),
        sorted(reference.name for reference in client.get_latest_version("every-value").schema.references),
    ]


def guid_in_headers(client):
    """The record has only the value; a header has the guid, by which another client finds the schema."""
    client.register_schema("headers-value", Schema(json.dumps(PLAIN), "AVRO"))
    conf = {**LATEST, "schema.id.serializer": header_schema_id_serializer}
    serializer = AvroSerializer(client, json.dumps(PLAIN), conf=conf)
    other = AvroDeserializer(SchemaRegistryClient({"url": URL}))
    # The deserializer refuses values below six bytes, even if the id is in a header.
    found, headers, data = through_kafka("headers", {"id": 2**62}, serializer, other)
    return [found == {"id": 2**62}, sorted(headers), len(data)]


def domain_rules(client):
    """A CEL rule that the client runs before it writes refuses a value."""
    order_rule = Rule(
        "positive", None, RuleKind.CONDITION, RuleMode.WRITE, "CEL", None, None, "message.id > 0", None, None, False
    )
    schema = Schema(json.dumps(PLAIN), "AVRO", rule_set=RuleSet(None, [order_rule]))
    client.register_schema("rules-value", schema)
    serializer = AvroSerializer(client, json.dumps(PLAIN), conf=LATEST)
    found, _, _ = through_kafka("rules", {"id": 1}, serializer, AvroDeserializer(client))
    wrong = refusal(lambda: serializer({"id": 0}, SerializationContext("rules", MessageField.VALUE)))
    stored = client.get_latest_version("rules-value").schema.rule_set.domain_rules[0]
    return [found, wrong, [stored.name, stored.expr, str(stored.mode)]]


def migration_rules(client):
    """A JSONata rule that the client runs between two major versions of a subject, which differ in their metadata."""
    client.set_config("migrated-value", ServerConfig(ConfigCompatibilityLevel.BACKWARD, compatibility_group="major"))

    def version(major, field, rules=None):
        text = {**PLAIN, "fields": [{"name": field, "type": "long"}]}
        metadata = Metadata(None, MetadataProperties({"major": major}), None)
        return Schema(json.dumps(text), "AVRO", metadata=metadata, rule_set=rules)

    client.register_schema("migrated-value", version("1", "id"))
    expression = "$merge([$sift($, function($v, $k) {$k != 'id'}), {'number': $.'id'}])"
    upgrade = Rule(
        "upgrade", None, RuleKind.TRANSFORM, RuleMode.UPGRADE, "JSONATA", None, None, expression, None, None, False
    )
    client.register_schema("migrated-value", version("2", "number", RuleSet([upgrade], None)))
    first = {**NO_REGISTERING, "use.latest.with.metadata": {"major": "1"}}
    second = {"use.latest.with.metadata": {"major": "2"}}
    serializer = AvroSerializer(client, json.dumps(PLAIN), conf=first)
    found, _, _ = through_kafka("migrated", {"id": 4}, serializer, AvroDeserializer(client, conf=second))
    return found


def management(client):
    """Most of the other calls, with their error codes."""
    text = json.dumps(PLAIN)
    wider = text.replace("]", ', {"name": "note", "type": "string"}]')
    registered = client.register_schema_full_response("managed", Schema(text, "AVRO"))
    client.set_config("managed", ServerConfig(ConfigCompatibilityLevel.FULL))
    return [
        client.get_schema_by_guid(registered.guid).schema_str == client.get_schema(registered.schema_id).schema_str,
        client.lookup_schema("managed", Schema(text.replace(" ", ""), "AVRO")).version,
        client.get_config("managed").compatibility_level,
        client.test_compatibility("managed", Schema(wider, "AVRO")),
        refusal(lambda: client.register_schema("managed", Schema(wider, "AVRO"))),
        refusal(lambda: client.register_schema("managed", Schema("{", "AVRO"))),
        refusal(lambda: client.get_version("managed", 9)),
        client.get_subjects(subject_prefix="manag"),
        client.delete_subject("managed"),
        client.get_versions("managed", deleted=True),
        client.get_subjects(subject_prefix="manag", deleted=True),
        client.delete_subject("managed", permanent=True),
        refusal(lambda: client.get_latest_version("managed")),
    ]


async def asynchronous():
    """The three serializers of the asynchronous client, which register what they serialize."""
    client = AsyncSchemaRegistryClient({"url": URL})
    context = SerializationContext("asynchronous", MessageField.VALUE)
    avro = await AsyncAvroSerializer(client, json.dumps(PLAIN), conf={"normalize.schemas": True})
    read_avro = await AsyncAvroDeserializer(client)
    found = [await read_avro(await avro({"id": 1}, context), context)]

    context = SerializationContext("asynchronous-json", MessageField.VALUE)
    write_json = await AsyncJSONSerializer(json.dumps(CUSTOMER), client)
    read_json = await AsyncJSONDeserializer(json.dumps(CUSTOMER), schema_registry_client=client)
    found.append(await read_json(await write_json({"name": "Ada"}, context), context))

    context = SerializationContext("asynchronous-protobuf", MessageField.VALUE)
    order = message_class()
    write_order = await AsyncProtobufSerializer(order, client, conf={"skip.known.types": True})
    read_order = await AsyncProtobufDeserializer(order, schema_registry_client=client)
    found.append((await read_order(await write_order(filled(order), context), context)) == filled(order))
    return [*found, await client.get_versions("asynchronous-value")]


def refusal(call):
    """The code of an error of the registry, or the class of an error of the client."""
    try:
        call()
    except SchemaRegistryError as error:
        return error.error_code
    except SerializationError as error:
        return type(error).__name__
    return None


STEPS = {
    "avro": avro,
    "registering avro": registering_avro,
    "json": json_schema,
    "protobuf": protobuf,
    "every import": protobuf_of_every_import,
    "guid in headers": guid_in_headers,
    "domain rules": domain_rules,
    "migration rules": migration_rules,
    "management": management,
}
TOPICS = ("avro", "json", "protobuf", "headers", "rules", "migrated")

if __name__ == "__main__":
    main()
