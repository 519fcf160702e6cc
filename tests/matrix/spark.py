"""Spark, through the project's own source."""

from typing import Any

from tests.matrix.message import Message

__all__ = ["SparkReader"]


class SparkReader:
    """Reads topics as tables.

    Args:
        session: of Spark.
        address: HOST:PORT of the server.
    """

    def __init__(self, session: Any, address: str) -> None:
        self._session = session
        self._address = address

    def read(self, topics: dict[str, int], **options: str) -> dict[str, list[Message]]:
        """Read topics, all of them with one query."""
        found: dict[str, list[Message]] = {topic: [] for topic in topics}
        for row in self._load(",".join(topics), options):
            found[row.topic].append(_message(row))
        for topic, count in topics.items():
            assert len(found[topic]) == count, topic
            found[topic].sort(key=lambda one: (one.partition, one.offset))
        return found

    def read_some(self, topic: str, **options: str) -> list[Message]:
        """Read what some options select of a topic."""
        return [_message(row) for row in self._load(topic, options)]

    def _load(self, topics: str, options: dict[str, str]) -> list[Any]:
        reader = self._session.read.format("millstream").option("kafka.bootstrap.servers", self._address)
        table = reader.option("subscribe", topics).option("includeHeaders", "true").options(**options).load()
        columns = "topic", "partition", "offset", "key", "value", "headers", "unix_micros(timestamp) AS time_us"
        rows: list[Any] = table.selectExpr(*columns).collect()
        return rows


def _message(row: Any) -> Message:
    return Message(
        value=None if row.value is None else bytes(row.value),
        key=None if row.key is None else bytes(row.key),
        headers=tuple((one.key, None if one.value is None else bytes(one.value)) for one in row.headers or ()),
        time_us=row.time_us,
        partition=row.partition,
        offset=row.offset,
    )
