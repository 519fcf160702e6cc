"""kill -9 of a real server while it compacts: the latest of each key is there, at its offset, whatever happens.

MILLSTREAM_KILL_ROUNDS sets how many kills there are, MILLSTREAM_KILL_SEED when they come.
"""

import os
import time
from pathlib import Path
from random import Random

import pytest
from confluent_kafka import Message, Producer

from tests.conformance.confluent.test_compaction import read_topic
from tests.support.kafka_load import create_topic
from tests.support.server_process import lasting_listener, start
from tests.support.waiting import eventually

SEED = int(os.environ.get("MILLSTREAM_KILL_SEED", "1"))
ROUNDS = int(os.environ.get("MILLSTREAM_KILL_ROUNDS", "8"))
KEYS = 200
SETTINGS = ["log.cleaner.backoff.ms=20", "flush.interval.ms=20"]
CONFIGS = {
    "cleanup.policy": "compact",
    "segment.bytes": "30000",
    "segment.ms": "100",
    "min.cleanable.dirty.ratio": "0.01",
}


def wait_for_draft(data_dir: str) -> None:
    """Wait until a segment is being written anew, but not long: perhaps there is none to come."""
    (directory,) = Path(data_dir, "topics").glob("*/0")
    end = time.monotonic() + 1
    while time.monotonic() < end and not any(name.endswith(".new") for name in os.listdir(directory)):
        pass


@pytest.mark.timeout(90 + 5 * ROUNDS)
def test_kill_while_compacting(tmp_path: Path) -> None:
    random = Random(SEED)
    data_dir, listen = str(tmp_path / "data"), lasting_listener()
    server = start(data_dir, listen, SETTINGS)
    try:
        create_topic(server.kafka, "table", 1, CONFIGS)
        producer = Producer(
            {"bootstrap.servers": server.kafka, "enable.idempotence": True, "linger.ms": 2, "message.timeout.ms": 0}
        )
        written: dict[bytes, tuple[int, bytes]] = {}

        def note(error: object, message: Message) -> None:
            key, value, offset = message.key(), message.value(), message.offset()
            assert error is None
            assert isinstance(key, bytes)
            assert isinstance(value, bytes)
            assert offset is not None
            written[key] = offset, value

        drafts = 0
        for number in range(ROUNDS):
            for key in random.choices(range(KEYS), k=2000):
                producer.produce("table", b"%d" % number + random.randbytes(60), b"key %d" % key, on_delivery=note)
            assert producer.flush(60) == 0
            wait_for_draft(data_dir)
            time.sleep(random.random() * 0.005)
            server.kill()
            drafts += any(Path(data_dir).rglob("*.log.new"))
            server = start(data_dir, listen, SETTINGS)
            found = read_topic(server, "table")
            offsets = [offset for offset, _, _ in found]
            assert offsets == sorted(set(offsets))
            assert {key: (offset, value) for offset, key, value in found} == written
        expected = sorted((offset, key, value) for key, (offset, value) in written.items())
        eventually(lambda: read_topic(server, "table") == expected)
        print(f"{ROUNDS} kills, of which {drafts} left a draft")
        assert "damage" not in server.log()
        assert server.stop() == 0
    finally:
        server.kill()
