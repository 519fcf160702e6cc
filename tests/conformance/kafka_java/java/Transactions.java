import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.FinalizedVersionRange;
import org.apache.kafka.clients.admin.ListTransactionsOptions;
import org.apache.kafka.clients.admin.ProducerState;
import org.apache.kafka.clients.admin.TransactionDescription;
import org.apache.kafka.clients.admin.TransactionListing;
import org.apache.kafka.clients.admin.TransactionState;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.ProducerFencedException;

/** Transactions, as the Java client has them since 4.0: the epoch of a producer grows with each. */
final class Transactions {
    private static final String COMMITTED = "read_committed";
    private static final String UNCOMMITTED = "read_uncommitted";

    private Transactions() {}

    static void commitAndAbort(Scenario s) throws Exception {
        String topic = s.topic("t", 1);
        try (KafkaProducer<String, String> producer = s.opened("p", Map.of())) {
            producer.beginTransaction();
            Scenario.send(producer, topic, "a", "b");
            Scenario.same(s.all(topic, COMMITTED), List.of());
            Scenario.same(s.all(topic, UNCOMMITTED), List.of("a", "b"));
            producer.commitTransaction();
            producer.beginTransaction();
            Scenario.send(producer, topic, "gone");
            producer.abortTransaction();
            producer.beginTransaction();
            producer.commitTransaction();
            producer.beginTransaction();
            producer.abortTransaction();
            producer.beginTransaction();
            Scenario.send(producer, topic, "c");
            producer.commitTransaction();
        }
        Scenario.same(s.all(topic, COMMITTED), List.of("a", "b", "c"));
        Scenario.same(s.all(topic, UNCOMMITTED), List.of("a", "b", "gone", "c"));
    }

    static void epochsGrow(Scenario s) throws Exception {
        String topic = s.topic("t", 1);
        try (KafkaProducer<String, String> producer = s.opened("p", Map.of())) {
            Set<Integer> epochs = new java.util.TreeSet<>();
            for (int n = 0; n < 5; n++) {
                producer.beginTransaction();
                Scenario.send(producer, topic, "v" + n);
                epochs.add(epochOf(s, topic));
                if (n % 2 == 0) {
                    producer.commitTransaction();
                } else {
                    producer.abortTransaction();
                }
            }
            Scenario.same(epochs, Set.of(0, 1, 2, 3, 4));
        }
        Scenario.same(s.all(topic, COMMITTED), List.of("v0", "v2", "v4"));
    }

    private static int epochOf(Scenario s, String topic) throws Exception {
        TopicPartition place = new TopicPartition(topic, 0);
        List<ProducerState> found = s.admin.describeProducers(List.of(place)).partitionResult(place).get()
                .activeProducers();
        Scenario.same(found.size(), 1);
        return found.get(0).producerEpoch();
    }

    /** Many partitions, many transactions, records in flight in all of them when it is committed. */
    static void many(Scenario s) throws Exception {
        String topic = s.topic("t", 8);
        Map<String, Object> small = Map.of("batch.size", 200, "linger.ms", 0);
        List<String> expected = new ArrayList<>();
        try (KafkaProducer<String, String> producer = s.opened("p", small)) {
            for (int round = 0; round < 30; round++) {
                producer.beginTransaction();
                for (int n = 0; n < 80; n++) {
                    producer.send(new ProducerRecord<>(topic, n % 8, null, round + "/" + n));
                }
                if (round % 3 == 1) {
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                    for (int n = 0; n < 80; n++) {
                        expected.add(round + "/" + n);
                    }
                }
            }
        }
        try (KafkaConsumer<String, String> consumer = s.consumer("g", COMMITTED)) {
            consumer.subscribe(List.of(topic));
            List<String> found = Scenario.read(consumer, expected.size());
            Scenario.same(found.stream().sorted().collect(Collectors.toList()),
                    expected.stream().sorted().collect(Collectors.toList()));
            Scenario.same(consumer.poll(Duration.ofMillis(Scenario.QUIET_MS)).count(), 0);
        }
    }

