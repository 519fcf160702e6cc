"""Millstream, from the environment this program runs in, in both of its durabilities."""

import re
import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

from confluent_kafka import KafkaException

from bench.drivers.driver import ClientDriver, Driver, Endpoint
from bench.drivers.kafka_client import KafkaClient
from bench.drivers.kafka_raw import KafkaRaw
from bench.systems.system import Command, NotFound, System

__all__ = ["MillstreamFsync", "MillstreamOs", "listener_port"]


def listener_port(name: str, ready_line: str) -> int:
    """The port of a listener, as the ready line tells it. Raises NotFound."""
    found = re.search(rf"\b{name}=[^ ]*:(\d+)", ready_line)
    if found is None:
        raise NotFound(f"no listener {name} in {ready_line!r}")
    return int(found[1])


class _Millstream(System):
    durability: ClassVar[str]
    families: ClassVar[frozenset[str]] = frozenset({"log", "pulsar"})

    def version(self) -> str:
        """Return the version of the package."""
        # The search for a sub-package imports its parents, which are missing together with it.
        if find_spec("millstream") is None or find_spec("millstream.cli") is None:
            raise NotFound("the package millstream is not installed here")
        try:
            return version("millstream")
        except PackageNotFoundError:
            return "source tree"

    def command(self, directory: Path) -> Command:
        """Return the `serve` command on a port of the system's choice."""
        words = [sys.executable, "-m", "millstream.cli.main", "serve", "--data-dir", str(directory)]
        words += [
            "--listen",
            "kafka=127.0.0.1:0",
            "--listen",
            "pulsar=127.0.0.1:0",
            "--set",
            f"durability={self.durability}",
        ]
        return Command(words=words, ready="ready kafka=", port=0)

    def port(self, ready_line: str) -> int:
        """Return the port of the Kafka listener."""
        return listener_port("kafka", ready_line)

    def pulsar(self, endpoint: Endpoint, ready_line: str) -> Endpoint:
        """Return its Pulsar listener."""
        return Endpoint(endpoint.host, listener_port("pulsar", ready_line))

    def raw(self, endpoint: Endpoint) -> Driver:
        """Return the driver of pre-encoded requests."""
        return KafkaRaw(endpoint)

    def client(self, endpoint: Endpoint) -> ClientDriver | None:
        """Return the driver over librdkafka."""
        return KafkaClient(endpoint)

    def failures(self) -> tuple[type[Exception], ...]:
        """Return what librdkafka raises."""
        return (KafkaException,)


class MillstreamOs(_Millstream):
    """Acknowledges what the operating system has."""

    name = "millstream"
    promise = "acks=1: write(2) returned"
    durability = "os"


class MillstreamFsync(_Millstream):
    """Acknowledges what the disk has."""

    name = "millstream-fsync"
    promise = "acks=all: fdatasync returned"
    durability = "fsync"

    def acks(self) -> int:
        """Return acks=all."""
        return -1
