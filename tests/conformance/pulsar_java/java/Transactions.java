import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.Reader;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionType;
import org.apache.pulsar.client.api.transaction.Transaction;

/** Records and acknowledgements that take effect together, or not at all. */
final class Transactions {
    private Transactions() {}

    static Transaction begin(Scenario s, int seconds) throws Exception {
        return s.client.newTransaction().withTransactionTimeout(seconds, TimeUnit.SECONDS).build().get();
    }

    static void commit(Scenario s) throws Exception {
        Consumer<String> consumer = s.consuming(s.topic("t"), "s").subscribe();
        Producer<String> producer = s.producer(s.topic("t"));
        Transaction transaction = begin(s, 60);
        producer.newMessage(transaction).value("in").send();
        producer.newMessage().value("behind").send();
        Scenario.nothingComes(consumer);
        transaction.commit().get();
        Scenario.same(Scenario.values(consumer, 2), List.of("in", "behind"));
        Scenario.same(transaction.getState(), Transaction.State.COMMITTED);
    }

    static void abort(Scenario s) throws Exception {
        Consumer<String> consumer = s.consuming(s.topic("t"), "s").subscribe();
        // The client would put what is in no transaction into a batch that is, if that is not sent yet.
        Producer<String> producer = s.producing(s.topic("t")).enableBatching(false).create();
        Transaction transaction = begin(s, 60);
        for (int n = 0; n < 20; n++) {
            producer.newMessage(transaction).value("gone").sendAsync();
        }
        producer.flush();
        producer.newMessage().value("stays").send();
        transaction.abort().get();
        Scenario.same(Scenario.values(consumer, 1), List.of("stays"));
        Scenario.nothingComes(consumer);
        try (Reader<String> reader = s.client.newReader(Schema.STRING)
                .topic(s.topic("t")).startMessageId(MessageId.earliest).create()) {
            Scenario.same(reader.readNext(Scenario.TIMEOUT_S, TimeUnit.SECONDS).getValue(), "stays");
            Scenario.check(!reader.hasMessageAvailable(), "more is said to be there");
        }
    }

    static void timeout(Scenario s) throws Exception {
        Consumer<String> consumer = s.consuming(s.topic("t"), "s").subscribe();
        Producer<String> producer = s.producer(s.topic("t"));
        Transaction transaction = begin(s, 1);
        producer.newMessage(transaction).value("gone").send();
        producer.newMessage().value("stays").send();
        Scenario.same(Scenario.values(consumer, 1), List.of("stays"));
        try {
            transaction.commit().get();
            Scenario.check(false, "a transaction that timed out was committed");
        } catch (ExecutionException expected) {
            System.out.println("refused: " + expected.getCause());
        }
    }

    /** Read, transform, write, acknowledge: three times, of which one is aborted and done again. */
    static void consumeTransformProduce(Scenario s, SubscriptionType type) throws Exception {
        boolean shared = type == SubscriptionType.Shared;
        // An aborted acknowledgement brings back the whole entry: one message, where several consumers share them.
        Producer<String> source = s.producing(s.topic("in")).enableBatching(!shared).create();
        Consumer<String> input = s.consuming(s.topic("in"), "s").subscriptionType(type)
                .enableBatchIndexAcknowledgment(true).subscribe();
        Producer<String> sink = s.producer(s.topic("out"));
        Consumer<String> output = s.consuming(s.topic("out"), "s").subscribe();
        for (int n = 0; n < 30; n++) {
            source.sendAsync("v" + n);
        }
        source.flush();
        Set<String> all = new HashSet<>();
        for (int round = 0; round < 3; round++) {
            Transaction aborted = begin(s, 60);
            move(input, sink, aborted, 10);
            Scenario.nothingComes(output);
            aborted.abort().get();
            // Meanwhile the batch arrives that the abort brings back. A client that drops what it has while it takes a
            // batch apart keeps the rest of it, and begins in its middle.
            Scenario.nothingComes(output);
            if (!shared) {
                input.redeliverUnacknowledgedMessages(); // in order again, from what was aborted on
            }
            Transaction transaction = begin(s, 60);
            move(input, sink, transaction, 10);
            Scenario.nothingComes(output);
            transaction.commit().get();
            List<String> seen = Scenario.values(output, 10);
            all.addAll(seen);
            if (!shared) {
                Scenario.same(seen.get(0), "V" + round * 10);
            }
        }
        Scenario.nothingComes(output);
        Scenario.same(all.size(), 30);
        input.close();
        input = s.consuming(s.topic("in"), "s").subscriptionType(type).subscribe();
        Scenario.nothingComes(input);
    }

