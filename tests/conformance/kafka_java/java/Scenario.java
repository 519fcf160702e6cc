import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** What a scenario works with: clients of the server, topics of its own, and checks that say what they saw. */
final class Scenario implements AutoCloseable {
    static final long TIMEOUT_MS = 30_000;
    static final long QUIET_MS = 400;

    final Admin admin;
    private final String address;
    private final String stem;

    Scenario(String address, String stem) {
        this.address = address;
        this.stem = stem;
        admin = admin(Map.of());
    }

    Admin admin(Map<String, Object> more) {
        Map<String, Object> settings = new HashMap<>(more);
        settings.put("bootstrap.servers", address);
        return Admin.create(settings);
    }

    String name(String what) {
        return stem + "-" + what;
    }

    String topic(String what, int partitions) throws Exception {
        admin.createTopics(List.of(new NewTopic(name(what), partitions, (short) 1))).all().get();
        return name(what);
    }

    KafkaProducer<String, String> producer(Map<String, Object> more) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", address);
        settings.put("key.serializer", StringSerializer.class);
        settings.put("value.serializer", StringSerializer.class);
        settings.put("max.block.ms", 30_000);
        settings.putAll(more);
        return new KafkaProducer<>(settings);
    }

    /** A producer with a transactional id, which has taken it over. */
    KafkaProducer<String, String> opened(String id, Map<String, Object> more) {
        Map<String, Object> settings = new HashMap<>(more);
        settings.put("transactional.id", name(id));
        KafkaProducer<String, String> producer = producer(settings);
        producer.initTransactions();
        return producer;
    }

    KafkaConsumer<String, String> consumer(String group, String isolation) {
        return consumer(group, isolation, Map.of());
    }

    KafkaConsumer<String, String> consumer(String group, String isolation, Map<String, Object> more) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", address);
        settings.put("group.id", name(group));
        settings.put("isolation.level", isolation);
        settings.put("enable.auto.commit", false);
        settings.put("auto.offset.reset", "earliest");
        settings.put("key.deserializer", StringDeserializer.class);
        settings.put("value.deserializer", StringDeserializer.class);
        settings.putAll(more);
        return new KafkaConsumer<>(settings);
    }

    static void send(KafkaProducer<String, String> producer, String topic, String... values) throws Exception {
        for (String value : values) {
            producer.send(new ProducerRecord<>(topic, 0, null, value)).get();
        }
    }

    static List<String> read(KafkaConsumer<String, String> consumer, int count) {
        List<String> values = new ArrayList<>();
        long deadline = System.currentTimeMillis() + TIMEOUT_MS;
        while (values.size() < count) {
            for (ConsumerRecord<String, String> one : consumer.poll(Duration.ofMillis(200))) {
                values.add(one.value());
            }
            check(System.currentTimeMillis() < deadline, "only " + values + " came");
        }
        return values;
    }

    /** The values of the first partition of a topic, up to its end as this reader sees it. */
    List<String> all(String topic, String isolation) {
        try (KafkaConsumer<String, String> consumer = consumer("reader", isolation)) {
            TopicPartition place = new TopicPartition(topic, 0);
            consumer.assign(List.of(place));
            consumer.seekToBeginning(List.of(place));
            long end = consumer.endOffsets(List.of(place)).get(place);
            List<String> values = new ArrayList<>();
            long deadline = System.currentTimeMillis() + TIMEOUT_MS;
            while (consumer.position(place) < end) {
                for (ConsumerRecord<String, String> one : consumer.poll(Duration.ofMillis(200))) {
                    values.add(one.value());
                }
                check(System.currentTimeMillis() < deadline, "it stands still at " + consumer.position(place));
            }
            return values;
        }
    }

    static void check(boolean right, String complaint) {
        if (!right) {
            throw new AssertionError(complaint);
        }
    }

    static void same(Object found, Object expected) {
        check(Objects.equals(found, expected), "found " + found + ", expected " + expected);
    }

    @Override
    public void close() {
        admin.close(Duration.ofSeconds(1));
    }
}
