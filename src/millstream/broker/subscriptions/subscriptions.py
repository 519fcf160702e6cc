"""All subscriptions: finding, making and ending them, and what of the log they still need."""

from dataclasses import replace
from uuid import UUID

from millstream.broker.errors import UnknownTopic
from millstream.broker.offsets import Offsets, Place
from millstream.broker.subscriptions.consumer import Consumer
from millstream.broker.subscriptions.errors import SubscriptionInUse, SubscriptionNotFound
from millstream.broker.subscriptions.interface import Receiver, StartAt, Subscribing, SubscriptionSettings
from millstream.broker.subscriptions.subscription import Subscription
from millstream.broker.subscriptions.turns import PartitionBounds, PartitionTurns
from millstream.broker.topics import Topic
from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending, settled
from millstream.model.runtime import Runtime
from millstream.storage.metadata import CommittedOffset

__all__ = ["Subscriptions"]

_Key = tuple[Place, str]


class Subscriptions:
    """The subscriptions of the server.

    Args:
        runtime: time and the loop.
        offsets: where cursors last; a group and a durable subscription of one name are one cursor.
        settings: limits and delays.
        bounds: how far partitions may be read.
    """

    def __init__(
        self,
        runtime: Runtime,
        offsets: Offsets,
        settings: SubscriptionSettings | None = None,
        bounds: PartitionBounds | None = None,
    ) -> None:
        self._runtime = runtime
        self._offsets = offsets
        self._settings = settings or SubscriptionSettings()
        self._bounds = bounds or PartitionBounds()
        self._turns: dict[Place, PartitionTurns] = {}
        self._at: dict[Place, dict[str, Subscription]] = {}
        self._ending: dict[_Key, Pending[None]] = {}

    # Connecting

    def subscribe(
        self, topic: Topic, partition: int, name: str, request: Subscribing, receiver: Receiver
    ) -> Pending[Consumer]:
        """Connect a consumer to a subscription, which comes to be if need be.

        Args:
            topic, partition: what it reads; the partition exists.
            name: of the subscription, not empty.
            request: how.
            receiver: its connection.

        Returns:
            Resolves once the subscription lasts. Whoever is gone by then closes the consumer. Fails with
            SubscriptionError, MetadataFailed.
        """

        def attach(subscription: Subscription) -> Pending[Consumer]:
            return settled(subscription.attach(request, receiver))

        def find_or_make() -> Pending[Subscription]:
            return self._open(topic, partition, name, request)

        return Pending.attempt(find_or_make).chain(attach)

    def create(self, topic: Topic, partition: int, name: str, start: int | StartAt) -> Pending[Subscription]:
        """Make a durable subscription without a consumer, or find it.

        Returns:
            Resolves once it lasts; fails with SubscriptionInUse if a non-durable one has the name, MetadataFailed.
        """
        return Pending.attempt(lambda: self._obtain(topic, partition, name, start, durable=True, may_create=True))

    def _open(self, topic: Topic, partition: int, name: str, request: Subscribing) -> Pending[Subscription]:
        source = request.source
        # What the log has no longer is read from what compaction has left.
        first = 0 if source is not None and source.horizon > 0 else None
        return self._obtain(
            topic, partition, name, request.start, durable=request.durable, may_create=request.may_create, first=first
        )

    def _obtain(
        self,
        topic: Topic,
        partition: int,
        name: str,
        start: int | StartAt,
        *,
        durable: bool,
        may_create: bool,
        first: int | None = None,
    ) -> Pending[Subscription]:
        """Find or make a subscription, once whatever is under way with one of its name is over.

        Args:
            first: the earliest offset that can be read; None for the first of the log.
        """
        if partition >= len(topic.partitions):
            raise UnknownTopic("the partition was deleted")
        place = topic.id, partition
        ending = self._ending.get((place, name))
        if ending is not None:

            def again(_: None) -> Pending[Subscription]:
                return self._obtain(
                    topic, partition, name, start, durable=durable, may_create=may_create, first=first
                )

            return ending.always(lambda: None).chain(again)
        subscription = self.find(topic, partition, name)
        if subscription is None:
            subscription = self._make(
                topic, partition, name, start, durable=durable, may_create=may_create, first=first
            )
        elif subscription.durable is not durable:
            kind = "durable" if subscription.durable else "non-durable"
            raise SubscriptionInUse(f"there is a {kind} subscription {name}")
        if subscription.ready is None:
            return settled(subscription)
        found = subscription
        return subscription.ready.then(lambda _: found)

    def _make(
        self,
        topic: Topic,
        partition: int,
        name: str,
        start: int | StartAt,
        *,
        durable: bool,
        may_create: bool,
        first: int | None,
    ) -> Subscription:
        place = topic.id, partition
        log = topic.partitions[partition].log
        committed = self._offsets.of_group(name).get(place) if durable else None
        if not may_create and durable and committed is None:
            raise SubscriptionNotFound(f"there is no subscription {name}")
        first = log.start_offset if first is None else first
        match start:
            case StartAt.EARLIEST:
                position = first
            case StartAt.LATEST:
                position = log.end_offset
            case int():
                position = min(max(start, first), log.end_offset)
        subscription = self._enter(topic, partition, name, position, durable=durable)
        if committed is not None:
            # A group of this name has been here: the subscription goes on where it was.
            self._restore(subscription, committed, log.end_offset)
        if durable:
            lasting = subscription.cursor.keep()
            subscription.wait_for(lasting)

            def check(outcome: Pending[None]) -> None:
                try:
                    outcome.result()
                except MillstreamError:
                    subscription.drop()

            lasting.when_done(check)
        return subscription

    def _enter(self, topic: Topic, partition: int, name: str, position: int, *, durable: bool) -> Subscription:
        place = topic.id, partition
        turns = self._turns.get(place)
        if turns is None:
            turns = self._turns[place] = PartitionTurns(topic.partitions[partition], self._runtime, self._bounds)
        offsets = self._offsets if durable else None
        subscription = Subscription(
            name, place, turns, offsets, self._runtime, self._settings, position, self._on_end
        )
        self._at.setdefault(place, {})[name] = subscription
        return subscription

    @staticmethod
    def _restore(subscription: Subscription, committed: CommittedOffset, end_offset: int) -> None:
        """Take over what is stored, but for what a loss of power has taken from the log: that will be new records."""
        cursor = subscription.cursor
        cursor.restore(committed)
        if cursor.position > end_offset:
            cursor.restore(replace(committed, offset=end_offset, acknowledged=b""))
        elif cursor.acknowledged and cursor.acknowledged.last_end > end_offset:
            cursor.acknowledged.remove(end_offset, cursor.acknowledged.last_end)

    def _on_end(self, subscription: Subscription, gone: Pending[None]) -> None:
        place, name = subscription.place, subscription.name
        names = self._at.get(place, {})
        if names.get(name) is subscription:
            del names[name]
        if not names:
            self._at.pop(place, None)
            self._turns.pop(place, None)
        if not gone.done:
            self._ending[place, name] = gone

            def clear(_: Pending[None]) -> None:
                self._ending.pop((place, name), None)

            gone.when_done(clear)

    # Finding

    def find(self, topic: Topic, partition: int, name: str) -> Subscription | None:
        """A subscription, whether anybody is connected to it or not."""
        place = topic.id, partition
        subscription = self._at.get(place, {}).get(name)
        if subscription is not None or (place, name) in self._ending:
            return subscription
        committed = self._offsets.subscriptions_at(place).get(name)
        if committed is None or partition >= len(topic.partitions):
            return None
        subscription = self._enter(topic, partition, name, committed.offset, durable=True)
        self._restore(subscription, committed, topic.partitions[partition].log.end_offset)
        return subscription

    def names(self, topic: Topic, partition: int) -> list[str]:
        """The subscriptions of a partition, sorted; non-durable ones included."""
        place = topic.id, partition
        stored = {name for name in self._offsets.subscriptions_at(place) if (place, name) not in self._ending}
        return sorted(stored | self._at.get(place, {}).keys())

    def named(self, name: str) -> list[Subscription]:
        """The subscriptions of a name that are in use, of whatever partition."""
        return [names[name] for names in self._at.values() if name in names]

    def names_in_use(self) -> list[tuple[str, bool]]:
        """The name of every durable subscription that is in use, and whether it has consumers."""
        return [
            (name, bool(one.consumers)) for names in self._at.values() for name, one in names.items() if one.durable
        ]

    def under_way(self, name: str) -> list[Pending[None]]:
        """What was acknowledged on the subscriptions of a name and does not last yet; it is made to."""
        return [pending for one in self.named(name) if (pending := one.cursor.persist()) is not None]

    def hold_offset(self, topic_id: UUID, partition: int) -> int | None:
        """The lowest offset that a durable subscription of a partition still needs; None if there is none.

        It is what the store has, which is where a subscription goes on after a crash, or a seek under way behind it.
        """
        place = topic_id, partition
        offsets = [committed.offset for committed in self._offsets.subscriptions_at(place).values()]
        offsets += [one.position for one in self._at.get(place, {}).values() if one.durable]
        return min(offsets, default=None)

    # The end

    def forget_topic(self, topic_id: UUID, first: int = 0) -> None:
        """End the subscriptions of a topic that is gone, or of its partitions from one on.

        `Offsets.forget_topic` ends the durable ones only.
        """
        for place in [place for place in self._at if place[0] == topic_id and place[1] >= first]:
            for subscription in list(self._at.get(place, {}).values()):
                subscription.drop()

    def connected(self, name: str) -> bool:
        """Whether any durable subscription of a name has consumers, so that the group of that name is in use."""
        return any(
            subscription.consumers
            for names in self._at.values()
            if (subscription := names.get(name)) is not None and subscription.durable
        )

    def close(self) -> None:
        """Store what was acknowledged last, and let no timer run any more: the server stops."""
        for names in self._at.values():
            for subscription in names.values():
                subscription.close()
