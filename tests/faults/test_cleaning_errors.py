"""Every call that a cleaner makes to the disk fails, once or from then on, and the process dies or the power is lost:
the latest of each key stays, offsets stay dense, and other partitions go on being compacted."""

from pathlib import Path

import pytest

from millstream.model.frame import read_frame_header
from tests.support.simulated_files import Fault, Operation
from tests.unit.broker.cleaning.keyed_topic import KeyedTopic, keyed_batch
from tests.unit.broker.simulated_broker import append

OPERATIONS: tuple[Operation, ...] = (
    "open",
    "write",
    "sync",
    "truncate",
    "replace",
    "remove",
    "sync_directory",
    "read",
)
CALLS_MAX = 60
KEYS = [b"a", b"b", b"c", b"a", b"d", b"b", b"a", b"e", b"a", b"f"]


def check(topic: KeyedTopic) -> None:
    """See that everything is there that has to be."""
    expected = topic.log.start_offset
    for frame in topic.frames():
        header = read_frame_header(frame)
        assert header.base_offset == expected
        expected = header.last_offset + 1
    assert expected == topic.log.end_offset >= len(KEYS)
    last = {key: n for n, key in enumerate(KEYS)}
    assert {key: offset for offset, key in topic.keyed() if offset < len(KEYS)} == last


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "from then on"])
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("power", [False, True], ids=["killed", "power lost"])
def test_any_call_that_fails(operation: Operation, lasting: bool, power: bool, tmp_path: Path) -> None:
    for at in range(1, CALLS_MAX):
        topic = KeyedTopic(str(tmp_path / f"db-{at}"), min__cleanable__dirty__ratio="0")
        for number, key in enumerate(KEYS):
            topic.put((key, b"v" * 100), producer=(7, 0, number))
        topic.seal()
        broker, files = topic.broker, topic.broker.files
        other = broker.create("other", 1, cleanup__policy="compact", segment__bytes="400").partitions[0]
        for _ in range(3):
            append(other, keyed_batch([(b"a", b"v" * 200)]))
        other.log._roll(broker.runtime.now_ms())
        topic.flush()
        topic.broker.pass_ms(1000)
        calls = files.calls[operation]
        fault = Fault(operation, at=at, path_ending="", lasting=lasting)
        files.inject(fault)
        broker.pass_ms(16_000)
        was_met = files.calls[operation] - calls >= at
        files.heal()
        check(topic)
        broker.pass_ms(60_000)
        assert broker.broker.cleaner.figures.runs >= 2
        if other.log.failure is None and other not in broker.broker.cleaner._failed:
            assert other.log.sealed_segments[0].next_offset == 3
        check(topic)
        broker.kill()
        if power:
            files.crash(at)
        topic.start_again()
        check(topic)
        assert topic.log.producers.remembers(7, len(KEYS) - 1)
        assert not [name for name in topic.files() if name.endswith(".new")]
        topic.clean(3)
        assert topic.keyed() == sorted((n, key) for key, n in {key: n for n, key in enumerate(KEYS)}.items())
        broker.kill()
        if not was_met:
            return
    raise AssertionError("the cleaner makes more calls than that")
