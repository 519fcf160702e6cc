// Drives Apache Pulsar's own Java admin client through a server, and ends with 0 if every answer is what that client expects.
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import org.apache.pulsar.client.admin.LongRunningProcessStatus;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.client.admin.PulsarAdminException;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.common.policies.data.AutoTopicCreationOverride;
import org.apache.pulsar.common.policies.data.BacklogQuota;
import org.apache.pulsar.common.policies.data.RetentionPolicies;
import org.apache.pulsar.common.policies.data.SchemaCompatibilityStrategy;
import org.apache.pulsar.common.policies.data.TenantInfo;
import org.apache.pulsar.common.protocol.schema.PostSchemaPayload;
import org.apache.pulsar.common.schema.SchemaType;

public class Admin {
    static final String RECORD = "{\"type\":\"record\",\"name\":\"User\",\"fields\":[{\"name\":\"a\",\"type\":\"int\"}%s]}";

    static void same(Object wanted, Object got) {
        if (!wanted.equals(got)) {
            throw new AssertionError("wanted " + wanted + ", got " + got);
        }
    }

    static void refused(Class<? extends PulsarAdminException> kind, Callable<?> call) throws Exception {
        try {
            call.call();
        } catch (PulsarAdminException error) {
            same(kind.getSimpleName(), error.getClass().getSimpleName());
            return;
        }
        throw new AssertionError("it was not refused with " + kind.getSimpleName());
    }

    public static void main(String[] args) throws Exception {
        try (PulsarAdmin admin = PulsarAdmin.builder().serviceHttpUrl("http://" + args[0]).build()) {
            tenants(admin);
            policies(admin);
            topics(admin);
            subscriptions(admin);
            schemas(admin);
            leave(admin);
        }
    }

    static void tenants(PulsarAdmin admin) throws Exception {
        same(List.of("standalone"), admin.clusters().getClusters());
        admin.brokers().healthcheck();
        TenantInfo info = TenantInfo.builder().adminRoles(Set.of("ada")).allowedClusters(Set.of("standalone")).build();
        admin.tenants().createTenant("jacme", info);
        same(true, admin.tenants().getTenants().contains("jacme"));
        same(info, admin.tenants().getTenantInfo("jacme"));
        refused(PulsarAdminException.ConflictException.class, () -> {
            admin.tenants().createTenant("jacme", info);
            return null;
        });
        refused(PulsarAdminException.NotFoundException.class, () -> admin.tenants().getTenantInfo("nobody"));
        admin.namespaces().createNamespace("jacme/sales");
        same(List.of("jacme/sales"), admin.namespaces().getNamespaces("jacme"));
    }

    static void policies(PulsarAdmin admin) throws Exception {
        String space = "jacme/sales";
        same(false, admin.namespaces().getRetention(space) != null);
        admin.namespaces().setRetention(space, new RetentionPolicies(60, 100));
        same(60, admin.namespaces().getRetention(space).getRetentionTimeInMinutes());
        admin.namespaces().removeRetention(space);
        admin.namespaces().setNamespaceMessageTTL(space, 100);
        same(100, admin.namespaces().getNamespaceMessageTTL(space));
        admin.namespaces().removeNamespaceMessageTTL(space);
        admin.namespaces().setDeduplicationStatus(space, true);
        same(true, admin.namespaces().getDeduplicationStatus(space));
        admin.namespaces().setSchemaCompatibilityStrategy(space, SchemaCompatibilityStrategy.BACKWARD);
        same(SchemaCompatibilityStrategy.BACKWARD, admin.namespaces().getSchemaCompatibilityStrategy(space));
        admin.namespaces().setIsAllowAutoUpdateSchema(space, true);
        same(true, admin.namespaces().getIsAllowAutoUpdateSchema(space));
        admin.namespaces().setSchemaValidationEnforced(space, false);
        same(false, admin.namespaces().getSchemaValidationEnforced(space));
        admin.namespaces().setMaxProducersPerTopic(space, 7);
        same(7, admin.namespaces().getMaxProducersPerTopic(space));
        AutoTopicCreationOverride rule = AutoTopicCreationOverride.builder()
            .allowAutoTopicCreation(true).topicType("partitioned").defaultNumPartitions(3).build();
        admin.namespaces().setAutoTopicCreation(space, rule);
        same(rule, admin.namespaces().getAutoTopicCreation(space));
        admin.namespaces().removeAutoTopicCreation(space);
        BacklogQuota quota = BacklogQuota.builder().limitSize(1000)
            .retentionPolicy(BacklogQuota.RetentionPolicy.producer_exception).build();
        admin.namespaces().setBacklogQuota(space, quota);
        same(1000L, admin.namespaces().getBacklogQuotaMap(space)
            .get(BacklogQuota.BacklogQuotaType.destination_storage).getLimitSize());
        admin.namespaces().removeBacklogQuota(space);
        same(7, admin.namespaces().getPolicies(space).max_producers_per_topic);
    }

