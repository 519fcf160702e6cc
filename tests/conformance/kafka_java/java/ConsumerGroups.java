import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.function.BooleanSupplier;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.ListGroupsOptions;
import org.apache.kafka.clients.admin.MemberToRemove;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.GroupNotEmptyException;

/** Groups of the consumer protocol (KIP-848), as the Java client has them since 4.0. */
final class ConsumerGroups {
    private static final String COMMITTED = "read_committed";
    private static final int PARTITIONS = 6;
    private static final int RECORDS = 60;

    private ConsumerGroups() {}

    private static KafkaConsumer<String, String> member(Scenario s, Map<String, Object> more) {
        Map<String, Object> settings = new HashMap<>(Map.of("group.protocol", "consumer"));
        settings.putAll(more);
        return s.consumer("g", COMMITTED, settings);
    }

    private static KafkaConsumer<String, String> member(Scenario s, String topic) {
        KafkaConsumer<String, String> member = member(s, Map.of());
        member.subscribe(List.of(topic));
        return member;
    }

    /** Poll all members in turn until something is so; what they read is committed, and added to `read`. */
    private static void until(List<KafkaConsumer<String, String>> members, List<String> read, BooleanSupplier so) {
        long deadline = System.currentTimeMillis() + Scenario.TIMEOUT_MS;
        while (!so.getAsBoolean()) {
            for (KafkaConsumer<String, String> member : members) {
                for (ConsumerRecord<String, String> one : member.poll(Duration.ofMillis(50))) {
                    read.add(one.value());
                }
                member.commitAsync();
            }
            List<Set<TopicPartition>> had = members.stream().map(KafkaConsumer::assignment).toList();
            Scenario.check(System.currentTimeMillis() < deadline, "read " + read.size() + ", had " + had);
        }
    }

    private static boolean sharedOut(List<KafkaConsumer<String, String>> members, int partitions) {
        Set<TopicPartition> all = new HashSet<>();
        int most = 0;
        int least = partitions;
        int sum = 0;
        for (KafkaConsumer<String, String> member : members) {
            int size = member.assignment().size();
            most = Math.max(most, size);
            least = Math.min(least, size);
            sum += size;
            all.addAll(member.assignment());
        }
        return sum == partitions && all.size() == partitions && most - least <= 1;
    }

    private static void fill(Scenario s, String topic, String stem) throws Exception {
        try (KafkaProducer<String, String> producer = s.producer(Map.of())) {
            for (int n = 0; n < RECORDS; n++) {
                producer.send(new ProducerRecord<>(topic, n % PARTITIONS, null, stem + n));
            }
            producer.flush();
        }
    }

    static void members(Scenario s) throws Exception {
        String topic = s.topic("t", PARTITIONS);
        List<String> read = new ArrayList<>();
        List<KafkaConsumer<String, String>> members = new ArrayList<>();
        for (int n = 0; n < 3; n++) {
            members.add(member(s, topic));
            until(members, read, () -> sharedOut(members, PARTITIONS));
        }
        fill(s, topic, "v");
        until(members, read, () -> read.size() >= RECORDS);
        members.remove(1).close();
        until(members, read, () -> sharedOut(members, PARTITIONS));
        fill(s, topic, "w");
        until(members, read, () -> read.size() >= 2 * RECORDS);
        Scenario.same(new TreeSet<>(read).size(), 2 * RECORDS);
        members.forEach(KafkaConsumer::close);
    }

