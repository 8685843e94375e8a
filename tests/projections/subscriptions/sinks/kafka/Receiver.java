import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.cloudevents.CloudEvent;
import io.cloudevents.jackson.JsonFormat;
import io.cloudevents.kafka.CloudEventDeserializer;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;

/** Kafka's own consumer with the CloudEvents SDK for Java: answers what it takes from a topic, one line each. */
public class Receiver {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] none) throws Exception {
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (String line; (line = in.readLine()) != null; ) {
            JsonNode asked = JSON.readTree(line);
            out.println(taken(asked.get("server").asText(), asked.get("topic").asText(), asked.get("count").asInt()));
        }
    }

    private static ArrayNode taken(String server, String topic, int count) {
        ArrayNode found = JSON.createArrayNode();
        var config = Map.<String, Object>of("bootstrap.servers", server, "auto.offset.reset", "earliest");
        try (var consumer = new KafkaConsumer<>(config, new StringDeserializer(), new CloudEventDeserializer())) {
            consumer.assign(List.of(new TopicPartition(topic, 0)));
            long ends = System.nanoTime() + 20_000_000_000L;
            while (found.size() < count && System.nanoTime() < ends) {
                for (var record : consumer.poll(Duration.ofMillis(500))) found.add(told(record));
            }
        }
        return found;
    }

    private static ObjectNode told(ConsumerRecord<String, CloudEvent> record) {
        CloudEvent event = record.value();
        ObjectNode told = JSON.createObjectNode().put("key", record.key());
        var type = record.headers().lastHeader("content-type");
        told.put("structured", new String(type.value(), StandardCharsets.UTF_8).startsWith(JsonFormat.CONTENT_TYPE));
        ObjectNode attributes = told.putObject("attributes");
        for (String name : event.getAttributeNames()) attributes.put(name, String.valueOf(event.getAttribute(name)));
        for (String name : event.getExtensionNames()) attributes.put(name, String.valueOf(event.getExtension(name)));
        if (event.getData() != null) told.put("data", Base64.getEncoder().encodeToString(event.getData().toBytes()));
        return told;
    }
}