    static void topics(PulsarAdmin admin) throws Exception {
        String plain = "persistent://jacme/sales/plain", parts = "persistent://jacme/sales/parts";
        admin.topics().createNonPartitionedTopic(plain);
        refused(PulsarAdminException.ConflictException.class, () -> {
            admin.topics().createNonPartitionedTopic(plain);
            return null;
        });
        admin.topics().createPartitionedTopic(parts, 2);
        admin.topics().updatePartitionedTopic(parts, 3);
        same(3, admin.topics().getPartitionedTopicMetadata(parts).partitions);
        same(List.of(parts), admin.topics().getPartitionedTopicList("jacme/sales"));
        same(4, admin.topics().getList("jacme/sales").size());
        same(4, admin.namespaces().getTopics("jacme/sales").size());
        same(0L, admin.topics().getStats(plain).getMsgInCounter());
        same(3, admin.topics().getPartitionedStats(parts, true).getPartitions().size());
        same(0L, admin.topics().getInternalStats(plain).numberOfEntries);
        same(true, admin.lookups().lookupTopic(plain).startsWith("pulsar://"));
        same(3, admin.lookups().lookupPartitionedTopic(parts).size());
        same(true, admin.topics().getLastMessageId(plain) != null);
        admin.topics().unload(plain);
        refused(PulsarAdminException.NotFoundException.class, () -> admin.topics().getStats(plain + "x"));
        same(true, admin.topics().terminateTopic(plain) != null);
        try {
            same(LongRunningProcessStatus.Status.NOT_RUN, admin.topics().compactionStatus(parts).status);
        } catch (PulsarAdminException error) {
            same(501, error.getStatusCode());
        }
    }

    static void subscriptions(PulsarAdmin admin) throws Exception {
        String plain = "persistent://jacme/sales/plain", parts = "persistent://jacme/sales/parts";
        admin.topics().createSubscription(plain, "s", MessageId.earliest);
        admin.topics().createSubscription(parts, "s", MessageId.latest);
        same(List.of("s"), admin.topics().getSubscriptions(plain));
        same(List.of("s"), admin.topics().getSubscriptions(parts));
        refused(PulsarAdminException.ConflictException.class, () -> {
            admin.topics().createSubscription(plain, "s", MessageId.latest);
            return null;
        });
        same(0L, admin.topics().getStats(plain).getSubscriptions().get("s").getMsgBacklog());
        admin.topics().resetCursor(plain, "s", 1000);
        admin.topics().resetCursor(plain, "s", MessageId.earliest);
        admin.topics().skipMessages(plain, "s", 1);
        admin.topics().skipAllMessages(parts, "s");
        admin.topics().expireMessages(plain, "s", 5);
        admin.topics().expireMessagesForAllSubscriptions(parts, 5);
        admin.topics().deleteSubscription(plain, "s");
        admin.topics().deleteSubscription(parts, "s");
        same(List.of(), admin.topics().getSubscriptions(parts));
    }

    static void schemas(PulsarAdmin admin) throws Exception {
        String parts = "persistent://jacme/sales/parts";
        refused(PulsarAdminException.NotFoundException.class, () -> admin.schemas().getSchemaInfo(parts));
        String grown = String.format(RECORD, ",{\"name\":\"b\",\"type\":\"int\",\"default\":0}");
        PostSchemaPayload first = new PostSchemaPayload("AVRO", String.format(RECORD, ""), Map.of("by", "ada"));
        PostSchemaPayload second = new PostSchemaPayload("AVRO", grown, Map.of());
        PostSchemaPayload wrong = new PostSchemaPayload("STRING", "", Map.of());
        admin.schemas().createSchema(parts, first);
        same(true, admin.schemas().testCompatibility(parts, second).isCompatibility());
        same(false, admin.schemas().testCompatibility(parts, wrong).isCompatibility());
        admin.schemas().createSchema(parts, second);
        refused(PulsarAdminException.ConflictException.class, () -> {
            admin.schemas().createSchema(parts, wrong);
            return null;
        });
        same(SchemaType.AVRO, admin.schemas().getSchemaInfo(parts).getType());
        same("ada", admin.schemas().getSchemaInfo(parts, 0).getProperties().get("by"));
        same(1L, admin.schemas().getSchemaInfoWithVersion(parts).getVersion());
        same(2, admin.schemas().getAllSchemas(parts).size());
        same(1L, admin.schemas().getVersionBySchema(parts, second));
        admin.schemas().deleteSchema(parts);
        refused(PulsarAdminException.NotFoundException.class, () -> admin.schemas().getSchemaInfo(parts));
    }

    static void leave(PulsarAdmin admin) throws Exception {
        refused(PulsarAdminException.ConflictException.class, () -> {
            admin.namespaces().deleteNamespace("jacme/sales");
            return null;
        });
        admin.topics().delete("persistent://jacme/sales/plain");
        admin.topics().deletePartitionedTopic("persistent://jacme/sales/parts");
        admin.namespaces().deleteNamespace("jacme/sales");
        admin.tenants().deleteTenant("jacme");
    }
}
