import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.DescribeClusterOptions;
import org.apache.kafka.clients.admin.DescribeTopicsOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.acl.AccessControlEntry;
import org.apache.kafka.common.acl.AccessControlEntryFilter;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.acl.AclPermissionType;
import org.apache.kafka.common.errors.ClusterAuthorizationException;
import org.apache.kafka.common.errors.GroupAuthorizationException;
import org.apache.kafka.common.errors.InvalidRequestException;
import org.apache.kafka.common.errors.TopicAuthorizationException;
import org.apache.kafka.common.errors.TransactionalIdAuthorizationException;
import org.apache.kafka.common.resource.PatternType;
import org.apache.kafka.common.resource.ResourcePattern;
import org.apache.kafka.common.resource.ResourcePatternFilter;
import org.apache.kafka.common.resource.ResourceType;

/** ACLs: root makes them, and ada may do what they say. */
final class Acls {
    private Acls() {}

    static void acls(Scenario s) throws Exception {
        String topic = s.name("t");
        Map<String, Object> ada = user("ada");
        try (Admin root = s.admin(user("root")); Admin hers = s.admin(ada)) {
            root.createTopics(List.of(new NewTopic(topic, 1, (short) 1))).all().get();
            refused(TopicAuthorizationException.class, () -> describe(hers, topic));
            refused(ClusterAuthorizationException.class, () -> hers.describeAcls(AclBindingFilter.ANY).values().get());
            producing(s, root, ada, topic);
            transacting(s, root, ada, topic);
            consuming(s, root, ada, topic);
            Scenario.same(describe(hers, topic), Set.of(AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE));
            DescribeClusterOptions withOperations = new DescribeClusterOptions().includeAuthorizedOperations(true);
            Scenario.same(hers.describeCluster(withOperations).authorizedOperations().get(), Set.of());
            administering(root, topic);
            refused(TopicAuthorizationException.class, () -> describe(hers, topic));
        }
    }

    private static void producing(Scenario s, Admin root, Map<String, Object> ada, String topic) throws Exception {
        try (KafkaProducer<String, String> producer = s.producer(with(ada, "enable.idempotence", false))) {
            refused(TopicAuthorizationException.class, () -> send(producer, topic));
        }
        allow(root, ResourceType.TOPIC, topic, AclOperation.WRITE);
        try (KafkaProducer<String, String> producer = s.producer(ada)) {
            Scenario.send(producer, topic, "a");
        }
    }

    private static void transacting(Scenario s, Admin root, Map<String, Object> ada, String topic) throws Exception {
        Map<String, Object> settings = with(ada, "transactional.id", s.name("p"));
        try (KafkaProducer<String, String> producer = s.producer(settings)) {
            refused(TransactionalIdAuthorizationException.class, () -> {
                producer.initTransactions();
                return null;
            });
        }
        allow(root, ResourceType.TRANSACTIONAL_ID, s.name("p"), AclOperation.WRITE);
        try (KafkaProducer<String, String> producer = s.producer(settings)) {
            producer.initTransactions();
            producer.beginTransaction();
            Scenario.send(producer, topic, "b");
            producer.commitTransaction();
        }
    }

    private static void consuming(Scenario s, Admin root, Map<String, Object> ada, String topic) throws Exception {
        allow(root, ResourceType.TOPIC, topic, AclOperation.READ);
        try (KafkaConsumer<String, String> consumer = s.consumer("g", "read_committed", ada)) {
            consumer.subscribe(List.of(topic));
            refused(GroupAuthorizationException.class, () -> consumer.poll(Duration.ofMillis(Scenario.TIMEOUT_MS)));
        }
        allow(root, ResourceType.GROUP, s.name("g"), AclOperation.READ);
        try (KafkaConsumer<String, String> consumer = s.consumer("g", "read_committed", ada)) {
            consumer.subscribe(List.of(topic));
            Scenario.same(Scenario.read(consumer, 2), List.of("a", "b"));
            consumer.commitSync();
        }
    }

    private static void administering(Admin root, String topic) throws Exception {
        AclBindingFilter ofTopic = new AclBindingFilter(
                new ResourcePatternFilter(ResourceType.TOPIC, topic, PatternType.MATCH), AccessControlEntryFilter.ANY);
        AclBinding all = binding(ResourceType.TOPIC, "*", PatternType.LITERAL, AclOperation.ALL, AclPermissionType.DENY);
        AclBinding user = binding(
                ResourceType.USER, "User:ada", PatternType.LITERAL, AclOperation.DESCRIBE_TOKENS, AclPermissionType.ALLOW);
        AclBinding wrong = binding(
                ResourceType.CLUSTER, "other", PatternType.LITERAL, AclOperation.ALTER, AclPermissionType.ALLOW);
        var created = root.createAcls(List.of(all, user, wrong)).values();
        created.get(all).get();
        created.get(user).get();
        refused(InvalidRequestException.class, () -> created.get(wrong).get());
        Scenario.same(root.describeAcls(ofTopic).values().get().size(), 3);
        Scenario.check(root.describeAcls(AclBindingFilter.ANY).values().get().contains(user), "the user's ACL is gone");
        Collection<AclBinding> deleted = root.deleteAcls(List.of(ofTopic)).all().get();
        Scenario.check(deleted.size() == 3 && deleted.contains(all), "deleted " + deleted);
        Scenario.same(root.describeAcls(ofTopic).values().get(), List.of());
    }

    private static Map<String, Object> user(String name) {
        return Map.of(
                "security.protocol", "SASL_PLAINTEXT",
                "sasl.mechanism", "PLAIN",
                "sasl.jaas.config",
                String.format(
                        "org.apache.kafka.common.security.plain.PlainLoginModule required"
                                + " username=\"%s\" password=\"%s-secret\";",
                        name, name));
    }

    private static Map<String, Object> with(Map<String, Object> settings, String name, Object value) {
        Map<String, Object> all = new HashMap<>(settings);
        all.put(name, value);
        return all;
    }

    private static void allow(Admin root, ResourceType type, String name, AclOperation operation) throws Exception {
        AclBinding binding = binding(type, name, PatternType.LITERAL, operation, AclPermissionType.ALLOW);
        root.createAcls(List.of(binding)).all().get();
    }

    private static AclBinding binding(
            ResourceType type, String name, PatternType pattern, AclOperation operation, AclPermissionType permission) {
        return new AclBinding(
                new ResourcePattern(type, name, pattern),
                new AccessControlEntry("User:ada", "*", operation, permission));
    }

    private static Set<AclOperation> describe(Admin admin, String topic) throws Exception {
        DescribeTopicsOptions options = new DescribeTopicsOptions().includeAuthorizedOperations(true);
        return admin.describeTopics(List.of(topic), options).allTopicNames().get().get(topic).authorizedOperations();
    }

    private static Object send(KafkaProducer<String, String> producer, String topic) throws Exception {
        Scenario.send(producer, topic, "refused");
        return null;
    }

    /** Checks that something is refused with an exception of a class. */
    private static void refused(Class<? extends Exception> expected, Callable<?> asked) throws Exception {
        Object found;
        try {
            found = asked.call();
        } catch (Exception error) {
            Throwable cause = error instanceof ExecutionException ? error.getCause() : error;
            Scenario.check(expected.isInstance(cause), "refused with " + cause + ", not " + expected);
            return;
        }
        throw new AssertionError("not refused with " + expected + " but answered " + found);
    }
}
