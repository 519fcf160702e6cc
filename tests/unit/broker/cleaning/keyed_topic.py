"""A compacted topic of a simulated broker: what is written to it, and what cleaning leaves."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from millstream.broker.cleaning.cleaner import _Dirty
from millstream.broker.keyed_frames import FrameRecords
from millstream.model.frame import FrameHeader, Magic, read_frame_header
from millstream.model.record import Record
from millstream.sessions.compaction import NeutralFrameRecords
from millstream.sessions.kafka.compaction import KafkaFrameRecords
from millstream.sessions.pulsar.compaction import PulsarFrameRecords
from millstream.storage.log import PartitionLog
from millstream.wire.compression import Codec
from millstream.wire.kafka.records import build_batch, read_frame
from tests.support.batches import read_from
from tests.unit.broker.simulated_broker import SimulatedBroker, append

__all__ = ["READERS", "KeyedTopic", "Pair", "headers_of", "keyed_batch", "records_of"]

Pair = tuple[bytes | None, bytes | None]
READERS: Final[dict[int, FrameRecords]] = {
    Magic.KAFKA_V2: KafkaFrameRecords(),
    Magic.PULSAR_ENTRY: PulsarFrameRecords(),
    Magic.IGGY_BATCH: NeutralFrameRecords(),
    Magic.KAFKA07_SET: NeutralFrameRecords(),
}
BACKOFF_MS: Final = 15_000


def keyed_batch(
    pairs: Sequence[Pair],
    timestamp_ms: int = 1000,
    codec: Codec = Codec.NONE,
    producer: tuple[int, int, int] = (-1, -1, -1),
) -> bytearray:
    """A batch of keys and values; the n-th record is n ms later than the first."""
    records = [
        Record(offset=n, timestamp_ms=timestamp_ms + n, key=key, value=value, headers=(("n", b"%d" % n),))
        for n, (key, value) in enumerate(pairs)
    ]
    producer_id, epoch, sequence = producer
    return build_batch(records, codec=codec, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence)


def records_of(frames: Sequence[bytes]) -> list[Record]:
    """The records of Kafka frames."""
    return [record for frame in frames for record in read_frame(memoryview(frame))]


def headers_of(frames: Sequence[bytes]) -> list[FrameHeader]:
    """The headers of frames."""
    return [read_frame_header(frame) for frame in frames]


class KeyedTopic:
    """The topic.

    Args:
        database: of the broker, so that it can be started again.
        configs: of the topic; it has small segments by default.
    """

    def __init__(self, database: str = "", **configs: str) -> None:
        self.broker = SimulatedBroker(database)
        self._register()
        self.broker.create("orders", 1, **{"cleanup__policy": "compact", "segment__bytes": "400"} | configs)

    def _register(self) -> None:
        self.broker.broker.cleaner.readers.update(READERS)

    @property
    def log(self) -> PartitionLog:
        """Of its only partition."""
        return self.broker.topic().partitions[0].log

    def put(self, *pairs: Pair, timestamp_ms: int = 1000, producer: tuple[int, int, int] = (-1, -1, -1)) -> int:
        """Append a batch; gives its base offset."""
        frame = keyed_batch(pairs, timestamp_ms, producer=producer)
        return append(self.broker.topic().partitions[0], frame).base_offset

    def put_each(self, *keys: bytes, value: bytes = b"v" * 100) -> None:
        """Append a batch for each key."""
        for key in keys:
            self.put((key, value))

    def seal(self) -> None:
        """Let all that was written be in closed segments."""
        self.log._roll(self.broker.runtime.now_ms())
        self.flush()

    def flush(self) -> None:
        """Put the log on the disk."""
        pending = self.broker.topic().partitions[0].durable()
        assert pending is not None
        self.broker.wait(pending)

    def clean(self, backoffs: int = 1) -> None:
        """Let the cleaner have its time."""
        self.flush()
        self.broker.pass_ms(BACKOFF_MS * backoffs)

    def clean_meanwhile(self, steps: int, action: Callable[[], object]) -> None:
        """Let the cleaner have its time, and do something when a run has taken about so many steps."""
        runtime, cleaner = self.broker.runtime, self.broker.broker.cleaner
        begin, runs = cleaner._clean, cleaner.figures.runs
        done: list[int] = []

        def step(left: int) -> None:
            if left:
                runtime.call_soon(lambda: step(left - 1))
            else:
                done.append(cleaner.figures.runs)
                action()

        def clean(dirty: _Dirty) -> None:
            cleaner._clean = begin  # type: ignore[method-assign]
            begin(dirty)
            step(steps)

        self.flush()
        cleaner._clean = clean  # type: ignore[method-assign]
        self.broker.pass_ms(BACKOFF_MS)
        assert done == [runs], "the run was over before"

    def restart(self) -> None:
        """Stop cleanly and start again."""
        self.broker.restart()
        self._register()

    def start_again(self) -> None:
        """Start after a kill or a crash."""
        self.broker.start()
        self._register()

    def frames(self) -> list[bytes]:
        """All frames."""
        return read_from(self.log, self.log.start_offset)

    def left(self) -> list[tuple[int, bytes | None, bytes | None]]:
        """Offset, key and value of every record."""
        return [(one.offset, one.key, one.value) for one in records_of(self.frames())]

    def keyed(self) -> list[tuple[int, bytes | None]]:
        """Offset and key of every record."""
        return [(offset, key) for offset, key, _ in self.left()]

    def files(self) -> Iterator[str]:
        """The names of its files."""
        return iter(self.broker.files.list_directory(self.log.directory))
