import java.util.Map;

/** Plays one scenario against a server: Main ADDRESS SCENARIO STEM. It ends with 0 if all was as it should be. */
public final class Main {
    interface Play {
        void with(Scenario scenario) throws Exception;
    }

    private static final Map<String, Play> PLAYS = Map.ofEntries(
            Map.entry("acls", Acls::acls),
            Map.entry("commit-and-abort", Transactions::commitAndAbort),
            Map.entry("epochs-grow", Transactions::epochsGrow),
            Map.entry("many", Transactions::many),
            Map.entry("offsets", Transactions::offsets),
            Map.entry("fencing", Transactions::fencing),
            Map.entry("timeout", Transactions::timeout),
            Map.entry("admin", Transactions::admin),
            Map.entry("features", Transactions::features),
            Map.entry("leave-open", Transactions::leaveOpen),
            Map.entry("take-over", Transactions::takeOver),
            Map.entry("through-restarts", Transactions::throughRestarts),
            Map.entry("idempotent", Transactions::idempotent),
            Map.entry("compacted", Compaction::compacted),
            Map.entry("members", ConsumerGroups::members),
            Map.entry("static-members", ConsumerGroups::staticMembers),
            Map.entry("patterns", ConsumerGroups::patterns),
            Map.entry("resume", ConsumerGroups::resume),
            Map.entry("transactional-offsets", ConsumerGroups::transactionalOffsets),
            Map.entry("group-admin", ConsumerGroups::groupAdmin),
            Map.entry("migration", ConsumerGroups::migration),
            Map.entry("group-through-restarts", ConsumerGroups::throughRestarts));

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