    /** Idempotent producing beside transactions. */
    static void idempotent(Scenario s) throws Exception {
        String topic = s.topic("t", 1);
        try (KafkaProducer<String, String> plain = s.producer(Map.of("enable.idempotence", true));
                KafkaProducer<String, String> producer = s.opened("p", Map.of())) {
            producer.beginTransaction();
            Scenario.send(producer, topic, "in");
            Scenario.send(plain, topic, "out");
            Scenario.same(s.all(topic, COMMITTED), List.of());
            producer.abortTransaction();
            Scenario.same(s.all(topic, COMMITTED), List.of("out"));
        }
    }

    static void offsets(Scenario s) throws Exception {
        String source = s.topic("source", 1);
        String sink = s.topic("sink", 1);
        TopicPartition place = new TopicPartition(source, 0);
        try (KafkaProducer<String, String> plain = s.producer(Map.of())) {
            Scenario.send(plain, source, "0", "1", "2", "3");
        }
        try (KafkaProducer<String, String> producer = s.opened("p", Map.of());
                KafkaConsumer<String, String> consumer = s.consumer("g", COMMITTED)) {
            consumer.subscribe(List.of(source));
            for (boolean commit : new boolean[] {false, true}) {
                List<String> found = Scenario.read(consumer, 4);
                producer.beginTransaction();
                Scenario.send(producer, sink, found.toArray(new String[0]));
                producer.sendOffsetsToTransaction(
                        Map.of(place, new OffsetAndMetadata(4, "note")), consumer.groupMetadata());
                if (commit) {
                    producer.commitTransaction();
                } else {
                    producer.abortTransaction();
                    Scenario.same(consumer.committed(Set.of(place)).get(place), null);
                    consumer.seek(place, 0);
                }
            }
            OffsetAndMetadata committed = consumer.committed(Set.of(place)).get(place);
            Scenario.same(committed.offset(), 4L);
            Scenario.same(committed.metadata(), "note");
        }
        Scenario.same(s.all(sink, COMMITTED), List.of("0", "1", "2", "3"));
    }

    static void fencing(Scenario s) throws Exception {
        String topic = s.topic("t", 1);
        KafkaProducer<String, String> zombie = s.opened("p", Map.of());
        zombie.beginTransaction();
        Scenario.send(zombie, topic, "of the zombie");
        try (KafkaProducer<String, String> heir = s.opened("p", Map.of())) {
            heir.beginTransaction();
            Scenario.send(heir, topic, "of its heir");
            boolean fenced = false;
            try {
                Scenario.send(zombie, topic, "late");
                zombie.commitTransaction();
            } catch (ProducerFencedException | InvalidProducerEpochException refused) {
                fenced = true;
            } catch (ExecutionException refused) {
                fenced = refused.getCause() instanceof ProducerFencedException
                        || refused.getCause() instanceof InvalidProducerEpochException;
            }
            Scenario.check(fenced, "the zombie was not fenced");
            heir.commitTransaction();
        }
        zombie.close(Duration.ZERO);
        Scenario.same(s.all(topic, COMMITTED), List.of("of its heir"));
    }

    static void timeout(Scenario s) throws Exception {
        String topic = s.topic("t", 1);
        KafkaProducer<String, String> producer = s.opened("p", Map.of("transaction.timeout.ms", 1000));
        producer.beginTransaction();
        Scenario.send(producer, topic, "late");
        Thread.sleep(2000);
        Scenario.same(s.all(topic, COMMITTED), List.of());
        boolean refused = false;
        try {
            producer.commitTransaction();
        } catch (RuntimeException error) {
            refused = true;
        }
        Scenario.check(refused, "it was committed after its time");
        producer.close(Duration.ZERO);
        Scenario.same(s.all(topic, UNCOMMITTED), List.of("late"));
    }

