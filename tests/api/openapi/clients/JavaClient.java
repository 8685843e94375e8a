import java.io.File;
import java.net.URI;
import java.nio.file.Files;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.JSON;
import org.openapitools.client.api.SchemagroupsApi;
import org.openapitools.client.api.SubscriptionsApi;
import org.openapitools.client.model.OwnProblem;
import org.openapitools.client.model.Problem;
import org.openapitools.client.model.Schemagroup;
import org.openapitools.client.model.SchemagroupInput;
import org.openapitools.client.model.SchemagroupSchema;
import org.openapitools.client.model.SubscriptionSettings;

/** A user of the client that openapi-generator generates for Java: `JavaClient <url>`. */
public class JavaClient {
    public static void main(String[] arguments) throws Exception {
        ApiClient client = new ApiClient().setBasePath(arguments[0]);
        System.out.println(JSON.getGson().toJson(seen(new SchemagroupsApi(client), new SubscriptionsApi(client))));
        client.getHttpClient().connectionPool().evictAll();
        client.getHttpClient().dispatcher().executorService().shutdown();
    }

    private static Map<String, Object> seen(SchemagroupsApi api, SubscriptionsApi subscriptions) throws Exception {
        Map<String, Object> seen = new LinkedHashMap<>();
        Schemagroup created = api.putSchemagroup("g", new SchemagroupInput().name("Orders")).execute();
        seen.put("created", List.of(
                created.getXid(), created.getEpoch(), created.getName(), created.getCreatedat().getYear() > 2000));

        File document = File.createTempFile("document", ".json");
        Files.writeString(document.toPath(), "{\"type\": \"string\"}");
        seen.put("document written", api.putSchemagroupSchemaDocument("g", "s")
                .xRegistryFormat("JsonSchema/draft-07").body(document).executeWithHttpInfo().getStatusCode());
        File read = api.getSchemagroupSchemaDocument("g", "s").execute();
        seen.put("document", Files.readString(read.toPath()));
        SchemagroupSchema schema = api.getSchemagroupSchema("g", "s").execute();
        seen.put("schema", List.of(schema.getSchemaid(), schema.getVersionid(), schema.getFormat()));
        Map<String, SchemagroupSchema> listed = api.listSchemagroupSchemas("g").execute();
        seen.put("listed", List.copyOf(listed.keySet()));

        SchemagroupInput stale = new SchemagroupInput().epoch(9);
        Problem refused = problem(() -> api.putSchemagroup("g", stale).execute(), Problem.class);
        seen.put("refused", List.of(name(refused.getType()), refused.getSubject(), refused.getArgs().get("bad_epoch")));
        OwnProblem below = problem(() -> subscriptions.createSubscription().subscriptionSettings(settings()).execute(),
                OwnProblem.class);
        seen.put("refused below /-/", List.of(name(below.getType()), below.getStatus()));

        seen.put("deleted", api.deleteSchemagroup("g").executeWithHttpInfo().getStatusCode());
        seen.put("missing", name(problem(() -> api.getSchemagroupSchema("g", "s").execute(), Problem.class).getType()));
        return seen;
    }

    private static SubscriptionSettings settings() {
        return new SubscriptionSettings().sink(URI.create("https://sink.example"))
                .protocol(SubscriptionSettings.ProtocolEnum.HTTP).types(List.of());
    }

    /** A request that is refused. */
    private interface Call {
        void run() throws ApiException;
    }

    private static <T> T problem(Call call, Class<T> type) {
        try {
            call.run();
        } catch (ApiException refusal) {
            return JSON.getGson().fromJson(refusal.getResponseBody(), type);
        }
        throw new AssertionError("the request was not refused");
    }

    private static String name(URI type) {
        return type.getFragment();
    }
}
