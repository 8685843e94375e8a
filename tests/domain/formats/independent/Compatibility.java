import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.apicurio.registry.content.TypedContent;
import io.apicurio.registry.rules.compatibility.CompatibilityChecker;
import io.apicurio.registry.rules.compatibility.CompatibilityExecutionResult;
import io.apicurio.registry.rules.compatibility.CompatibilityLevel;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * Answers lines {"format": "avro|json|protobuf", "mode": "backward|forward|full", "older": [text], "newer": text}
 * with lines {"compatible": boolean, "differences": [text]}, or {"error": text} where a document cannot be read.
 */
public class Compatibility {
    private static final String ROOM = "io.apicurio.registry.rules.compatibility.";
    private static final Map<String, String> CHECKERS = Map.of(
            "avro", ROOM + "AvroCompatibilityChecker",
            "json", ROOM + "JsonSchemaCompatibilityChecker",
            "protobuf", ROOM + "ProtobufCompatibilityChecker");
    private static final Map<String, String> CONTENT_TYPES = Map.of(
            "avro", "application/json", "json", "application/json", "protobuf", "application/x-protobuf");
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Map<String, CompatibilityChecker> made = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(new PrintStream(OutputStream.nullOutputStream()));  // libraries may print; answers stay alone
        BufferedReader questions = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = questions.readLine(); line != null; line = questions.readLine()) {
            answers.println(JSON.writeValueAsString(answer(JSON.readTree(line))));
        }
    }

    private static ObjectNode answer(JsonNode question) {
        ObjectNode answer = JSON.createObjectNode();
        try {
            String format = question.get("format").asText();
            List<TypedContent> older = new ArrayList<>();
            question.get("older").forEach(text -> older.add(content(format, text.asText())));
            CompatibilityExecutionResult result = checker(format).testCompatibility(
                    CompatibilityLevel.valueOf(question.get("mode").asText().toUpperCase(Locale.ROOT)),
                    older, content(format, question.get("newer").asText()), Map.of());
            answer.put("compatible", result.isCompatible());
            var differences = answer.putArray("differences");
            result.getIncompatibleDifferences().forEach(
                    one -> differences.add(one.asRuleViolation().getDescription() + " at " + one.asRuleViolation().getContext()));
        } catch (Exception | StackOverflowError | LinkageError failure) {
            answer.removeAll();
            answer.put("error", failure.getCause() == null ? failure.toString() : failure + ": " + failure.getCause());
        }
        return answer;
    }

    private static CompatibilityChecker checker(String format) throws ReflectiveOperationException {
        if (!made.containsKey(format)) {
            Class<?> type = Class.forName(CHECKERS.get(format));
            made.put(format, (CompatibilityChecker) type.getDeclaredConstructor().newInstance());
        }
        return made.get(format);
    }

    private static TypedContent content(String format, String text) {
        return TypedContent.create(text, CONTENT_TYPES.get(format));
    }
}
