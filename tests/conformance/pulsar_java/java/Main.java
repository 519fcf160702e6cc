import java.util.Map;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.api.SubscriptionType;

/** Plays one scenario against a server: Main URL SCENARIO STEM. It ends with 0 if all was as it should be. */
public final class Main {
    interface Play {
        void with(Scenario scenario) throws Exception;
    }

    private static final Map<String, Play> PLAYS = Map.ofEntries(
            Map.entry("commit", Transactions::commit),
            Map.entry("abort", Transactions::abort),
            Map.entry("timeout", Transactions::timeout),
            Map.entry("transform-exclusive",
                    s -> Transactions.consumeTransformProduce(s, SubscriptionType.Exclusive)),
            Map.entry("transform-shared", s -> Transactions.consumeTransformProduce(s, SubscriptionType.Shared)),
            Map.entry("cumulative", Transactions::cumulative),
            Map.entry("conflict", Transactions::conflict),
            Map.entry("partitions", Transactions::partitions),
            Map.entry("leave-open", Transactions::leaveOpen),
            Map.entry("after-crash", Transactions::afterCrash),
            Map.entry("key-shared", Consumers::keyShared),
            Map.entry("batch-index", Consumers::batchIndex),
            Map.entry("chunking", Consumers::chunking),
            Map.entry("dead-letters", Consumers::deadLetters),
            Map.entry("pattern", Consumers::pattern),
            Map.entry("reader", Consumers::reader),
            Map.entry("table-view", Consumers::tableView),
            Map.entry("compacted", s -> Consumers.compacted(s, "c")),
            Map.entry("compacted-again", s -> Consumers.compacted(s, "again")),
            Map.entry("end-of-topic", Consumers::endOfTopic),
            Map.entry("non-persistent", Consumers::volatileTopic),
            Map.entry("json",
                    s -> Schemas.of(s, Schema.JSON(Schemas.Order.class), Schema.JSON(Schemas.Stranger.class))),
            Map.entry("avro",
                    s -> Schemas.of(s, Schema.AVRO(Schemas.Order.class), Schema.AVRO(Schemas.Stranger.class))));

    private Main() {}

    public static void main(String[] words) throws Exception {
        try (Scenario scenario = new Scenario(words[0], words[2])) {
            PLAYS.get(words[1]).with(scenario);
        } catch (Throwable failure) {
            failure.printStackTrace();
            System.exit(1);
        }
        System.out.println("done");
        System.exit(0);
    }
}
