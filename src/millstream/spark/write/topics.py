"""The topics that are written to: how many partitions they have, and which broker takes what is written to each."""

from typing import Final

from millstream.spark.access import check_access
from millstream.spark.connections import Connections, address_of, error_name
from millstream.spark.errors import BrokerUnreachable, TopicMissing
from millstream.spark.write.patience import Patience
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.metadata import METADATA, MetadataRequest, MetadataRequestTopic

__all__ = ["Topics"]

_VERSION: Final = 12
_CREATION_PATIENCE_S: Final = 3.0
"""A broker that creates a topic when it is first asked about may say for a moment that it is not there."""


class Topics:
    """What a broker says about topics, asked for once and again when it has changed.

    It is patient with brokers that restart. A topic that does not exist is created, if the broker is configured to
    do so (auto.create.topics.enable).

    Args:
        connections: to the cluster.
        patience_s: for how long no broker may answer, or none serve a topic.

    Raises (every method):
        BrokerUnreachable: no broker answers, or none has a partition.
        AccessDenied: the user may not write to one.
        TopicMissing: a topic does not exist, and is not created.
    """

    def __init__(self, connections: Connections, patience_s: float) -> None:
        self._connections = connections
        self._patience_s = patience_s
        self._leaders: dict[str, dict[int, str]] = {}

    def partition_counts(self, names: list[str]) -> dict[str, int]:
        """How many partitions topics have."""
        unknown = [name for name in names if name not in self._leaders]
        if unknown:
            self._describe(unknown)
        return {name: len(self._leaders[name]) for name in names}

    def leader(self, topic: str, partition: int) -> str:
        """The address of the broker that takes what is written to a partition."""
        if topic not in self._leaders:
            self._describe([topic])
        return self._leaders[topic][partition]

    def forget(self) -> None:
        """Ask anew when somebody next wants to know."""
        self._leaders.clear()

    def _describe(self, names: list[str]) -> None:
        patience, creation = Patience(self._patience_s), Patience(min(_CREATION_PATIENCE_S, self._patience_s))
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names])
        while True:
            try:
                answer = self._connections.ask_any(METADATA, _VERSION, request)
            except BrokerUnreachable:
                if patience.is_over():
                    raise
                patience.pause()
                continue
            brokers = {broker.node_id: address_of(broker.host, broker.port) for broker in answer.brokers}
            problem: TopicMissing | BrokerUnreachable | None = None
            for topic in answer.topics:
                leaders = {part.partition_index: brokers.get(part.leader_id, "") for part in topic.partitions}
                check_access(topic.error_code, "WRITE (or, if it is new, CREATE)", topic=topic.name)
                if topic.error_code in _NOT_THERE:
                    problem = self._missing(topic.name, topic.error_code)
                    if creation.is_over() or topic.error_code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                        raise problem
                elif not leaders or not all(leaders.values()):
                    problem = BrokerUnreachable(
                        f"topic {topic.name!r} has no broker that serves it: {error_name(topic.error_code)}"
                    )
                    if patience.is_over():
                        raise problem
                else:
                    self._leaders[topic.name] = leaders
            if problem is None:
                return
            patience.pause()

    def _missing(self, name: str, code: int) -> TopicMissing:
        where = ",".join(self._connections.servers)
        if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return TopicMissing(
                f"there is no topic {name!r} at {where}, and it does not create topics that are written to; "
                "change the option topic, or create it"
            )
        return TopicMissing(f"{where} does not take the topic {name!r}: {error_name(code)}; change the option topic")


_NOT_THERE: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.INVALID_TOPIC_EXCEPTION,
}
