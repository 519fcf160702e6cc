"""A disk without room under a real server: writes are refused, reads go on, and room brings writes back."""

import os
import resource
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Message, Producer

from tests.support.history import ANOMALIES, History, Sent
from tests.support.kafka_load import create_topic, read_topic
from tests.support.server_process import ServerProcess, serving

NONE = dict.fromkeys(ANOMALIES, 0)
VALUE_BYTES = 10_000
BACK_S = 10.0


class Writer:
    """A producer without retries, so that every refusal is seen."""

    def __init__(self, server: ServerProcess, topic: str, acks: str) -> None:
        self.history = History()
        self._topic = topic
        self._server = server
        settings = {"acks": acks, "retries": 0, "linger.ms": 0, "message.timeout.ms": 10_000, "log_level": 0}
        self._producer = Producer({"bootstrap.servers": server.kafka, **settings})

    def write(self) -> KafkaError | None:
        """Write one value; the error if it was refused."""
        sends = self.history.sends["writer"]
        sent = Sent(len(sends), 0)
        sends.append(sent)
        outcome: list[KafkaError | None] = []

        def answered(error: KafkaError | None, message: Message) -> None:
            outcome.append(error)
            if error is None:
                sent.offset = message.offset()

        value = (b"%d " % sent.value).ljust(VALUE_BYTES, b".")
        self._producer.produce(self._topic, value, partition=0, on_delivery=answered)
        assert self._producer.flush(15) == 0
        return outcome[0]

    def write_until_refused(self, most: int = 2000) -> KafkaError:
        """Write until there is no room."""
        for _ in range(most):
            error = self.write()
            if error is not None:
                return error
        raise AssertionError(f"{most} values of {VALUE_BYTES} bytes found room")

    def write_until_taken(self) -> float:
        """Write until a value is taken; the seconds that took."""
        began = time.monotonic()
        while self.write() is not None:
            assert time.monotonic() - began < BACK_S, "room is back, and nothing is taken"
            time.sleep(0.02)
        return time.monotonic() - began

    def check(self, reader: str) -> None:
        """Everything acknowledged can be read, whatever was refused."""
        read_topic(self._server.kafka, self._topic, 1, self.history, reader)
        assert self.history.anomalies() == NONE


def fill_and_free(server: ServerProcess, acks: str, free: Callable[[], object]) -> Writer:
    """Write until the disk is full, look at everything, make room, and go on."""
    topic = f"acks-{acks}"
    writer = Writer(server, topic, acks)
    error = writer.write_until_refused()
    for _ in range(3):
        assert error is not None
        assert error.code() == KafkaError.KAFKA_STORAGE_ERROR, error
        error = writer.write()
    writer.check("while it is full")
    assert server.process.poll() is None
    free()
    back_s = writer.write_until_taken()
    print(f"acks={acks}: {writer.history.acknowledged} acknowledged, writes taken again after {1000 * back_s:.0f} ms")
    writer.check("with room again")
    return writer


@pytest.mark.parametrize("acks", ["1", "all"])
def test_files_that_may_not_grow(tmp_path: Path, acks: str) -> None:
    """A limit on the size of files stands in for a full disk: it needs no rights, and gives short writes too."""
    data_dir = str(tmp_path / "data")
    with serving(data_dir) as server:
        create_topic(server.kafka, f"acks-{acks}", 1, {})
        unlimited = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (505_000, unlimited[1]))
        writer = fill_and_free(
            server, acks, lambda: resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, unlimited)
        )
        writer.write()
    with serving(data_dir) as server:
        read_topic(server.kafka, f"acks-{acks}", 1, writer.history, "after a clean stop")
        assert writer.history.anomalies() == NONE


@contextmanager
def small_disk(path: Path, size: str) -> Iterator[None]:
    """A disk of its own, or no test where there is no right to mount one."""
    path.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode != 0:
        pytest.skip(f"a small disk cannot be mounted here: {made.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")
@pytest.mark.parametrize("segment_bytes", [2**30, 300_000], ids=["one segment", "many segments"])
def test_a_disk_that_is_really_full(tmp_path: Path, segment_bytes: int) -> None:
    disk = tmp_path / "disk"
    with small_disk(disk, "6m"):
        ballast = disk / "ballast"
        ballast.write_bytes(bytes(3_000_000))
        data_dir = str(disk / "data")
        with serving(data_dir) as server:
            create_topic(server.kafka, "acks-all", 1, {"segment.bytes": str(segment_bytes)})
            writer = fill_and_free(server, "all", ballast.unlink)
            writer.write_until_refused()
            writer.check("full once more")
            server.kill()
        with serving(data_dir) as server:
            read_topic(server.kafka, "acks-all", 1, writer.history, "after a kill on a full disk")
            assert writer.history.anomalies() == NONE
