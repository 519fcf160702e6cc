"""A whole broker on virtual time and a disk in memory; it can be stopped, killed and started again."""

import itertools
from collections.abc import Sequence
from typing import TypeVar

from millstream.broker.broker import Broker
from millstream.broker.partition import Partition
from millstream.broker.settings import BrokerSettings
from millstream.broker.topics import Topic
from millstream.model.frame import read_frame_header
from millstream.model.pending import Pending
from millstream.model.topic_name import TopicName
from millstream.storage.directory import DataDirectory
from millstream.storage.log import Appended
from millstream.storage.metadata import Change, MetadataFailed, MetadataStore
from tests.support.batches import batch
from tests.support.simulated_files import SimulatedFiles
from tests.unit.broker.members import CountingRuntime

__all__ = ["FallibleStore", "SimulatedBroker", "append"]

T = TypeVar("T")
_seeds = itertools.count(1)


class FallibleStore(MetadataStore):
    """A metadata store that refuses all changes while `failing` is set."""

    failing = False

    def submit(self, changes: Sequence[Change]) -> Pending[None]:
        if not self.failing:
            return super().submit(changes)
        pending: Pending[None] = Pending()
        self._runtime.call_soon(lambda: pending.fail(MetadataFailed("the metadata store could not commit: gone")))
        return pending


class SimulatedBroker:
    """A broker, its disk and its runtime.

    Args:
        database: file of the metadata store, so that it outlives the broker; in memory by default.
        settings: the server's.
    """

    def __init__(self, database: str = "", **settings: str) -> None:
        self.files = SimulatedFiles()
        self.settings = BrokerSettings({name.replace("__", "."): value for name, value in settings.items()})
        self._url = f"sqlite:///{database}"
        self.start()

    def start(self) -> None:
        """Start a broker on what the disk holds; the time is later than it was before."""
        self.runtime = CountingRuntime(next(_seeds))
        self.store = FallibleStore(self.runtime, self._url, durable=False)
        self.directory = DataDirectory(self.files, "/data")
        self.broker = Broker(self.runtime, self.directory, self.store, self.settings)
        self.runtime.run()

    def kill(self) -> None:
        """Let the process die."""
        self.files.kill()
        self.store.close()

    def restart(self) -> None:
        """Stop cleanly and start again."""
        self.wait(self.broker.close())
        self.start()

    def wait(self, pending: Pending[T]) -> T:
        """Let everything run that needs no time, and give the outcome."""
        self.runtime.run()
        return pending.result()

    def pass_ms(self, milliseconds: float) -> None:
        """Let time pass."""
        self.runtime.advance(milliseconds / 1000)

    def create(self, name: str = "orders", partitions: int = 1, **configs: str) -> Topic:
        """Make a topic; settings by their names, with __ for each dot."""
        named = {key.replace("__", "."): value for key, value in configs.items()}
        return self.wait(self.broker.topics.create(TopicName.from_flat(name), partitions, named))

    def topic(self, name: str = "orders") -> Topic:
        """The topic of a name."""
        topic = self.broker.topics.by_flat_name(name)
        assert topic is not None
        return topic


def append(partition: Partition, frame: bytearray | None = None, *, all_replicas: bool = False) -> Appended:
    """Append a batch as a session does."""
    frame = batch(b"value") if frame is None else frame
    return partition.append(memoryview(frame), read_frame_header(frame), all_replicas=all_replicas)