    private static void move(Consumer<String> input, Producer<String> sink, Transaction transaction, int count)
            throws Exception {
        for (int n = 0; n < count; n++) {
            Message<String> message = Scenario.receive(input);
            sink.newMessage(transaction).value(message.getValue().toUpperCase()).sendAsync();
            input.acknowledgeAsync(message.getMessageId(), transaction).get();
        }
        sink.flush();
    }

    static void cumulative(Scenario s) throws Exception {
        Producer<String> producer = s.producing(s.topic("t")).enableBatching(false).create();
        Consumer<String> consumer = s.consuming(s.topic("t"), "s").subscribe();
        for (int n = 0; n < 10; n++) {
            producer.send("v" + n);
        }
        Transaction transaction = begin(s, 60);
        MessageId fifth = null;
        for (int n = 0; n < 5; n++) {
            fifth = Scenario.receive(consumer).getMessageId();
        }
        consumer.acknowledgeCumulativeAsync(fifth, transaction).get();
        transaction.abort().get();
        Transaction again = begin(s, 60);
        MessageId id = null;
        String value = "";
        while (!value.equals("v7")) { // what was aborted comes again
            Message<String> message = Scenario.receive(consumer);
            value = message.getValue();
            id = message.getMessageId();
        }
        consumer.acknowledgeCumulativeAsync(id, again).get();
        again.commit().get();
        consumer.close();
        consumer = s.consuming(s.topic("t"), "s").subscribe();
        Scenario.same(Scenario.values(consumer, 2), List.of("v8", "v9"));
    }

    static void conflict(Scenario s) throws Exception {
        Producer<String> producer = s.producer(s.topic("t"));
        Consumer<String> consumer = s.consuming(s.topic("t"), "s").subscriptionType(SubscriptionType.Shared).subscribe();
        producer.send("v");
        MessageId id = Scenario.receive(consumer).getMessageId();
        Transaction first = begin(s, 60);
        Transaction second = begin(s, 60);
        consumer.acknowledgeAsync(id, first).get();
        try {
            consumer.acknowledgeAsync(id, second).get();
            Scenario.check(false, "a message was acknowledged in two transactions");
        } catch (ExecutionException expected) {
            Scenario.check(
                    expected.getCause() instanceof PulsarClientException.TransactionConflictException,
                    "another error: " + expected.getCause());
        }
        first.abort().get();
        id = Scenario.receive(consumer).getMessageId();
        Transaction third = begin(s, 60);
        consumer.acknowledgeAsync(id, third).get();
        third.commit().get();
        second.abort().get();
        Scenario.nothingComes(consumer);
    }

    static void partitions(Scenario s) throws Exception {
        Consumer<String> consumer = s.consuming(s.topic("t"), "s").subscribe();
        Producer<String> producer = s.producing(s.topic("t")).enableBatching(false).create();
        Scenario.check(producer.getNumOfPartitions() == 3, "the topic has " + producer.getNumOfPartitions());
        Transaction transaction = begin(s, 60);
        for (int n = 0; n < 30; n++) {
            producer.newMessage(transaction).value("v" + n).sendAsync();
        }
        producer.flush();
        Scenario.nothingComes(consumer);
        transaction.commit().get();
        Scenario.values(consumer, 30);
        Scenario.nothingComes(consumer);
    }

    /** Leaves one transaction open, and tells what the one that comes after a crash needs. */
    static void leaveOpen(Scenario s) throws Exception {
        Producer<String> producer = s.producer(s.topic("t"));
        Consumer<String> consumer = s.consuming(s.topic("t"), "s").subscribe();
        producer.send("acknowledged");
        Transaction committed = begin(s, 60);
        producer.newMessage(committed).value("committed").send();
        consumer.acknowledgeAsync(Scenario.receive(consumer).getMessageId(), committed).get();
        committed.commit().get();
        Transaction open = begin(s, 15); // longer than a slow machine takes to start the next process
        producer.newMessage(open).value("open").send();
        producer.newMessage().value("behind").send();
        System.out.println("left open");
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    static void afterCrash(Scenario s) throws Exception {
        Consumer<String> consumer = s.consuming(s.topic("t"), "s").subscribe();
        Scenario.same(Scenario.values(consumer, 1), List.of("committed"));
        Scenario.nothingComes(consumer); // not "behind", as long as the other is open
        Scenario.same(Scenario.values(consumer, 1), List.of("behind"));
        Scenario.nothingComes(consumer);
    }
}
