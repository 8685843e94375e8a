// Confluent's client for Node.js against the registry at the URL on its input; prints what it sees as JSON.
const { SchemaRegistryClient, AvroSerializer, AvroDeserializer, JsonSerializer, JsonDeserializer, ProtobufSerializer,
  ProtobufDeserializer, SerdeType, HeaderSchemaIdSerializer, Compatibility } = require("@confluentinc/schemaregistry");
const { create, createFileRegistry, createRegistry } = require("@bufbuild/protobuf");
const { TimestampSchema, FileDescriptorSetSchema, FileDescriptorProtoSchema, file_google_protobuf_timestamp } =
  require("@bufbuild/protobuf/wkt");

const ORDER = JSON.stringify({ type: "record", name: "Order", namespace: "shop", fields: [{ name: "id", type: "long" }] });
const PERSON = JSON.stringify({ type: "object", properties: { name: { type: "string" } }, required: ["name"] });

async function main(url) {
  const client = SchemaRegistryClient.newClient({ baseURLs: [url] });
  const seen = {};

  const avro = new AvroSerializer(client, SerdeType.VALUE, { autoRegisterSchemas: false, useLatestVersion: true });
  const orderId = await client.register("orders-value", { schema: ORDER, schemaType: "AVRO" });
  const order = await avro.serialize("orders", { id: 7 });
  seen.avro = await new AvroDeserializer(client, SerdeType.VALUE, {}).deserialize("orders", order);
  seen.idInRecord = order.readInt32BE(1) === orderId;

  const headers = {};
  const byGuid = new AvroSerializer(client, SerdeType.VALUE, {
    useLatestVersion: true, autoRegisterSchemas: false, schemaIdSerializer: HeaderSchemaIdSerializer });
  const plain = await byGuid.serialize("orders", { id: 8 }, headers);
  seen.headers = Object.keys(headers);
  seen.byGuid = await new AvroDeserializer(client, SerdeType.VALUE, {}).deserialize("orders", plain, headers);

  const json = new JsonSerializer(client, SerdeType.VALUE, { useLatestVersion: true, validate: true });
  await client.register("people-value", { schema: PERSON, schemaType: "JSON" });
  const person = await json.serialize("people", { name: "Ada" });
  seen.json = await new JsonDeserializer(client, SerdeType.VALUE, {}).deserialize("people", person);
  seen.invalid = await json.serialize("people", {}).then(() => "accepted", (error) => error.constructor.name);

  // The file imports another one, which the serializer registers first and names as a reference.
  const times = create(FileDescriptorProtoSchema, { name: "times.proto", syntax: "proto3",
    dependency: ["google/protobuf/timestamp.proto"],
    messageType: [{ name: "Times", field: [
      { name: "at", number: 1, type: 11, label: 1, typeName: ".google.protobuf.Timestamp", jsonName: "at" }] }] });
  const event = create(FileDescriptorProtoSchema, { name: "event.proto", syntax: "proto3", dependency: ["times.proto"],
    messageType: [{ name: "Event", field: [
      { name: "times", number: 1, type: 11, label: 1, typeName: ".Times", jsonName: "times" }] }] });
  const files = createFileRegistry(create(FileDescriptorSetSchema, {
    file: [file_google_protobuf_timestamp.proto, times, event] }));
  const registry = createRegistry(...files.files);
  const proto = new ProtobufSerializer(client, SerdeType.VALUE, { autoRegisterSchemas: true, registry });
  const at = create(TimestampSchema, { seconds: 5n });
  const message = create(files.getMessage("Event"), { times: create(files.getMessage("Times"), { at }) });
  const bytes = await proto.serialize("events", message);
  const back = await new ProtobufDeserializer(client, SerdeType.VALUE, {}).deserialize("events", bytes);
  seen.protobuf = Number(back.times.at.seconds);
  seen.references = (await client.getLatestSchemaMetadata("events-value")).references;

  seen.versions = await client.getAllVersions("orders-value");
  seen.found = (await client.getId("orders-value", { schema: ORDER.replace(/,/g, ", "), schemaType: "AVRO" })) === orderId;
  await client.updateCompatibility("orders-value", Compatibility.FULL);
  seen.level = await client.getCompatibility("orders-value");
  const wider = ORDER.replace('"long"}', '"long"},{"name":"note","type":"string"}');
  seen.compatible = await client.testCompatibility("orders-value", 1, { schema: wider, schemaType: "AVRO" });
  const refused = (promise) => promise.then(() => null, (error) => [error.status, error.errorCode]);
  seen.refused = await refused(client.register("orders-value", { schema: wider, schemaType: "AVRO" }));
  seen.deleted = [await client.deleteSubject("orders-value"), await client.deleteSubject("orders-value", true)];
  seen.missing = await refused(client.getLatestSchemaMetadata("unknown"));
  seen.subjects = await client.getAllSubjects();
  return seen;
}

main(JSON.parse(require("fs").readFileSync(0, "utf8"))).then(
  (seen) => console.log(JSON.stringify(seen)), (error) => { console.error(error); process.exit(1); });
