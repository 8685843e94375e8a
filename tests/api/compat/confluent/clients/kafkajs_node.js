// KafkaJS's registry client against the registry at the URL on its input; prints what it sees as JSON.
const { SchemaRegistry, SchemaType } = require("@kafkajs/confluent-schema-registry");

async function main(host) {
  const registry = new SchemaRegistry({ host });
  const seen = {};
  const order = { type: "record", name: "Order", namespace: "shop", fields: [{ name: "id", type: "int" }] };
  const avro = await registry.register(order);
  seen.avro = await registry.decode(await registry.encode(avro.id, { id: 7 }));
  seen.again = (await registry.register(order)).id === avro.id;
  seen.latest = (await registry.getLatestSchemaId("shop.Order")) === avro.id;
  seen.found = (await registry.getRegistryIdBySchema("shop.Order", order)) === avro.id;
  const json = await registry.register(
    { type: SchemaType.JSON, schema: '{"type":"object","required":["name"]}' }, { subject: "people" });
  seen.json = await registry.decode(await registry.encode(json.id, { name: "Ada" }));
  await registry.register({ type: SchemaType.PROTOBUF,
    schema: 'syntax = "proto3"; package shop; message Address { string city = 1; }' }, { subject: "address" });
  const proto = await registry.register({ type: SchemaType.PROTOBUF,
    schema: 'syntax = "proto3"; package shop; import "address.proto"; message Person { Address home = 1; }',
    references: [{ name: "address.proto", subject: "address", version: 1 }] }, { subject: "person" });
  seen.protobuf = await registry.decode(await registry.encode(proto.id, { home: { city: "London" } }));
  const wider = { ...order, fields: [...order.fields, { name: "note", type: "string" }] };
  seen.refused = await registry.register(wider).then(() => null, (error) => error.message.slice(0, 67));
  return seen;
}

main(JSON.parse(require("fs").readFileSync(0, "utf8"))).then(
  (seen) => console.log(JSON.stringify(seen)), (error) => { console.error(error); process.exit(1); });
