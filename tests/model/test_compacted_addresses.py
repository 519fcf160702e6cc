"""Readers by byte address of a topic that is compacted meanwhile: none misses what is left or meets garbage."""

from random import Random

import pytest

from millstream.model.frame import Magic
from millstream.wire.compression import Codec
from millstream.wire.kafka07.messages import check_crc, message_at, payloads
from tests.support.batches import read_all
from tests.unit.broker.cleaning.keyed_topic import READERS, keyed_batch, records_of
from tests.unit.broker.simulated_broker import append
from tests.unit.sessions.kafka07.conversation import Conversation
from tests.unit.wire.kafka07.sets import message_set, wrapper

STEPS = 40
SEEDS = 5
KEYS = [b"%d" % n for n in range(20)]


class Reader:
    """A client that counts addresses as those of Kafka 0.7 do: by the bytes that it was given."""

    def __init__(self, size: int) -> None:
        self.address = 0
        self.size = size
        self.seen: set[bytes] = set()

    def read(self, client: Conversation) -> bool:
        """Fetch once; gives whether there was anything."""
        error, data = client.fetch(self.address, self.size)
        assert error == 0
        position, body = 0, memoryview(data)
        while (message := message_at(body, position)) is not None:
            piece = body[position : message.stop]
            check_crc(body, message)
            self.seen.update(bytes(one) for one in payloads(piece))
            position = message.stop
        self.address += position
        assert position or len(data) < self.size, "a message is smaller than what is fetched"
        return position > 0


class Compacted:
    """A topic, its writers and its readers."""

    def __init__(self, database: str, random: Random) -> None:
        self.random = random
        self.client = Conversation(database, log__segment__bytes="30000")
        self.client.create("orders")
        self.set_policy("compact")
        self.register()
        self.client.end()
        self.readers = [Reader(size) for size in (12_000, 50_000, 10**6)]
        self.number = 0

    def register(self) -> None:
        self.client.broker.cleaner.readers.update(READERS)

    def value(self) -> bytes:
        self.number += 1
        return b"%06d" % self.number + bytes(self.random.choice([0, 10, 200, 3000]))

    def write_keyed(self) -> None:
        for _ in range(self.random.randrange(1, 12)):
            keys = self.random.choices(KEYS, k=self.random.randrange(1, 8))
            frame = keyed_batch([(key, self.value()) for key in keys], self.client.runtime.now_ms())
            append(self.client.partition(), frame)
        self.client.runtime.run()

    def write_old(self) -> None:
        """Such clients may write while the topic is not compacted."""
        values = [self.value() for _ in range(self.random.randrange(1, 4))]
        self.set_policy("delete")
        self.client.produce(self.random.choice([message_set(*values), wrapper(values, Codec.GZIP)]))
        self.set_policy("compact")

    def set_policy(self, policy: str) -> None:
        configs = {"cleanup.policy": policy, "min.cleanable.dirty.ratio": "0"}
        self.client.wait(self.client.broker.topics.set_configs(self.client.topic(), configs))

    def clean(self) -> None:
        durable = self.client.partition().durable()
        assert durable is not None
        self.client.wait(durable)
        self.client.pass_ms(self.random.choice([5000, 40_000]))

    def restart(self) -> None:
        if self.random.random() < 0.5:
            self.client.restart()
        else:
            self.client.runtime.run()
            self.client.kill()
            self.client.start()
        self.register()

    def step(self) -> None:
        """Do one thing."""
        what = self.random.choice(["keyed"] * 4 + ["old", "clean", "clean", "restart", "read", "read"])
        match what:
            case "keyed":
                self.write_keyed()
            case "old":
                self.write_old()
            case "clean":
                self.clean()
            case "restart":
                self.restart()
            case "read":
                self.random.choice(self.readers).read(self.client)

    def left(self) -> set[bytes]:
        """The values of all records that are left."""
        found: set[bytes] = set()
        for frame in read_all(self.client.partition().log):
            if frame[16] == Magic.KAFKA07_SET:
                found.update(bytes(one) for one in payloads(memoryview(frame)[61:]))
            else:
                found.update(record.value or b"" for record in records_of([frame]))
        return found


@pytest.mark.parametrize("seed", range(SEEDS))
def test_nobody_misses_what_is_left(seed: int, tmp_path: object) -> None:
    topic = Compacted(f"{tmp_path}/metadata.sqlite", Random(seed))
    cleaned = 0
    for _ in range(STEPS):
        topic.step()
        cleaned = max(cleaned, topic.client.broker.cleaner.figures.after_bytes)
    assert cleaned, "something was cleaned"
    end = topic.client.end()
    starts = topic.client.offsets(-1)
    assert starts == sorted(starts, reverse=True)
    for reader in topic.readers:
        while reader.read(topic.client):
            pass
        assert topic.left() <= reader.seen
        assert reader.address <= end
