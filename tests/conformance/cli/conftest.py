"""Runs the real command against the server under test."""

import os
import subprocess
import sys
import uuid
from collections.abc import Callable
from typing import Any, Protocol

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

Result = subprocess.CompletedProcess[bytes]


class Millstream:
    """The `millstream` command, pointed at one broker."""

    def __init__(self, broker: str) -> None:
        self._environment = {**os.environ, "MILLSTREAM_BROKER": broker, "COLUMNS": "100"}

    def __call__(self, *args: str, text: bytes = b"", status: int = 0) -> Result:
        """Run it to its end, with `text` as standard input, and check its exit status."""
        result = subprocess.run(
            self.command(*args), input=text, capture_output=True, timeout=60, env=self._environment, check=False
        )
        assert result.returncode == status, result.stderr.decode()
        assert b"Traceback" not in result.stderr
        return result

    def lines(self, *args: str) -> list[list[str]]:
        """Run it, and return the columns of the lines it prints."""
        return [line.split("\t") for line in self(*args).stdout.decode().splitlines()]

    def start(self, *args: str, **options: Any) -> "subprocess.Popen[bytes]":
        """Start it with pipes for all three streams, unless `options` say otherwise."""
        pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        return subprocess.Popen(self.command(*args), env=self._environment, **{**pipes, **options})

    @staticmethod
    def command(*args: str) -> list[str]:
        return [sys.executable, "-m", "millstream.cli.main", *args]


class Broker(Protocol):
    """What these tests need of the server under test: where its Kafka listener is, as "host:port"."""

    @property
    def kafka(self) -> str: ...


@pytest.fixture(scope="session")
def millstream(broker: Broker) -> Millstream:
    """The command, pointed at the server under test."""
    return Millstream(broker.kafka)


@pytest.fixture
def topic() -> str:
    """A name that no other test uses."""
    return f"cli-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def new_topic(broker: Broker, topic: str) -> Callable[..., str]:
    """Create the topic with so many partitions, and return its name."""

    def create(partitions: int = 1) -> str:
        admin = AdminClient({"bootstrap.servers": broker.kafka})
        [created] = admin.create_topics([NewTopic(topic, partitions)]).values()
        created.result(timeout=20)
        return topic

    return create
