"""Topics that are compacted while they are read: records that are gone are no loss, wherever they are read from."""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from millstream.spark.client import Client
from millstream.spark.lag import measure
from tests.spark.conftest import Topics
from tests.spark.read.readers_bed import batch_rows, stream_reader, stream_rows
from tests.support.sample_records import Sample
from tests.support.server_process import ServerProcess, serving
from tests.support.waiting import eventually

KEYS = 20
BASE_MS = 1_700_000_000_000
CONFIGS = {
    "cleanup_policy": "compact",
    "segment_bytes": "4000",
    "segment_ms": "200",
    "min_cleanable_dirty_ratio": "0.01",
}
EVERYWHERE = pytest.mark.parametrize("direct", ["always", "never"])


@pytest.fixture(scope="module")
def cleaning_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    settings = ["log.cleaner.backoff.ms=50", "flush.interval.ms=50"]
    with serving(str(tmp_path_factory.mktemp("cleaning") / "data"), settings=settings) as server:
        yield server
        assert "Traceback" not in server.log()


@pytest.fixture(scope="module")
def compacted(cleaning_broker: ServerProcess) -> Topics:
    return Topics(cleaning_broker.kafka)


def keyed(first: int, stop: int) -> list[Sample]:
    return [Sample(b"key %d" % (n % KEYS), b"%06d" % n + bytes(50), (), BASE_MS + n) for n in range(first, stop)]


def numbers(rows: list[dict[str, Any]]) -> list[int]:
    return [int(bytes(row["value"])[:6]) for row in rows]


@EVERYWHERE
def test_a_batch_reads_what_is_left(cleaning_broker: ServerProcess, compacted: Topics, direct: str) -> None:
    topic = compacted.create("compacted", 1, **CONFIGS)
    compacted.write(topic, keyed(0, 500), batch_num_messages=30)

    def read() -> list[dict[str, Any]]:
        return batch_rows(cleaning_broker.kafka, subscribe=topic, direct=direct)

    eventually(lambda: len(read()) == KEYS)
    rows = read()
    assert [row["offset"] for row in rows] == numbers(rows) == list(range(480, 500))
    assert [row["key"] for row in rows] == [b"key %d" % (n % KEYS) for n in range(480, 500)]
    with Client(cleaning_broker.kafka) as client:
        found = measure(client, {topic: {0: 100}}, BASE_MS / 1000 + 10)[topic]
        assert found.rows == 400, "as consumers of Kafka count"
        assert found.seconds == pytest.approx(10 - 0.48, abs=0.1), "the first that is left"


@EVERYWHERE
def test_reading_while_segments_are_replaced(cleaning_broker: ServerProcess, compacted: Topics, direct: str) -> None:
    topic = compacted.create("replaced", 1, **CONFIGS)
    reader = stream_reader(cleaning_broker.kafka, subscribe=topic, direct=direct, startingOffsets="earliest")
    begin = reader.initialOffset()
    written, streamed = 0, {}
    end_s = time.monotonic() + 6
    while time.monotonic() < end_s:
        compacted.write(topic, keyed(written, written + 100), batch_num_messages=10)
        written += 100
        found = batch_rows(cleaning_broker.kafka, subscribe=topic, direct=direct)
        assert numbers(found)[-KEYS:] == list(range(written - KEYS, written))
        assert [row["offset"] for row in found] == numbers(found)
        end = reader.latestOffset(begin, reader.getDefaultReadLimit())
        for row in stream_rows(reader, begin, end):
            streamed[row["key"]] = row["offset"]
        begin = end
    assert sorted(streamed.values()) == list(range(written - KEYS, written))
