import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.activemq.artemis.api.core.RoutingType;
import org.apache.activemq.artemis.api.core.SimpleString;
import org.apache.activemq.artemis.core.config.Configuration;
import org.apache.activemq.artemis.core.config.impl.ConfigurationImpl;
import org.apache.activemq.artemis.core.config.impl.SecurityConfiguration;
import org.apache.activemq.artemis.core.security.Role;
import org.apache.activemq.artemis.core.server.JournalType;
import org.apache.activemq.artemis.core.server.embedded.EmbeddedActiveMQ;
import org.apache.activemq.artemis.core.settings.impl.AddressFullMessagePolicy;
import org.apache.activemq.artemis.core.settings.impl.AddressSettings;
import org.apache.activemq.artemis.spi.core.security.ActiveMQJAASSecurityManager;
import org.apache.activemq.artemis.spi.core.security.jaas.InVMLoginModule;

/** A broker that runs until its input ends. Arguments: folder, port, port with TLS, user, password, key store. */
public class Artemis {
    public static void main(String[] given) throws Exception {
        String folder = given[0], user = given[3], password = given[4];
        Configuration wanted = new ConfigurationImpl();
        wanted.setBrokerInstance(new java.io.File(folder));
        wanted.setJournalDirectory(folder + "/journal")
                .setBindingsDirectory(folder + "/bindings")
                .setLargeMessagesDirectory(folder + "/large")
                .setPagingDirectory(folder + "/paging")
                .setJournalType(JournalType.NIO)
                .setJournalFileSize(1 << 20)
                .setJournalMinFiles(2)
                .setMaxDiskUsage(-1)
                .addAcceptorConfiguration("plain", "tcp://127.0.0.1:" + given[1] + "?protocols=AMQP")
                .addAcceptorConfiguration(
                        "tls",
                        "tcp://127.0.0.1:" + given[2] + "?protocols=AMQP;sslEnabled=true;keyStoreType=PKCS12;keyStorePath="
                                + given[5] + ";keyStorePassword=changeit");
        wanted.putSecurityRoles("#", Set.of(role(true)));
        wanted.putSecurityRoles("forbidden.#", Set.of(role(false)));
        wanted.addAddressSetting("#", settings(true));
        wanted.addAddressSetting("known.#", settings(false));
        wanted.addAddressSetting(
                "full.#", settings(true).setMaxSizeBytes(1).setAddressFullMessagePolicy(AddressFullMessagePolicy.FAIL));

        SecurityConfiguration users = new SecurityConfiguration(Map.of(user, password), Map.of(user, List.of("all")));
        EmbeddedActiveMQ broker = new EmbeddedActiveMQ();
        broker.setConfiguration(wanted);
        broker.setSecurityManager(new ActiveMQJAASSecurityManager(InVMLoginModule.class.getName(), users));
        broker.start();
        System.out.println("started");
        while (System.in.read() >= 0) {}
        Runtime.getRuntime().halt(0);
    }

    private static Role role(boolean sends) {
        return new Role("all", sends, true, true, true, true, true, false, true, true, true, false, false);
    }

    private static AddressSettings settings(boolean creates) {
        return new AddressSettings()
                .setAutoCreateAddresses(creates)
                .setAutoCreateQueues(creates)
                .setAutoDeleteQueues(false)
                .setAutoDeleteAddresses(false)
                .setDefaultAddressRoutingType(RoutingType.ANYCAST)
                .setDefaultQueueRoutingType(RoutingType.ANYCAST)
                .setDeadLetterAddress(SimpleString.of("dead"));
    }
}
