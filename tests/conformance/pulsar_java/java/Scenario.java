import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.ConsumerBuilder;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.ProducerBuilder;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionInitialPosition;

/** What a scenario works with: a client of the server, topics of its own, and checks that say what they saw. */
final class Scenario implements AutoCloseable {
    static final int TIMEOUT_S = 20;
    static final int QUIET_MS = 400;

    final String url;
    final PulsarClient client;
    private final String stem;

    Scenario(String url, String stem) throws Exception {
        this.url = url;
        this.stem = stem;
        client = newClient(true);
    }

    PulsarClient newClient(boolean transactions) throws Exception {
        return PulsarClient.builder()
                .serviceUrl(url)
                .enableTransaction(transactions)
                .operationTimeout(TIMEOUT_S, TimeUnit.SECONDS)
                .build();
    }

    String topic(String name) {
        return "persistent://public/default/" + stem + "-" + name;
    }

    String stem() {
        return stem;
    }

    Producer<String> producer(String topic) throws Exception {
        return producing(topic).create();
    }

    ProducerBuilder<String> producing(String topic) {
        // A transaction may outlast any send timeout: clients insist on none.
        return client.newProducer(Schema.STRING).topic(topic).sendTimeout(0, TimeUnit.SECONDS);
    }

    ConsumerBuilder<String> consuming(String topic, String subscription) {
        return client.newConsumer(Schema.STRING)
                .topic(topic)
                .subscriptionName(subscription)
                .subscriptionInitialPosition(SubscriptionInitialPosition.Earliest)
                .acknowledgmentGroupTime(0, TimeUnit.MILLISECONDS);
    }

    static <T> Message<T> receive(Consumer<T> consumer) throws Exception {
        Message<T> message = consumer.receive(TIMEOUT_S, TimeUnit.SECONDS);
        check(message != null, "nothing came to " + consumer.getSubscription());
        return message;
    }

    static <T> List<T> values(Consumer<T> consumer, int count) throws Exception {
        List<T> values = new ArrayList<>();
        for (int n = 0; n < count; n++) {
            values.add(receive(consumer).getValue());
        }
        return values;
    }

    static void nothingComes(Consumer<?> consumer) throws Exception {
        Message<?> message = consumer.receive(QUIET_MS, TimeUnit.MILLISECONDS);
        check(message == null, "came: " + (message == null ? "" : new String(message.getData())));
    }

    static void check(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    static void same(Object seen, Object wanted) {
        check(wanted.equals(seen), "seen " + seen + ", wanted " + wanted);
    }

    @Override
    public void close() throws Exception {
        client.close();
    }
}
