import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.apache.pulsar.client.api.BatcherBuilder;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.DeadLetterPolicy;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.api.TableView;

/** Consumers and readers of every kind. */
final class Consumers {
    private Consumers() {}

    static void keyShared(Scenario s) throws Exception {
        List<Consumer<String>> consumers = new ArrayList<>();
        for (int n = 0; n < 3; n++) {
            consumers.add(s.consuming(s.topic("t"), "s").subscriptionType(SubscriptionType.Key_Shared).subscribe());
        }
        Producer<String> producer = s.producing(s.topic("t")).batcherBuilder(BatcherBuilder.KEY_BASED).create();
        for (int n = 0; n < 300; n++) {
            producer.newMessage().key("k" + n % 30).value(String.valueOf(n)).sendAsync();
        }
        producer.flush();
        Map<String, Integer> owners = new HashMap<>();
        Map<String, Integer> latest = new HashMap<>();
        int count = 0;
        for (int c = 0; c < consumers.size(); c++) {
            Message<String> message;
            while ((message = consumers.get(c).receive(1, TimeUnit.SECONDS)) != null) {
                Integer before = owners.put(message.getKey(), c);
                Scenario.check(before == null || before == c, "a key at two consumers");
                int value = Integer.parseInt(message.getValue());
                Integer last = latest.put(message.getKey(), value);
                Scenario.check(last == null || last < value, "out of order");
                consumers.get(c).acknowledge(message);
                count++;
            }
        }
        Scenario.same(count, 300);
        Scenario.same(new HashSet<>(owners.values()).size(), 3);
    }

    static void batchIndex(Scenario s) throws Exception {
        Consumer<String> consumer = s.consuming(s.topic("t"), "s").subscriptionType(SubscriptionType.Shared)
                .enableBatchIndexAcknowledgment(true).subscribe();
        Producer<String> producer = s.producing(s.topic("t"))
                .batchingMaxMessages(10).batchingMaxPublishDelay(1, TimeUnit.SECONDS).create();
        for (int n = 0; n < 10; n++) {
            producer.sendAsync("v" + n);
        }
        producer.flush();
        for (int n = 0; n < 10; n++) {
            Message<String> message = Scenario.receive(consumer);
            if (n % 2 == 0) {
                consumer.acknowledge(message);
            }
        }
        consumer.redeliverUnacknowledgedMessages();
        Scenario.same(Scenario.values(consumer, 5), List.of("v1", "v3", "v5", "v7", "v9"));
        Scenario.nothingComes(consumer);
    }

    static void chunking(Scenario s) throws Exception {
        Consumer<byte[]> consumer = s.client.newConsumer().topic(s.topic("t")).subscriptionName("s").subscribe();
        Producer<byte[]> producer = s.client.newProducer().topic(s.topic("t"))
                .enableBatching(false).enableChunking(true).create();
        byte[] large = new byte[12 * 1024 * 1024];
        new java.util.Random(1).nextBytes(large);
        MessageId id = producer.send(large);
        Message<byte[]> message = Scenario.receive(consumer);
        Scenario.check(java.util.Arrays.equals(message.getData(), large), "the content differs");
        Scenario.same(message.getMessageId().toString(), id.toString());
        consumer.acknowledge(message);
    }

    static void deadLetters(Scenario s) throws Exception {
        Consumer<String> consumer = s.consuming(s.topic("t"), "s").subscriptionType(SubscriptionType.Shared)
                .negativeAckRedeliveryDelay(50, TimeUnit.MILLISECONDS)
                .deadLetterPolicy(DeadLetterPolicy.builder().maxRedeliverCount(2)
                        .deadLetterTopic(s.topic("dead")).initialSubscriptionName("undertaker").build())
                .subscribe();
        s.producer(s.topic("t")).send("bad");
        for (int n = 0; n < 3; n++) {
            Message<String> message = Scenario.receive(consumer);
            Scenario.same(message.getRedeliveryCount(), n);
            consumer.negativeAcknowledge(message);
        }
        Scenario.nothingComes(consumer);
        Consumer<String> undertaker = s.consuming(s.topic("dead"), "undertaker").subscribe();
        Message<String> message = Scenario.receive(undertaker);
        Scenario.same(message.getValue(), "bad");
        Scenario.same(message.getProperty("REAL_TOPIC"), s.topic("t"));
    }

