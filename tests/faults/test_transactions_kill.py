"""kill -9 of a real server under a transactional copier, again and again: everything is copied exactly once.

MILLSTREAM_KILL_ROUNDS sets how many kills there are; without it, as many as fit into some seconds.
MILLSTREAM_KILL_SEED sets when they come.
"""

import os
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from tests.support.kafka_load import create_topic
from tests.support.server_process import lasting_listener, start
from tests.support.transactional_copier import Copier

SEED = int(os.environ.get("MILLSTREAM_KILL_SEED", "1"))
ROUNDS = int(os.environ.get("MILLSTREAM_KILL_ROUNDS", "0"))
SECONDS = 12.0
TIMEOUT_S = 60.0
COUNT = 3000
PARTITIONS = 2
PROMPT = ["group.initial.rebalance.delay.ms=0"]
SEGMENTS = {"segment.bytes": "65536"}


def fill(bootstrap: str, topic: str) -> None:
    producer: Any = Producer({"bootstrap.servers": bootstrap})
    for n in range(COUNT):
        producer.produce(topic, b"%d" % n, partition=n % PARTITIONS)
    assert producer.flush(TIMEOUT_S) == 0


def read(bootstrap: str, topic: str, partition: int, isolation_level: str) -> list[int]:
    """All that a reader sees of a partition."""
    consumer: Any = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "reader", "isolation.level": isolation_level}
    )
    try:
        place = TopicPartition(topic, partition, 0)
        _, end = consumer.get_watermark_offsets(place, TIMEOUT_S)
        consumer.assign([place])
        values: list[int] = []
        deadline_s = time.monotonic() + TIMEOUT_S
        while consumer.position([place])[0].offset < end:
            values += [int(one.value()) for one in consumer.consume(1000, 0.2) if one.error() is None]
            assert time.monotonic() < deadline_s, f"a reader stands still behind {len(values)} values"
            if len(values) >= COUNT // PARTITIONS and isolation_level == "read_committed":
                break  # what is aborted at the end moves no reader's position
        return values + [int(one.value()) for one in consumer.consume(1000, 1) if one.error() is None]
    finally:
        consumer.close()


@pytest.mark.timeout(150 + 3 * ROUNDS)
def test_everything_is_copied_exactly_once(tmp_path: Path) -> None:
    data_dir = str(tmp_path / "data")
    listen = lasting_listener()
    server = start(data_dir, listen, PROMPT)
    random = Random(SEED)
    kills = 0
    try:
        for topic in ("source", "sink"):
            create_topic(server.kafka, topic, PARTITIONS, SEGMENTS)
        fill(server.kafka, "source")
        with Copier(server.kafka, "source", "sink", "copier", COUNT, Random(SEED)) as copier:
            end_s = time.monotonic() + SECONDS
            while not copier.is_done and (kills < ROUNDS if ROUNDS else time.monotonic() < end_s):
                time.sleep(random.choice((0.05, 0.3, 1.0)) * random.random())
                server.kill()
                server = start(data_dir, listen, PROMPT)
                kills += 1
            deadline_s = time.monotonic() + 1.5 * TIMEOUT_S
            while not copier.is_done:
                assert time.monotonic() < deadline_s, "the copier does not come to an end"
                time.sleep(0.1)
        if copier.failure is not None:
            raise copier.failure
        print(
            f"copier: seed {SEED}, {kills} kills, {copier.commits} commits, {copier.aborts} aborts, "
            f"{copier.lives} lives"
        )
        for partition in range(PARTITIONS):
            assert read(server.kafka, "sink", partition, "read_committed") == list(
                range(partition, COUNT, PARTITIONS)
            )
        server.kill()
        server = start(data_dir, listen, PROMPT)
        assert read(server.kafka, "sink", 0, "read_committed") == list(range(0, COUNT, PARTITIONS))
        assert len(read(server.kafka, "sink", 0, "read_uncommitted")) > COUNT // PARTITIONS
    finally:
        if server.process.poll() is None:
            assert server.stop() == 0
    assert "Traceback" not in server.log()
