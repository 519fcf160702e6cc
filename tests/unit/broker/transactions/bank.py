"""A simulated broker with transactions, and what a session does with them."""

from collections.abc import Sequence

from millstream.broker.partition import Partition
from millstream.broker.subscriptions import StartAt, Subscribing, Subscription, SubscriptionKind
from millstream.broker.subscriptions.consumer import Consumer
from millstream.broker.transactions import SubscriptionPlace, Transactions
from millstream.model.frame import frame_crc, read_frame_header, transaction_fields
from tests.support.batches import batch
from tests.unit.broker.simulated_broker import SimulatedBroker, append
from tests.unit.broker.subscriptions.desk import NotedReceiver, TableInspector

__all__ = ["Bank", "transactional"]

TIMEOUT_MS = 60_000


def transactional(number: int, count: int = 1) -> bytearray:
    """A frame of a transaction."""
    frame = batch(b"value", count)
    epoch, sequence = transaction_fields(number)
    frame[21:23] = (0x10).to_bytes(2, "big")
    frame[51:53] = epoch.to_bytes(2, "big")
    frame[53:57] = sequence.to_bytes(4, "big")
    frame[17:21] = frame_crc(memoryview(frame)).to_bytes(4, "big")
    return frame


class Bank:
    """A broker with a topic of two partitions.

    Args:
        database: file of the metadata store, so that it outlives the broker.
    """

    def __init__(self, database: str = "") -> None:
        self.broker = SimulatedBroker(database)
        self.broker.create("orders", 2, retention__ms="-1")
        self.inspector = TableInspector()

    @property
    def transactions(self) -> Transactions:
        return self.broker.broker.transactions

    def partition(self, index: int = 0) -> Partition:
        return self.broker.topic().partitions[index]

    def kill(self) -> None:
        """Let the process die, and start another."""
        self.broker.kill()
        self.broker.start()

    def begin(self, *partitions: int, subscription: str = "", timeout_ms: int = TIMEOUT_MS) -> int:
        """Begin a transaction that may write to some partitions, and acknowledge in the first one."""
        number = self.broker.wait(self.transactions.begin(timeout_ms))
        topic = self.broker.topic()
        if partitions:
            self.broker.wait(self.transactions.add_partitions(number, [(topic, one) for one in partitions]))
        if subscription:
            place = SubscriptionPlace(topic.id, 0, subscription)
            self.broker.wait(self.transactions.add_subscriptions(number, [place]))
        return number

    def write(self, number: int, count: int = 1, index: int = 0) -> int:
        """Write a frame in a transaction; gives its base offset."""
        self.transactions.check_writer(number, self.broker.topic(), index)
        frame = transactional(number, count)
        partition = self.partition(index)
        base_offset = append(partition, frame).base_offset
        self.transactions.wrote(number, partition, base_offset, base_offset + count)
        return base_offset

    def append(self, count: int = 1, index: int = 0) -> int:
        """Write a frame in no transaction."""
        return append(self.partition(index), batch(b"value", count)).base_offset

    def end(self, number: int, *, commit: bool) -> None:
        self.broker.wait(self.transactions.end(number, commit=commit))

    def subscribe(
        self, kind: SubscriptionKind = SubscriptionKind.EXCLUSIVE, name: str = "s", permits: int = 1000
    ) -> tuple[Consumer, NotedReceiver]:
        """Connect a consumer to the first partition, from its beginning."""
        receiver = NotedReceiver()
        request = Subscribing(kind=kind, consumer_name="c", inspector=self.inspector, start=StartAt.EARLIEST)
        subscriptions = self.broker.broker.subscriptions
        consumer = self.broker.wait(subscriptions.subscribe(self.broker.topic(), 0, name, request, receiver))
        consumer.flow(permits)
        self.broker.runtime.run()
        return consumer, receiver

    def subscription(self, name: str = "s") -> Subscription:
        found = self.broker.broker.subscriptions.find(self.broker.topic(), 0, name)
        assert found is not None
        return found

    def acknowledge(self, number: int, *base_offsets: int | tuple[int, int]) -> None:
        """Acknowledge frames, or records of frames (base offset, what is still wanted), in a transaction."""
        wanted: Sequence[tuple[int, int | None]] = [
            one if isinstance(one, tuple) else (one, None) for one in base_offsets
        ]
        self.broker.wait(self.transactions.acknowledge(number, self.subscription(), wanted))

    def run(self) -> None:
        self.broker.runtime.run()

    def readable(self, index: int = 0) -> list[int]:
        """Base offsets of all that may be read."""
        partition = self.partition(index)
        offset, found = partition.log.start_offset, []
        while offset < partition.stable_offset:
            data, behind = partition.read(offset, 1 << 20)
            position = 0
            while position < len(data):
                header = read_frame_header(data, position)
                if not partition.is_aborted(header.base_offset):
                    found.append(header.base_offset)
                position += header.size
            offset = behind
        return found
