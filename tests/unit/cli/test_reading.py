"""The reading loop, driven by a consumer that plays back batches."""

import io
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from millstream.cli.connection import Connection
from millstream.cli.reading import Ends, Outage, Stop, read_records

Make = Callable[..., Any]


class PlayedBack:
    """A consumer that hands out these batches, and then asks to stop."""

    def __init__(self, batches: Sequence[Sequence[Any]], stop: Stop) -> None:
        self.batches = list(batches)
        self.stored: list[tuple[int, int]] = []
        self._stop = stop

    def consume(self, count: int, timeout_s: float) -> Sequence[Any]:
        if self.batches:
            return self.batches.pop(0)
        self._stop.requested = True
        return []

    def store_offsets(self, offsets: Sequence[Any]) -> None:
        self.stored += [(each.partition, each.offset) for each in offsets]


class Event:
    """A message that carries an error instead of a record."""

    def __init__(self, code: int, partition: int) -> None:
        self._error = KafkaError(code)
        self._partition = partition

    def error(self) -> KafkaError:
        return self._error

    def partition(self) -> int:
        return self._partition


def play(batches: Sequence[Sequence[Any]], **options: Any) -> tuple[bytes, PlayedBack, int]:
    stop, out = Stop(), io.BytesIO()
    consumer = PlayedBack(batches, stop)
    arguments: dict[str, Any] = {"count_max": None, "first_offsets": {}, "ends": None, "commits": False, **options}
    outage = Outage(Connection("127.0.0.1:9092", {}), patient=True)
    written = read_records(
        consumer, out, lambda record: (record.value() or b"") + b"\n", stop=stop, outage=outage, **arguments
    )
    return out.getvalue(), consumer, written


def records(make: Make, partition: int, offsets: range) -> list[Any]:
    return [make(b"%d-%d" % (partition, offset), partition_=partition, offset_=offset) for offset in offsets]


def test_records_are_written_until_it_is_told_to_stop(received: Make) -> None:
    out, consumer, count = play([records(received, 0, range(2)), [], records(received, 1, range(1))])
    assert (out, count, consumer.stored) == (b"0-0\n0-1\n1-0\n", 3, [])


def test_only_what_was_written_is_committed(received: Make) -> None:
    out, consumer, count = play([records(received, 0, range(5))], count_max=2, commits=True)
    assert (out, count, consumer.stored) == (b"0-0\n0-1\n", 2, [(0, 2)])


def test_records_before_the_first_wanted_offset_are_passed_over(received: Make) -> None:
    out, _, _ = play([records(received, 0, range(5))], first_offsets={0: 3})
    assert out == b"0-3\n0-4\n"


def test_it_ends_where_the_end_was(received: Make) -> None:
    ends = Ends()
    ends.add({0: 2, 1: 1}, {0: 0, 1: 0})
    out, consumer, _ = play([records(received, 0, range(4)), records(received, 1, range(1)), [received()]], ends=ends)
    assert out == b"0-0\n0-1\n1-0\n"
    assert len(consumer.batches) == 1


def test_a_partition_whose_last_records_are_gone_ends_when_the_broker_says_so(received: Make) -> None:
    ends = Ends()
    ends.add({0: 10}, {0: 0})
    out, consumer, _ = play([[*records(received, 0, range(1)), Event(KafkaError._PARTITION_EOF, 0)], []], ends=ends)
    assert out == b"0-0\n"
    assert len(consumer.batches) == 1


def test_an_empty_partition_is_at_its_end() -> None:
    ends = Ends()
    assert not ends.reached
    ends.add({0: 0, 1: 5}, {0: 0, 1: 5})
    assert ends.reached


def test_partitions_that_went_to_another_member_are_not_waited_for() -> None:
    ends = Ends()
    ends.add({0: 5, 1: 5}, {})
    ends.drop([0, 1])
    assert ends.reached


def test_passing_errors_are_passed_over(received: Make) -> None:
    out, _, _ = play([[Event(KafkaError._TRANSPORT, 0)], records(received, 0, range(1))])
    assert out == b"0-0\n"


def test_other_errors_end_it() -> None:
    with pytest.raises(KafkaException):
        play([[Event(KafkaError.TOPIC_AUTHORIZATION_FAILED, 0)]])


def test_a_lost_and_found_broker(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    connection = Connection("127.0.0.1:9092", {})
    problems: list[str | None] = ["connection refused", "connection refused", None]
    monkeypatch.setattr(connection, "unreachable", lambda: problems.pop(0))
    outage = Outage(connection, patient=True)
    outage.check()
    connection.lost = True
    for _ in range(3):
        outage.check()
    assert not connection.lost
    assert capsys.readouterr().err == (
        "warning: lost the broker at 127.0.0.1:9092 (connection refused); waiting for it\n"
        "warning: the broker at 127.0.0.1:9092 is back\n"
    )
