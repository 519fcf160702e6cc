"""Byte addresses against a model: whatever is written, deleted, stopped and killed, bytes stay where they were."""

from random import Random

import pytest

from millstream.wire.compression import Codec
from tests.support.batches import batch
from tests.unit.broker.simulated_broker import append
from tests.unit.sessions.kafka07.conversation import Conversation
from tests.unit.wire.kafka07.sets import message_set, wrapper

STEPS = 120
SEEDS = 12
WHAT = ("kafka", "kafka", "old", "old", "wrapper", "delete", "restart", "kill", "magic", "time", "look")


class Model:
    """What the partition holds: every byte since the beginning, and where the message of each offset begins."""

    def __init__(self) -> None:
        self.body = b""
        self.begins: list[int] = []
        self.start = 0
        self.magic = 0

    def add(self, encoded: bytes, count: int = 1) -> None:
        """Take note of a message, or of a compressed one that stands for several."""
        self.begins += [len(self.body)] * count
        self.body += encoded

    @property
    def first(self) -> int:
        """The first address that is left."""
        return self.begins[self.start] if self.start < len(self.begins) else len(self.body)


def step(client: Conversation, model: Model, random: Random) -> None:
    """Do one thing to the server, and to the model."""
    what = random.choice(
        ["kafka", "kafka", "old", "old", "wrapper", "delete", "restart", "kill", "magic", "time", "look"]
    )
    value = random.randbytes(random.choice([0, 1, 20, 500, 9000]))
    count = random.randrange(1, 30)
    if what == "kafka":
        append(client.partition(), batch(value, count, timestamp_ms=client.runtime.now_ms()))
        for _ in range(count):
            model.add(message_set(value, magic=model.magic))
        if random.random() < 0.8:
            client.runtime.run()
    elif what == "old":
        client.produce(message_set(*[value] * count))
        for _ in range(count):
            model.add(message_set(value))
    elif what == "wrapper":
        encoded = wrapper([value] * count, random.choice([Codec.GZIP, Codec.SNAPPY]))
        client.produce(encoded)
        model.add(encoded, count)
    elif what == "delete":
        client.first()  # what was never counted is not kept
        model.start = random.randrange(model.start, min(len(model.begins), model.start + 60) + 1)
        client.wait(client.broker.delete_records(client.partition(), model.start))
    elif what == "restart":
        client.restart()
    elif what == "kill":
        client.runtime.run()
        client.kill()
        client.start()
    elif what == "magic":
        client.end()  # what was written before is counted in the magic of then
        model.magic = client.settings.kafka07_magic = random.randrange(2)
        client.restart()
    elif what == "time":
        client.pass_ms(random.randrange(5000))
    else:
        check(client, model, random)


def check(client: Conversation, model: Model, random: Random) -> None:
    """See that the addresses are those of the model, and that bytes are where they should be."""
    assert (client.first(), client.end()) == (model.first, len(model.body))
    for _ in range(5):
        address = random.randrange(model.first, len(model.body) + 1)
        size = random.choice([1, 60, 5000, 10**6])
        assert client.fetch(address, size) == (0, model.body[address : address + size])
    if model.first:
        assert client.fetch(model.first - 1) == (1, b"")


@pytest.mark.parametrize("seed", range(SEEDS))
def test_bytes_stay_where_they_are(seed: int, tmp_path: object) -> None:
    random = Random(seed)
    client = Conversation(f"{tmp_path}/metadata.sqlite", log__segment__bytes="30000")
    client.create("orders")
    client.end()
    model = Model()
    for _ in range(STEPS):
        step(client, model, random)
    check(client, model, random)
