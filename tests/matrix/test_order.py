"""Everything arrives, in order, at its offset: whatever the writer compresses with or batches, in every partition."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import pulsar
import pytest

from millstream.wire.compression import Codec
from tests.matrix.conftest import Clients
from tests.matrix.message import Message
from tests.matrix.spark import SparkReader

PARTITIONS: Final = 3
EACH: Final = 30
BATCH: Final = 12
"""Messages of a batch; the last one of a partition is smaller."""
_TIME_US: Final = 1_600_000_000_000_000
READERS: Final = ("kafka", "kafka07", "pulsar", "iggy", "spark")
Write = Callable[[Clients, str, list[Message]], None]
Found = dict[str, dict[str, list[Message]]]


@dataclass(frozen=True, slots=True)
class Case:
    """A way to write."""

    name: str
    write: Write


def _kafka(codec: str, *, batched: bool) -> Case:
    settings = {"compression_type": codec, "batch_num_messages": BATCH if batched else 1}

    def write(clients: Clients, topic: str, messages: list[Message]) -> None:
        clients.kafka.write(topic, messages, **settings)

    return Case(f"kafka-{codec}-{'batched' if batched else 'single'}", write)


def _kafka07(codec: Codec, magic: int, batch: int) -> Case:
    def write(clients: Clients, topic: str, messages: list[Message]) -> None:
        clients.kafka07.write(topic, messages, codec=codec, magic=magic, batch=batch)

    return Case(f"kafka07-{codec.name.lower()}-{magic}-{batch}", write)


def _pulsar(compression: Any, batch: int) -> Case:
    def write(clients: Clients, topic: str, messages: list[Message]) -> None:
        clients.pulsar.write(topic, messages, batch=batch, compression=compression, partitions=PARTITIONS)

    return Case(f"pulsar-{compression.name.lower()}-{batch}", write)


def _iggy(batch: int) -> Case:
    def write(clients: Clients, topic: str, messages: list[Message]) -> None:
        clients.iggy.write(topic, messages, batch=batch)

    return Case(f"iggy-{batch}", write)


_COMPRESSIONS: Final = pulsar.CompressionType
CASES: Final = (
    *(_kafka(codec, batched=True) for codec in ("none", "gzip", "snappy", "lz4", "zstd")),
    _kafka("none", batched=False),
    _kafka("zstd", batched=False),
    *(_kafka07(codec, 1, BATCH) for codec in (Codec.NONE, Codec.GZIP, Codec.SNAPPY)),
    _kafka07(Codec.NONE, 0, BATCH),
    _kafka07(Codec.GZIP, 0, 1),
    *(
        _pulsar(one, BATCH)
        for one in (
            _COMPRESSIONS.NONE,
            _COMPRESSIONS.LZ4,
            _COMPRESSIONS.ZLib,
            _COMPRESSIONS.ZSTD,
            _COMPRESSIONS.SNAPPY,
        )
    ),
    _pulsar(_COMPRESSIONS.NONE, 0),
    _pulsar(_COMPRESSIONS.ZSTD, 0),
    _iggy(BATCH),
    _iggy(1),
)


def _messages() -> list[Message]:
    """Messages of every partition, by turns. Values are of many sizes, and hold every byte."""
    return [
        Message(
            value=b"%d %d " % (partition, number) + bytes(range(256)) * (number % 4),
            time_us=_TIME_US + 1000 * (number * PARTITIONS + partition),
            partition=partition,
        )
        for number in range(EACH)
        for partition in range(PARTITIONS)
    ]


def _in(partition: int, messages: list[Message]) -> list[Message]:
    return [one for one in messages if one.partition == partition]


@pytest.fixture(scope="module")
def found(clients: Clients, spark_reader: SparkReader) -> Found:
    """A topic for each case, as every reader sees it."""
    topics = {f"order-{case.name}": EACH * PARTITIONS for case in CASES}
    clients.kafka.create(*topics, partitions=PARTITIONS)
    for case in CASES:
        case.write(clients, f"order-{case.name}", _messages())
    return {
        "kafka": clients.kafka.read(topics),
        "kafka07": clients.kafka07.read(topics, PARTITIONS),
        "pulsar": clients.pulsar.read(topics, PARTITIONS),
        "iggy": clients.iggy.read(topics, PARTITIONS),
        "spark": spark_reader.read(topics),
    }


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_everything_arrives_in_order(found: Found, case: Case, reader: str) -> None:
    there = found[reader][f"order-{case.name}"]
    native = found[case.name.split("-")[0]][f"order-{case.name}"]
    sent = _messages()
    for partition in range(PARTITIONS):
        mine = _in(partition, there)
        assert [one.value for one in mine] == [one.value for one in _in(partition, sent)]
        if reader == "kafka07":
            continue  # it knows neither offsets nor times
        assert [one.offset for one in mine] == list(range(EACH))
        if not case.name.startswith("kafka07"):
            times_ms = [(one.time_us or 0) // 1000 for one in _in(partition, native)]
            assert [(one.time_us or 0) // 1000 for one in mine] == times_ms
    if case.name.startswith(("kafka-", "pulsar-")) and reader != "kafka07":
        assert {one.time_us for one in there} == {one.time_us for one in sent}
