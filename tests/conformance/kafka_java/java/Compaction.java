import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.ListOffsetsResult;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/** Compacted topics, on a server that always looks for something to compact. */
final class Compaction {
    private static final int KEYS = 10;
    private static final int ROUNDS = 60;

    private Compaction() {}

    /** The latest of each key stays, tombstones go, and a transactional producer goes on. */
    static void compacted(Scenario scenario) throws Exception {
        String topic = scenario.name("compacted");
        Map<String, String> configs = Map.of(
                "cleanup.policy", "compact",
                "segment.bytes", "4000",
                "segment.ms", "200",
                "min.cleanable.dirty.ratio", "0.01",
                "delete.retention.ms", "500");
        NewTopic wanted = new NewTopic(topic, 1, (short) 1).configs(configs);
        scenario.admin.createTopics(List.of(wanted)).all().get();
        try (KafkaProducer<String, String> producer = scenario.opened("writer", Map.of("compression.type", "zstd"))) {
            for (int round = 0; round < ROUNDS; round++) {
                producer.beginTransaction();
                for (int key = 0; key < KEYS; key++) {
                    producer.send(new ProducerRecord<>(topic, 0, "key " + key, round + "." + key));
                }
                producer.flush(); // what an abort finds unsent is never sent
                if (round % 3 == 1) {
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                }
            }
            List<String> expected = new ArrayList<>();
            for (int key = 0; key < KEYS; key++) {
                expected.add((ROUNDS - 1) + "." + key);
            }
            eventually(scenario, topic, expected);
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(topic, 0, "key 3", null)).get();
            producer.commitTransaction();
            expected.remove(3);
            eventually(scenario, topic, expected);
        }
        TopicPartition place = new TopicPartition(topic, 0);
        ListOffsetsResult.ListOffsetsResultInfo end =
                scenario.admin.listOffsets(Map.of(place, OffsetSpec.latest())).partitionResult(place).get();
        Scenario.check(end.offset() == ROUNDS * KEYS + 1, "offsets stay what they were, and not " + end.offset());
    }

    private static void eventually(Scenario scenario, String topic, List<String> expected) throws Exception {
        long deadline = System.currentTimeMillis() + Scenario.TIMEOUT_MS;
        while (true) {
            List<String> found = scenario.all(topic, "read_committed");
            if (found.equals(expected) && scenario.all(topic, "read_uncommitted").equals(expected)) {
                return;
            }
            Scenario.check(System.currentTimeMillis() < deadline, "found " + found + ", expected " + expected);
            Thread.sleep(100);
        }
    }
}