    static void pattern(Scenario s) throws Exception {
        // The period is an hour: what comes sooner has come through the watcher of topics.
        Pattern pattern = Pattern.compile("persistent://public/default/" + s.stem() + "-.*");
        s.producer(s.topic("old")).send("old");
        Consumer<String> consumer = s.client.newConsumer(Schema.STRING).topicsPattern(pattern).subscriptionName("s")
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest)
                .patternAutoDiscoveryPeriod(1, TimeUnit.HOURS).subscribe();
        Scenario.same(Scenario.values(consumer, 1), List.of("old"));
        s.producer(s.topic("new")).send("new");
        Scenario.same(Scenario.values(consumer, 1), List.of("new"));
    }

    static void reader(Scenario s) throws Exception {
        Producer<String> producer = s.producer(s.topic("t"));
        List<MessageId> ids = new ArrayList<>();
        for (int n = 0; n < 10; n++) {
            ids.add(producer.send("v" + n));
        }
        try (Reader<String> reader = s.client.newReader(Schema.STRING).topic(s.topic("t"))
                .startMessageId(ids.get(4)).startMessageIdInclusive().create()) {
            List<String> seen = new ArrayList<>();
            while (reader.hasMessageAvailable()) {
                seen.add(reader.readNext().getValue());
            }
            Scenario.same(seen, List.of("v4", "v5", "v6", "v7", "v8", "v9"));
            reader.seek(ids.get(8));
            Scenario.same(reader.readNext(Scenario.TIMEOUT_S, TimeUnit.SECONDS).getValue(), "v8");
        }
    }

    static void tableView(Scenario s) throws Exception {
        Producer<String> producer = s.producer(s.topic("t"));
        for (int n = 0; n < 20; n++) {
            producer.newMessage().key("k" + n % 4).value("v" + n).send();
        }
        try (TableView<String> view = s.client.newTableView(Schema.STRING).topic(s.topic("t")).create()) {
            Scenario.same(view.size(), 4);
            Scenario.same(view.get("k3"), "v19");
            producer.newMessage().key("k9").value("late").send();
            for (int n = 0; n < 100 && !view.containsKey("k9"); n++) {
                Thread.sleep(50);
            }
            Scenario.same(view.get("k9"), "late");
        }
    }

    static void compacted(Scenario s, String subscription) throws Exception {
        try (Consumer<byte[]> consumer = s.client.newConsumer().topic(s.topic("t")).subscriptionName(subscription)
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest).readCompacted(true).subscribe()) {
            Map<String, String> seen = new TreeMap<>();
            int count = 0;
            Message<byte[]> message;
            while ((message = consumer.receive(1, TimeUnit.SECONDS)) != null) {
                seen.put(message.getKey(), new String(message.getValue()));
                count++;
            }
            System.out.println("count " + count + " " + seen);
        }
        // What a table is made of: a reader that asks for the last message, and wants all up to there.
        try (TableView<byte[]> view = s.client.newTableView().topic(s.topic("t")).create()) {
            System.out.println("table " + view.size());
        }
    }

    static void endOfTopic(Scenario s) throws Exception {
        Consumer<String> consumer = s.consuming(s.topic("t"), "s").subscribe();
        System.out.println("connected");
        System.out.flush();
        Message<String> message = Scenario.receive(consumer);
        consumer.acknowledge(message);
        for (int n = 0; n < 200 && !consumer.hasReachedEndOfTopic(); n++) {
            Thread.sleep(50);
        }
        Scenario.check(consumer.hasReachedEndOfTopic(), "the end was not told");
    }

    static void volatileTopic(Scenario s) throws Exception {
        String topic = s.topic("t").replace("persistent://", "non-persistent://");
        Consumer<String> consumer = s.consuming(topic, "s").subscriptionType(SubscriptionType.Shared).subscribe();
        Producer<String> producer = s.producer(topic);
        Set<String> sent = new HashSet<>();
        for (int n = 0; n < 100; n++) {
            producer.send("v" + n);
            sent.add("v" + n);
        }
        Scenario.same(new HashSet<>(Scenario.values(consumer, 100)), sent);
    }
}
