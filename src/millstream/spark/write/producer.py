"""Batches to brokers: several requests on their way at once, and sent again until each batch is there once."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from millstream.spark.access import check_access
from millstream.spark.connections import Connections, error_name
from millstream.spark.errors import BrokerUnreachable, TransactionLost, WriteRefused
from millstream.spark.write.batches import Batch
from millstream.spark.write.patience import Patience
from millstream.spark.write.topics import Topics
from millstream.spark.write.transactions import WHY_LOST
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.produce import (
    PRODUCE,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)

__all__ = ["Producer"]

_VERSION: Final = 9
_ALL: Final = -1
_TIMEOUT_MS: Final = 30_000
_REQUEST_BYTES: Final = 2 * 1024 * 1024
"""About what the batches of one request have together."""
_IN_FLIGHT_MAX: Final = 5
"""Requests to one broker that are not answered yet. Of each producer brokers remember five batches of a partition."""


@dataclass(frozen=True, slots=True)
class _Request:
    """A request on its way."""

    sent: int
    batches: list[Batch]


class Producer:
    """Writes batches in the order in which they come, each once.

    The batches carry sequence numbers, by which a broker knows one that comes a second time.

    Args:
        connections: to the cluster.
        topics: who takes what.
        transactional_id: of the transaction that the batches are of; None if they are of none.
        patience_s: for how long a batch is sent again before that is an error.
    """

    def __init__(
        self, connections: Connections, topics: Topics, *, transactional_id: str | None, patience_s: float
    ) -> None:
        self._connections = connections
        self._topics = topics
        self._transactional_id = transactional_id
        self._patience_s = patience_s
        self._in_flight: dict[str, deque[_Request]] = {}
        self._failed: list[Batch] = []
        self._reason: Exception | None = None
        self.ends: dict[tuple[str, int], int] = {}
        """The offset behind the last record that was written, by partition; 0 if the broker did not tell."""

    def send(self, batches: Iterable[Batch]) -> None:
        """Send batches, without waiting for all answers.

        Raises:
            WriteRefused, TransactionLost: a broker refuses one.
            AccessDenied: the user may not write it.
            BrokerUnreachable: it is not to be reached for too long.
            TopicMissing: a topic is gone.
        """
        for leader, request in self._requests(batches):
            in_flight = self._in_flight.setdefault(leader, deque())
            while len(in_flight) >= _IN_FLIGHT_MAX and not self._failed:
                self._receive(leader)
            if not self._failed:
                try:
                    sent = self._connections.send(leader, PRODUCE, _VERSION, self._message(request))
                    in_flight.append(_Request(sent, request))
                    continue
                except BrokerUnreachable as error:
                    self._reason = error
            self._send_again(request)

    def flush(self) -> None:
        """Wait until all that was sent is there. Raises as `send`."""
        for leader, in_flight in self._in_flight.items():
            while in_flight:
                self._receive(leader)
        if self._failed:
            self._send_again()

    def _requests(self, batches: Iterable[Batch]) -> Iterator[tuple[str, list[Batch]]]:
        """Put batches together to requests, which have no two batches of one partition, and the leader of each."""
        by_place: dict[tuple[str, int], deque[Batch]] = {}
        for batch in batches:
            by_place.setdefault((batch.topic, batch.partition), deque()).append(batch)
        while by_place:
            request: dict[str, list[Batch]] = {}
            size: dict[str, int] = {}
            for place in list(by_place):
                leader = self._topics.leader(*place)
                batch = by_place[place].popleft()
                if not by_place[place]:
                    del by_place[place]
                if size.get(leader, 0) + len(batch.data) > _REQUEST_BYTES and leader in request:
                    yield leader, request.pop(leader)
                    size[leader] = 0
                request.setdefault(leader, []).append(batch)
                size[leader] = size.get(leader, 0) + len(batch.data)
            yield from request.items()

    def _message(self, batches: list[Batch]) -> ProduceRequest:
        by_topic: dict[str, TopicProduceData] = {}
        for batch in batches:
            data = by_topic.setdefault(batch.topic, TopicProduceData(name=batch.topic))
            data.partition_data.append(PartitionProduceData(index=batch.partition, records=batch.data))
        return ProduceRequest(
            transactional_id=self._transactional_id,
            acks=_ALL,
            timeout_ms=_TIMEOUT_MS,
            topic_data=list(by_topic.values()),
        )

    def _receive(self, leader: str) -> None:
        """Take the answer to the oldest request; what it tells to try again is in `_failed` then."""
        request = self._in_flight[leader].popleft()
        try:
            answer = self._connections.receive(leader, PRODUCE, _VERSION, request.sent)
        except BrokerUnreachable as error:
            self._reason = error
            self._failed += request.batches
            return
        answers = {(topic.name, part.index): part for topic in answer.responses for part in topic.partition_responses}
        for batch in request.batches:
            part = answers.get((batch.topic, batch.partition))
            if part is None:
                raise WriteRefused(f"{leader} does not say whether it took a batch of topic {batch.topic!r}")
            if not self._is_there(batch, part):
                self._failed.append(batch)

    def _is_there(self, batch: Batch, answer: PartitionProduceResponse) -> bool:
        """Whether a batch has arrived; if not, it is to be sent again."""
        code = answer.error_code
        place = batch.topic, batch.partition
        if not code or code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            end = answer.base_offset + batch.record_count if answer.base_offset >= 0 else 0
            self.ends[place] = max(self.ends.get(place, 0), end)
            return True
        if code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            # The one before it may have failed, and come again after it.
            if any((failed.topic, failed.partition) == place for failed in self._failed):
                return False
            raise TransactionLost(
                f"topic {batch.topic!r} partition {batch.partition} misses a batch: {error_name(code)}"
            )
        where = f"topic {batch.topic!r} partition {batch.partition}"
        if code in _PASSING:
            self._reason = BrokerUnreachable(f"{where} cannot be written to: {error_name(code)}")
            return False
        if code in _LOST:
            raise TransactionLost(f"the transaction that writes to {where} has ended: {error_name(code)}; {WHY_LOST}")
        if code in _TOO_LARGE:
            raise WriteRefused(
                f"{where} takes no batch of {len(batch.data)} bytes ({batch.record_count} records): take less for "
                "kafka.batch.size, or raise max.message.bytes of the topic"
            )
        check_access(code, "WRITE", topic=batch.topic, transactional_id=self._transactional_id or "")
        reason = f" ({answer.error_message})" if answer.error_message else ""
        raise WriteRefused(f"{where} does not take a batch: {error_name(code)}{reason}")

    def _send_again(self, unsent: Iterable[Batch] = ()) -> None:
        """Send what has failed, one batch after the other, until all of it is there; then what was not sent yet."""
        for leader, in_flight in self._in_flight.items():
            # Those behind the one that failed are answered, or fail as well.
            while in_flight:
                self._receive(leader)
        patience = Patience(self._patience_s)
        # The order is that of sending, for each partition, as the sequence numbers want it.
        again, self._failed = deque([*self._failed, *unsent]), []
        while again:
            batch = again[0]
            try:
                leader = self._topics.leader(batch.topic, batch.partition)
                answer = self._connections.ask(leader, PRODUCE, _VERSION, self._message([batch]))
                if self._is_there(batch, answer.responses[0].partition_responses[0]):
                    again.popleft()
                    continue
            except BrokerUnreachable as error:
                self._reason = error
            self._topics.forget()
            if patience.is_over():
                raise BrokerUnreachable(f"nothing could be written for {self._patience_s:.0f} s: {self._reason}")
            patience.pause()


_PASSING: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.THROTTLING_QUOTA_EXCEEDED,
}
_LOST: Final = {
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.UNKNOWN_PRODUCER_ID,
    ErrorCode.TRANSACTION_ABORTABLE,
}
_TOO_LARGE: Final = {ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE}
