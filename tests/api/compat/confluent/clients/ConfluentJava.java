// Uses most of the calls of Confluent's client for Java and of its serializer for Avro. Prints one result a line.

import io.confluent.kafka.schemaregistry.avro.AvroSchema;
import io.confluent.kafka.schemaregistry.avro.AvroSchemaProvider;
import io.confluent.kafka.schemaregistry.client.CachedSchemaRegistryClient;
import io.confluent.kafka.schemaregistry.client.rest.RestService;
import io.confluent.kafka.schemaregistry.client.rest.entities.Metadata;
import io.confluent.kafka.schemaregistry.client.rest.entities.SchemaReference;
import io.confluent.kafka.schemaregistry.client.rest.exceptions.RestClientException;
import io.confluent.kafka.serializers.KafkaAvroDeserializer;
import io.confluent.kafka.serializers.KafkaAvroSerializer;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.generic.GenericRecordBuilder;

public class ConfluentJava {
    static final String ORDER = record("Order", "{\"name\":\"id\",\"type\":\"long\"}");
    static final String WITH_NOTE = record(
        "Order", "{\"name\":\"id\",\"type\":\"long\"},{\"name\":\"note\",\"type\":\"string\",\"default\":\"\"}");
    static final String OTHER = record("Order", "{\"name\":\"id\",\"type\":\"string\"}");
    static final String CUSTOMER = record(
        "Customer", "{\"name\":\"last\",\"type\":\"Order\"}");

    static final PrintStream OUT = new PrintStream(System.out, true, StandardCharsets.UTF_8);
    static String address;

    interface Call {
        Object result() throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        address = arguments[0];
        serialize();
        useClient();
        useMetadata();
        System.exit(0);  // a thread of the client would keep the process for a minute
    }

    static void serialize() {
        GenericRecord order = new GenericRecordBuilder(parse(ORDER)).set("id", 7L).build();
        GenericRecord other = new GenericRecordBuilder(parse(OTHER)).set("id", "x").build();
        Map<String, Object> onlyKnown = Map.of("auto.register.schemas", false);
        Map<String, Object> latest = Map.of("auto.register.schemas", false, "use.latest.version", true);
        show("registered", () -> id(write(Map.of(), "orders", order)));
        show("read", () -> read(write(Map.of(), "orders", order)));
        show("known", () -> id(write(onlyKnown, "orders", order)));
        show("unknown subject", () -> write(onlyKnown, "others", order));
        show("unknown schema", () -> write(onlyKnown, "orders", other));
        show("incompatible", () -> write(Map.of(), "orders", other));
        show("latest", () -> id(write(latest, "orders", order)));
        show("id", () -> id(write(Map.of("auto.register.schemas", false, "use.schema.id", 1), "orders", order)));
        show("normalized", () -> id(write(Map.of("normalize.schemas", true), "normalized", order)));
        show("text", () -> id(write(Map.of(), "texts", "x")));
    }

    static void useClient() throws Exception {
        CachedSchemaRegistryClient client = client();
        show("subjects", client::getAllSubjects);
        show("contexts", client::getAllContexts);
        show("versions", () -> client.getAllVersions("orders-value"));
        show("missing subject", () -> client.getAllVersions("none"));
        show("missing id", () -> client.getSchemaById(4711));
        show("subjects of the id", () -> client.getAllSubjectsById(1));
        show("versions of the id", () -> client.getAllVersionsById(1));
        show("evolved", () -> client.register("orders-value", new AvroSchema(WITH_NOTE)));
        show("version", () -> client.getVersion("orders-value", new AvroSchema(WITH_NOTE)));
        show("id of the text", () -> client.getId("orders-value", new AvroSchema(ORDER)));
        show("newest", () -> client.getLatestSchemaMetadata("orders-value").getVersion());
        show("compatible", () -> client.testCompatibility("orders-value", new AvroSchema(OTHER)));
        show("reasons", () -> client.testCompatibilityVerbose("orders-value", new AvroSchema(OTHER)).size() > 0);
        show("level", () -> client.getCompatibility(null));
        show("new level", () -> client.updateCompatibility("orders-value", "FULL"));
        show("mode", client::getMode);
        show("new mode", () -> client.setMode("READONLY", "orders-value"));
        show("read-only", () -> client.register("orders-value", new AvroSchema(OTHER)));
        show("old mode", () -> {
            client.deleteMode("orders-value");
            return client.getMode("orders-value");
        });
        show("import", () -> {
            client.setMode("IMPORT", "imported");
            return client.register("imported", new AvroSchema(OTHER), 5, 5000);
        });
        show("customer", () -> {
            client.register("order", new AvroSchema(ORDER));
            List<SchemaReference> references = List.of(new SchemaReference("shop.Order", "order", -1));
            return client.register("customer", client.parseSchema("AVRO", CUSTOMER, references).get());
        });
        show("references", () -> client.getLatestSchemaMetadata("customer").getReferences());
        show("referenced", () -> client.deleteSubject("order"));
        show("deleted", () -> client.deleteSubject("customer"));
        show("deleted for good", () -> client.deleteSubject("customer", true));
        show("deleted version", () -> client.deleteSchemaVersion("orders-value", "1"));
        show("types", () -> new RestService(address).getSchemaTypes());
    }

    static void useMetadata() throws Exception {
        CachedSchemaRegistryClient client = client();
        client.register("rated", new AvroSchema(ORDER).copy(new Metadata(null, Map.of("major", "1"), null), null));
        client.register("rated", new AvroSchema(WITH_NOTE).copy(new Metadata(null, Map.of("major", "2"), null), null));
        show("with metadata", () -> client.getLatestWithMetadata("rated", Map.of("major", "1"), true).getVersion());
        show("without it", () -> client.getLatestWithMetadata("rated", Map.of("major", "3"), true));
    }

    static CachedSchemaRegistryClient client() {
        return new CachedSchemaRegistryClient(List.of(address), 100, List.of(new AvroSchemaProvider()), Map.of(), null);
    }

    static byte[] write(Map<String, Object> settings, String topic, Object value) {
        KafkaAvroSerializer serializer = new KafkaAvroSerializer();
        serializer.configure(withAddress(settings), false);
        return serializer.serialize(topic, value);
    }

    static Object read(byte[] bytes) {
        KafkaAvroDeserializer deserializer = new KafkaAvroDeserializer();
        deserializer.configure(withAddress(Map.of()), false);
        return deserializer.deserialize("orders", bytes);
    }

    static Map<String, Object> withAddress(Map<String, Object> settings) {
        Map<String, Object> all = new HashMap<>(settings);
        all.put("schema.registry.url", address);
        return all;
    }

    static int id(byte[] bytes) {
        return ByteBuffer.wrap(bytes).getInt(1);
    }

    static Schema parse(String text) {
        return new Schema.Parser().parse(text);
    }

    static String record(String name, String fields) {
        return "{\"type\":\"record\",\"name\":\"" + name + "\",\"namespace\":\"shop\",\"fields\":[" + fields + "]}";
    }

    static void show(String name, Call call) {
        Object result;
        try {
            result = call.result();
        } catch (Exception error) {
            Throwable cause = error;
            while (!(cause instanceof RestClientException) && cause.getCause() != null) {
                cause = cause.getCause();
            }
            result = cause instanceof RestClientException refusal
                ? "refused " + refusal.getStatus() + " " + refusal.getErrorCode()
                : cause.getClass().getName() + " " + cause.getMessage();
        }
        OUT.println(name + ": " + result);
    }
}
