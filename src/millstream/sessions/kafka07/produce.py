"""PRODUCE and MULTIPRODUCE: never answered.

A message that is too large is dropped and counted, the others of its set stay. Whatever else cannot be done ends the
connection; what stood before it in the request is stored.
"""

import logging
from collections.abc import Iterator, Sequence

from millstream.broker.partition import Partition
from millstream.broker.topics import Topic
from millstream.model.errors import MillstreamError
from millstream.model.frame import read_frame_header
from millstream.model.pending import Pending
from millstream.model.topic_name import TopicName
from millstream.sessions.kafka07.call import Call
from millstream.sessions.kafka07.errors import Unanswerable
from millstream.sessions.kafka07.names import check_topic_name
from millstream.wire.errors import WireError
from millstream.wire.kafka07.frames import CheckedSet, take_set
from millstream.wire.kafka07.messages import InflationBudget
from millstream.wire.kafka07.requests import ANY_PARTITION, MultiProduceRequest, ProduceRequest

__all__ = ["handle", "handle_multi"]

_log = logging.getLogger(__name__)


def handle(call: Call, request: ProduceRequest) -> None:
    """Append a message set to a partition, made if need be."""
    _Produce(call, [request]).go_on()


def handle_multi(call: Call, request: MultiProduceRequest) -> None:
    """Append several, in order."""
    _Produce(call, request.produces).go_on()


class _Produce:
    """The parts of one request, one after the other; the connection is held while a topic is being made."""

    def __init__(self, call: Call, parts: Sequence[ProduceRequest]) -> None:
        self._call = call
        self._budget = InflationBudget()
        self._parts: Iterator[ProduceRequest] = iter(parts)

    def go_on(self) -> None:
        """Do what can be done. Raises WireError."""
        topics = self._call.broker.topics
        for part in self._parts:
            topic = topics.by_flat_name(part.topic)
            if topic is not None:
                self._append(topic, part)
                continue
            self._make(part)
            return

    def _make(self, part: ProduceRequest) -> None:
        """Make the topic of a part, and go on when it is there.

        The request is gone from the receive buffer by then, so what is left of it is copied.
        """
        broker = self._call.broker
        try:
            check_topic_name(part.topic)
            if not broker.settings.auto_create_topics:
                raise Unanswerable(f"there is no topic {part.topic}")
            if part.partition != ANY_PARTITION and not 0 <= part.partition < broker.settings.partitions:
                raise Unanswerable(f"a new topic has no partition {part.partition}")
            making = broker.topics.get_or_create(TopicName.from_flat(part.topic))
        except MillstreamError as error:
            raise _ended(error) from None
        left = [ProduceRequest(one.topic, one.partition, bytes(one.messages)) for one in (part, *self._parts)]
        peer = self._call.peer
        peer.hold()

        def made(pending: Pending[Topic]) -> None:
            try:
                pending.result()
                self._parts = iter(left)
                self.go_on()
            except (MillstreamError, OSError) as error:
                peer.end(str(error))
            finally:
                peer.release()

        making.when_done(made)

    def _append(self, topic: Topic, part: ProduceRequest) -> None:
        try:
            partition = self._partition(topic, part.partition)
            checked = self._checked(partition, part)
            for frame in checked.frames:
                partition.append(memoryview(frame), read_frame_header(frame), all_replicas=False)
        except WireError:
            raise
        except (MillstreamError, OSError) as error:
            raise _ended(error) from None
        if checked.dropped:
            self._call.shared.broker.dropped_messages["kafka07"] += checked.dropped
            _log.warning(
                "messages dropped peer=%s topic=%s partition=%d count=%d reason=they are too large",
                self._call.peer.address,
                part.topic,
                partition.index,
                checked.dropped,
            )

    def _partition(self, topic: Topic, index: int) -> Partition:
        count = len(topic.partitions)
        if index == ANY_PARTITION:
            index = int.from_bytes(self._call.broker.runtime.random_bytes(4), "big") % count
        if not 0 <= index < count:
            raise Unanswerable(f"the topic {topic.name.flat} has no partition {index}")
        return topic.partitions[index]

    def _checked(self, partition: Partition, part: ProduceRequest) -> CheckedSet:
        settings = partition.settings
        if settings.compacted:
            raise Unanswerable("a compacted topic takes no messages without a key")
        return take_set(
            memoryview(part.messages),
            now_ms=self._call.broker.runtime.now_ms(),
            payload_bytes_max=self._call.broker.settings.message_payload_bytes_max,
            frame_bytes_max=settings.batch_bytes_max,
            budget=self._budget,
        )


def _ended(error: MillstreamError | OSError) -> WireError:
    return error if isinstance(error, WireError) else Unanswerable(f"a produce was refused: {error}")
