"""What the tests of the Spark source share: one Spark session, one server, and a writer of records."""

import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

from millstream.spark.java import use_java
from millstream.spark.worker_python import worker_python
from tests.support.quick_java import archiving_spark_classes
from tests.support.sample_records import Sample
from tests.support.server_process import ServerProcess, serving

Read = Callable[..., Any]

_SETTLE_S = 30
_numbers = itertools.count()


@pytest.fixture(scope="session", autouse=True)
def _spark_classes(pytestconfig: pytest.Config) -> Iterator[None]:
    """An archive of Spark's classes, made once and kept: each Spark that is started then takes half the time."""
    with archiving_spark_classes(pytestconfig):
        yield


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A Spark session on two cores. Starting it takes some seconds, so that there is one for all tests."""
    from pyspark.sql import SparkSession

    use_java()
    # Workers are started by Spark, not by this process: what they import must be on their path too.
    source = os.path.join(os.path.dirname(__file__), "..", "..", "src")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.path.abspath(source))
        patch.setenv("PYSPARK_PYTHON", worker_python(str(tmp_path_factory.mktemp("python"))))
        patch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
        session = (
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.session.timeZone", "UTC")
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A real server process. Nothing in it may go wrong unseen."""
    data_dir = str(tmp_path_factory.mktemp("spark") / "data")
    settings = ["durability=os", "log.retention.ms=-1", "log.retention.check.interval.ms=200", "flush.interval.ms=50"]
    with serving(data_dir, settings=settings) as server:
        yield server
        assert "internal error" not in server.log()
        assert "Traceback" not in server.log()


class Topics:
    """Makes and fills topics.

    Args:
        servers: the broker.
        settings: of librdkafka, such as those that say how the broker lets one in.
    """

    def __init__(self, servers: str, settings: Mapping[str, str] | None = None) -> None:
        self._settings = {"bootstrap.servers": servers, "log_level": 0, **(settings or {})}
        self.admin = AdminClient(self._settings)

    def create(self, stem: str, partitions: int = 1, **config: str) -> str:
        """Create a topic with a name that no other test uses; dots in config names are written as _."""
        return self.create_exactly(f"{stem}-{next(_numbers)}", partitions, **config)

    def create_exactly(self, name: str, partitions: int = 1, **config: str) -> str:
        """Create a topic of a name."""
        settings = {key.replace("_", "."): value for key, value in config.items()}
        for made in self.admin.create_topics([NewTopic(name, partitions, 1, config=settings)]).values():
            made.result(timeout=_SETTLE_S)
        return name

    def write(self, topic: str, records: Sequence[Sample], partition: int = 0, **settings: Any) -> None:
        """Write records to one partition and wait until they are there."""
        names = {key.replace("_", "."): value for key, value in settings.items()}
        producer = Producer({**self._settings, "linger.ms": 20, **names})
        for record in records:
            producer.produce(
                topic,
                record.value,
                record.key,
                partition,
                timestamp=record.timestamp_ms,
                headers=list(record.headers),
            )
        assert producer.flush(_SETTLE_S) == 0

    def write_numbers(self, topic: str, numbers: range, partition: int = 0, **settings: Any) -> None:
        """Write values that are numbers."""
        self.write(
            topic, [Sample(None, b"%d" % n, (), 1_700_000_000_000 + n) for n in numbers], partition, **settings
        )

    def delete_before(self, topic: str, offset: int, partition: int = 0) -> None:
        """Delete the records before an offset."""
        for done in self.admin.delete_records([TopicPartition(topic, partition, offset)]).values():
            done.result(timeout=_SETTLE_S)

    def earliest(self, topic: str, partition: int = 0) -> int:
        """The first offset that the broker has."""
        place = TopicPartition(topic, partition)
        offset: int = self.admin.list_offsets({place: OffsetSpec.earliest()})[place].result(_SETTLE_S).offset
        return offset


@pytest.fixture(scope="session")
def topics(broker: ServerProcess) -> Topics:
    """Makes and fills topics."""
    return Topics(broker.kafka)


@pytest.fixture
def read(spark: Any, broker: ServerProcess) -> Read:
    """Loads topics of the broker as a table: read(topic, option=value, ...)."""

    def load(topic: str, **options: Any) -> Any:
        reader = spark.read.format("millstream").option("kafka.bootstrap.servers", broker.kafka)
        return reader.option("subscribe", topic).options(**options).load()

    return load