    static void staticMembers(Scenario s) throws Exception {
        String topic = s.topic("t", PARTITIONS);
        List<String> read = new ArrayList<>();
        KafkaConsumer<String, String> stays = member(s, Map.of("group.instance.id", "stays"));
        KafkaConsumer<String, String> restarts = member(s, Map.of("group.instance.id", "restarts"));
        List<KafkaConsumer<String, String>> both = List.of(stays, restarts);
        both.forEach(one -> one.subscribe(List.of(topic)));
        until(both, read, () -> sharedOut(both, PARTITIONS));
        Set<TopicPartition> share = restarts.assignment();
        restarts.close();
        KafkaConsumer<String, String> again = member(s, Map.of("group.instance.id", "restarts"));
        again.subscribe(List.of(topic));
        until(List.of(stays, again), read, () -> again.assignment().equals(share));
        again.close();
        s.admin.removeMembersFromConsumerGroup(s.name("g"), new RemoveMembersFromConsumerGroupOptions(
                List.of(new MemberToRemove("restarts")))).all().get();
        until(List.of(stays), read, () -> sharedOut(List.of(stays), PARTITIONS));
        stays.close();
    }

    static void patterns(Scenario s) throws Exception {
        String first = s.topic("p-one", 1);
        KafkaConsumer<String, String> member = member(s, Map.of());
        member.subscribe(new SubscriptionPattern(s.name("p-") + "(one|two)"));
        List<String> read = new ArrayList<>();
        until(List.of(member), read, () -> member.assignment().size() == 1);
        s.topic("p-three", 1);
        String second = s.topic("p-two", 1);
        until(List.of(member), read, () -> member.assignment().size() == 2);
        Scenario.same(member.assignment(), Set.of(new TopicPartition(first, 0), new TopicPartition(second, 0)));
        member.close();
    }

    static void resume(Scenario s) throws Exception {
        String topic = s.topic("t", PARTITIONS);
        fill(s, topic, "v");
        List<String> read = new ArrayList<>();
        for (String protocol : List.of("consumer", "classic", "consumer")) {
            KafkaConsumer<String, String> member = member(s, Map.of("group.protocol", protocol, "max.poll.records", 10));
            member.subscribe(List.of(topic));
            int before = read.size();
            until(List.of(member), read, () -> read.size() >= before + 20);
            member.commitSync();
            member.close();
        }
        Scenario.same(new TreeSet<>(read).size(), read.size());
    }

    static void transactionalOffsets(Scenario s) throws Exception {
        String topic = s.topic("t", 1);
        try (KafkaProducer<String, String> producer = s.opened("p", Map.of());
                KafkaConsumer<String, String> member = member(s, topic)) {
            until(List.of(member), new ArrayList<>(), () -> member.assignment().size() == 1);
            TopicPartition place = new TopicPartition(topic, 0);
            producer.beginTransaction();
            producer.sendOffsetsToTransaction(Map.of(place, new OffsetAndMetadata(5)), member.groupMetadata());
            producer.commitTransaction();
            Scenario.same(member.committed(Set.of(place)).get(place).offset(), 5L);
        }
    }

    private static ConsumerGroupDescription described(Scenario s) throws Exception {
        return s.admin.describeConsumerGroups(List.of(s.name("g"))).all().get().get(s.name("g"));
    }

    static void groupAdmin(Scenario s) throws Exception {
        String topic = s.topic("t", PARTITIONS);
        KafkaConsumer<String, String> member = member(s, Map.of("group.remote.assignor", "range"));
        member.subscribe(List.of(topic));
        until(List.of(member), new ArrayList<>(), () -> sharedOut(List.of(member), PARTITIONS));
        ConsumerGroupDescription found = described(s);
        Scenario.same(found.type(), GroupType.CONSUMER);
        Scenario.same(found.groupState(), GroupState.STABLE);
        Scenario.same(found.partitionAssignor(), "range");
        Scenario.same(found.members().iterator().next().assignment().topicPartitions(), member.assignment());
        Scenario.same(found.members().iterator().next().upgraded().get(), true);
        ListGroupsOptions consumers = new ListGroupsOptions().withTypes(Set.of(GroupType.CONSUMER));
        List<String> listed = s.admin.listGroups(consumers).all().get().stream().map(GroupListing::groupId).toList();
        Scenario.check(listed.contains(s.name("g")), "listed " + listed);
        try {
            s.admin.deleteConsumerGroups(List.of(s.name("g"))).all().get();
            Scenario.check(false, "a group with members was deleted");
        } catch (ExecutionException refused) {
            Scenario.check(refused.getCause() instanceof GroupNotEmptyException, refused.toString());
        }
        ConfigResource resource = new ConfigResource(ConfigResource.Type.GROUP, s.name("g"));
        ConfigEntry interval = new ConfigEntry("consumer.heartbeat.interval.ms", "300");
        s.admin.incrementalAlterConfigs(
                Map.of(resource, List.of(new AlterConfigOp(interval, AlterConfigOp.OpType.SET)))).all().get();
        ConfigEntry told = s.admin.describeConfigs(List.of(resource)).all().get().get(resource).get(interval.name());
        Scenario.same(told.value(), "300");
        Scenario.same(told.source(), ConfigEntry.ConfigSource.DYNAMIC_GROUP_CONFIG);
        // A group without members and offsets goes at once.
        member.commitSync(Map.of(new TopicPartition(topic, 0), new OffsetAndMetadata(0)));
        member.close();
        Scenario.same(described(s).groupState(), GroupState.EMPTY);
        s.admin.deleteConsumerGroups(List.of(s.name("g"))).all().get();
    }

