"""Batches reach brokers once each, through restarts and refusals."""

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from millstream.spark.errors import BadOption, BrokerUnreachable, TopicMissing, WriteRefused
from millstream.spark.write import task
from millstream.spark.write.options import WriteOptions
from millstream.spark.write.publishing import publish
from millstream.spark.write.task import Job, Written, write_rows
from millstream.spark.write.transactions import Slot
from tests.spark.conftest import Topics
from tests.spark.write.conftest import messages, options_for, values
from tests.spark.write.tables import table
from tests.support.server_process import ServerProcess, serving, start

_JOB = Job(application_id="tests", query_id=None, batch_id=None)


def _write(options: WriteOptions, *batches: Any) -> Written:
    return write_rows(options, _JOB, Slot(0, 0), iter(batches))


def _at_least_once(server: str, **options: object) -> WriteOptions:
    return options_for(server, delivery="at-least-once", **options)


def _numbers(begin: int, end: int) -> Any:
    return table(value=[b"%07d" % n for n in range(begin, end)])


def test_rows_arrive_in_their_order(broker: ServerProcess, topics: Topics) -> None:
    topic = topics.create("order", partitions=3)
    options = _at_least_once(broker.kafka, topic=topic, kafka_batch_size=2000)
    keys = [b"%d" % (n % 50) for n in range(20_000)]
    written = _write(options, table(key=keys, value=[b"%07d" % n for n in range(20_000)]), table(value=[]))
    assert written.part is None, "there is no transaction to commit"
    found = messages(broker.kafka, topic)
    assert sum(map(len, found.values())) == 20_000
    assert written.ends == {(topic, index): len(each) for index, each in found.items()}
    for each in found.values():
        read = [message.value() for message in each]
        assert read == sorted(read)


def test_topics_by_the_column(broker: ServerProcess, topics: Topics) -> None:
    names = [topics.create("by-column", partitions=count) for count in (1, 4, 2)]
    rows = table(topic=[names[n % 3] for n in range(300)], value=[b"%d" % n for n in range(300)])
    _write(_at_least_once(broker.kafka), rows)
    for index, name in enumerate(names):
        assert values(broker.kafka, name) == sorted(b"%d" % n for n in range(index, 300, 3))


def test_a_topic_is_created_as_the_broker_is_configured(broker: ServerProcess) -> None:
    _write(_at_least_once(broker.kafka, topic="created-by-the-sink"), table(value=[b"1"]))
    assert values(broker.kafka, "created-by-the-sink") == [b"1"]
    with pytest.raises(TopicMissing, match="does not take the topic 'not a name': INVALID_TOPIC_EXCEPTION"):
        _write(_at_least_once(broker.kafka, topic="not a name"), table(value=[b"1"]))


@pytest.fixture
def strict_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that does not create topics that somebody asks for."""
    data_dir = str(tmp_path_factory.mktemp("strict") / "data")
    with serving(data_dir, settings=["auto.create.topics.enable=false"]) as server:
        yield server


def test_a_topic_that_is_not_created(strict_broker: ServerProcess) -> None:
    begun = time.monotonic()
    with pytest.raises(
        TopicMissing, match=r"there is no topic 'nowhere' at .* change the option topic, or create it"
    ):
        _write(_at_least_once(strict_broker.kafka, topic="nowhere"), table(value=[b"1"]))
    assert time.monotonic() - begun < 10


def test_a_batch_that_is_too_large(broker: ServerProcess, topics: Topics) -> None:
    topic = topics.create("too-large", max_message_bytes="1000")
    with pytest.raises(WriteRefused, match=r"too-large.* takes no batch of .* \(1 records\): take less .*batch.size"):
        _write(_at_least_once(broker.kafka, topic=topic), table(value=[b"x" * 2000]))


def test_a_compacted_topic_takes_no_record_without_a_key(broker: ServerProcess, topics: Topics) -> None:
    topic = topics.create("compacted", cleanup_policy="compact")
    with pytest.raises(WriteRefused, match=r"does not take a batch: INVALID_RECORD .*without a key"):
        _write(_at_least_once(broker.kafka, topic=topic), table(value=[b"x"]))


def test_nobody_answers() -> None:
    begun = time.monotonic()
    with pytest.raises(BrokerUnreachable, match=r"no Kafka broker answers at 127.0.0.1:1 .*kafka.bootstrap.servers"):
        _write(_at_least_once("127.0.0.1:1", topic="t", kafka_delivery_timeout_ms=500), table(value=[b"x"]))
    assert time.monotonic() - begun < 5


def test_a_transaction_may_not_be_longer_than_the_broker_allows(broker: ServerProcess, topics: Topics) -> None:
    topic = topics.create("long")
    options = options_for(broker.kafka, topic=topic, kafka_transaction_timeout_ms=2**31 - 1)
    with pytest.raises(BadOption, match=r"kafka.transaction.timeout.ms: .* transaction.max.timeout.ms"):
        _write(options, table(value=[b"x"]))


@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
def test_a_broker_that_is_killed_and_comes_back(
    delivery: str, own_broker: ServerProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task, "_BLOCK_BYTES", 60_000)
    Topics(own_broker.kafka).create_exactly("restarts", partitions=4)
    options = options_for(own_broker.kafka, delivery=delivery, topic="restarts", kafka_batch_size=8_000)
    reached = [threading.Event() for _ in range(2)]

    def batches() -> Iterator[Any]:
        for number in range(40):
            if number % 20 == 10:
                reached[number // 20].set()
            yield _numbers(number * 2000, (number + 1) * 2000)

    result: list[Written] = []
    writer = threading.Thread(target=lambda: result.append(write_rows(options, _JOB, Slot(0, 0), batches())))
    writer.start()
    server = own_broker
    for event in reached:
        assert event.wait(60)
        server.kill()
        time.sleep(0.3)
        server = start(own_broker.data_dir, listen=f"kafka={own_broker.kafka}")
    try:
        writer.join(60)
        assert result, "the task has failed"
        publish(options, result)
        assert values(server.kafka, "restarts") == [b"%07d" % n for n in range(80_000)]
    finally:
        assert server.stop() == 0
        assert server.process.stdout is not None
        server.process.stdout.close()