    static void admin(Scenario s) throws Exception {
        String topic = s.topic("t", 2);
        try (KafkaProducer<String, String> producer = s.opened("p", Map.of("transaction.timeout.ms", 45_000))) {
            String id = s.name("p");
            Scenario.same(described(s, id).state(), TransactionState.EMPTY);
            producer.beginTransaction();
            Scenario.send(producer, topic, "first");
            Scenario.send(producer, topic, "second");
            TransactionDescription found = described(s, id);
            Scenario.same(found.state(), TransactionState.ONGOING);
            Scenario.same(found.transactionTimeoutMs(), 45_000L);
            Scenario.same(found.topicPartitions(), Set.of(new TopicPartition(topic, 0)));
            Scenario.check(found.transactionStartTimeMs().isPresent(), "it has no start");
            Map<String, TransactionState> listed = new HashMap<>();
            for (TransactionListing one : s.admin.listTransactions().all().get()) {
                listed.put(one.transactionalId(), one.state());
            }
            Scenario.same(listed.get(id), TransactionState.ONGOING);
            ListTransactionsOptions pattern = new ListTransactionsOptions().filterOnTransactionalIdPattern(id + "|x");
            Scenario.same(s.admin.listTransactions(pattern).all().get().size(), 1);
            ListTransactionsOptions long_ = new ListTransactionsOptions().filterOnDuration(3_600_000);
            Scenario.same(s.admin.listTransactions(long_).all().get().size(), 0);
            TopicPartition place = new TopicPartition(topic, 0);
            ProducerState state = s.admin.describeProducers(List.of(place)).partitionResult(place).get()
                    .activeProducers().get(0);
            Scenario.same(state.producerId(), found.producerId());
            Scenario.same(state.currentTransactionStartOffset().getAsLong(), 0L);
            Scenario.same(state.lastSequence(), 1);
            producer.commitTransaction();
            Scenario.same(described(s, id).state(), TransactionState.COMPLETE_COMMIT);
            producer.beginTransaction();
            Scenario.send(producer, topic, "third");
            s.admin.fenceProducers(List.of(id)).all().get();
            Scenario.same(described(s, id).state(), TransactionState.EMPTY);
            Scenario.same(s.all(topic, COMMITTED), List.of("first", "second"));
        }
    }

    private static TransactionDescription described(Scenario s, String id) throws Exception {
        return s.admin.describeTransactions(List.of(id)).description(id).get();
    }

    static void features(Scenario s) throws Exception {
        Map<String, FinalizedVersionRange> found =
                s.admin.describeFeatures().featureMetadata().get().finalizedFeatures();
        Scenario.same(found.get("transaction.version").maxVersionLevel(), (short) 2);
    }

    /** Leaves one transaction committed and one open. */
    static void leaveOpen(Scenario s) throws Exception {
        String topic = s.topic("t", 1);
        KafkaProducer<String, String> producer = s.opened("p", Map.of());
        producer.beginTransaction();
        Scenario.send(producer, topic, "kept");
        producer.commitTransaction();
        producer.beginTransaction();
        Scenario.send(producer, topic, "left open");
    }

    /** What the one before left open is aborted by whoever takes its id over. */
    static void takeOver(Scenario s) throws Exception {
        String topic = s.name("t");
        Scenario.same(s.all(topic, COMMITTED), List.of("kept"));
        try (KafkaProducer<String, String> producer = s.opened("p", Map.of())) {
            producer.beginTransaction();
            Scenario.send(producer, topic, "next");
            producer.commitTransaction();
        }
        Scenario.same(s.all(topic, COMMITTED), List.of("kept", "next"));
        Scenario.same(s.all(topic, UNCOMMITTED), List.of("kept", "left open", "next"));
    }

    /** Transactions one after the other, while the server is killed again and again; one line for each that lasts. */
    static void throughRestarts(Scenario s) throws Exception {
        String topic = s.topic("t", 2);
        System.out.println("ready");
        KafkaProducer<String, String> producer = s.opened("p", Map.of("delivery.timeout.ms", 60_000));
        for (int round = 0; round < 40; round++) {
            producer.beginTransaction();
            for (int n = 0; n < 20; n++) {
                producer.send(new ProducerRecord<>(topic, n % 2, null, round + "/" + n));
            }
            producer.commitTransaction();
            System.out.println("committed " + round);
            Thread.sleep(50);
        }
        producer.close();
        Map<Integer, Integer> counts = new HashMap<>();
        try (KafkaConsumer<String, String> consumer = s.consumer("g", COMMITTED)) {
            consumer.subscribe(List.of(topic));
            for (String value : Scenario.read(consumer, 800)) {
                counts.merge(Integer.parseInt(value.split("/")[0]), 1, Integer::sum);
            }
            for (ConsumerRecord<String, String> more : consumer.poll(Duration.ofMillis(Scenario.QUIET_MS))) {
                throw new AssertionError("twice: " + more.value());
            }
        }
        Scenario.same(counts.size(), 40);
        Scenario.same(Set.copyOf(counts.values()), Set.of(20));
    }
}