    static void migration(Scenario s) throws Exception {
        String topic = s.topic("t", PARTITIONS);
        List<String> read = new ArrayList<>();
        List<KafkaConsumer<String, String>> members = new ArrayList<>();
        for (int n = 0; n < 2; n++) {
            members.add(s.consumer("g", COMMITTED, Map.of("heartbeat.interval.ms", 200)));
            members.get(n).subscribe(List.of(topic));
        }
        until(members, read, () -> sharedOut(members, PARTITIONS));
        members.add(member(s, topic));
        until(members, read, () -> sharedOut(members, PARTITIONS));
        Scenario.same(described(s).type(), GroupType.CONSUMER);
        fill(s, topic, "v");
        until(members, read, () -> new TreeSet<>(read).size() == RECORDS);
        members.remove(0).close();
        until(members, read, () -> sharedOut(members, PARTITIONS));
        members.remove(1).close();
        until(members, read, () -> sharedOut(members, PARTITIONS));
        Scenario.same(described(s).type(), GroupType.CLASSIC);
        members.get(0).close();
    }

    /** Reads on while the server is killed and started again; says "ready" first, and is told by nobody to stop. */
    static void throughRestarts(Scenario s) throws Exception {
        String topic = s.topic("t", PARTITIONS);
        List<String> read = new ArrayList<>();
        List<TopicPartition> taken = new ArrayList<>();
        List<KafkaConsumer<String, String>> members = List.of(member(s, Map.of()), member(s, Map.of()));
        members.forEach(member -> member.subscribe(List.of(topic), noting(taken)));
        until(members, read, () -> sharedOut(members, PARTITIONS));
        taken.clear();
        System.out.println("ready");
        try (KafkaProducer<String, String> producer = s.producer(Map.of("enable.idempotence", true))) {
            for (int round = 0; round < 5; round++) {
                for (int n = 0; n < RECORDS; n++) {
                    producer.send(new ProducerRecord<>(topic, n % PARTITIONS, null, round + "-" + n));
                }
                producer.flush();
                int wanted = (round + 1) * RECORDS;
                until(members, read, () -> new TreeSet<>(read).size() == wanted);
            }
        }
        until(members, read, () -> sharedOut(members, PARTITIONS));
        Scenario.check(taken.isEmpty(), "the restarts took " + taken + " from members");
        Scenario.check(read.size() == new TreeSet<>(read).size(), "some records were read twice");
        members.forEach(KafkaConsumer::close);
    }

    /** Notes the partitions that are taken from members, or lost by them. */
    private static ConsumerRebalanceListener noting(List<TopicPartition> taken) {
        return new ConsumerRebalanceListener() {
            @Override
            public void onPartitionsAssigned(Collection<TopicPartition> partitions) {}

            @Override
            public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
                taken.addAll(partitions);
            }
        };
    }
}
