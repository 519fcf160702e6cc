import java.util.Objects;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClientException;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.schema.GenericRecord;

/** Schemas that the client makes of classes. */
final class Schemas {
    private Schemas() {}

    public static class Order {
        public String item;
        public int count;

        @Override
        public boolean equals(Object other) {
            return other instanceof Order order && Objects.equals(item, order.item) && count == order.count;
        }

        @Override
        public int hashCode() {
            return Objects.hash(item, count);
        }
    }

    public static class Stranger {
        public long item;
    }

    static void of(Scenario s, Schema<Order> schema, Schema<Stranger> other) throws Exception {
        String topic = s.topic("t");
        Order order = new Order();
        order.item = "bolt";
        order.count = 7;
        try (Producer<Order> producer = s.client.newProducer(schema).topic(topic).create();
                Consumer<Order> consumer = s.client.newConsumer(schema).topic(topic).subscriptionName("s").subscribe();
                Consumer<GenericRecord> generic = s.client.newConsumer(Schema.AUTO_CONSUME())
                        .topic(topic).subscriptionName("generic").subscribe()) {
            producer.send(order);
            Message<Order> message = Scenario.receive(consumer);
            Scenario.same(message.getValue(), order);
            Scenario.check(message.getSchemaVersion() != null, "no schema version");
            Scenario.same(Scenario.receive(generic).getValue().getField("item"), "bolt");
            try {
                s.client.newProducer(other).topic(topic).create().close();
                Scenario.check(false, "a schema that does not fit was taken");
            } catch (PulsarClientException.IncompatibleSchemaException expected) {
                System.out.println("refused: " + expected.getMessage());
            }
        }
    }
}
