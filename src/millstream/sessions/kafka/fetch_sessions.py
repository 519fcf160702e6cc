"""Fetch sessions: what a consumer fetches is remembered; later requests and answers carry only changes (KIP-227)."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from millstream.wire.kafka.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic

__all__ = ["FetchSession", "FetchSessions", "InvalidEpoch", "TopicKey", "Wanted", "topic_key"]

FINAL_EPOCH: Final = -1
INITIAL_EPOCH: Final = 0
_EPOCH_MAX: Final = 2**31 - 1

UNUSED_MS: Final = 120_000
"""ms after which a session makes room for another, as Kafka's min.incremental.fetch.session.eviction.ms."""
PARTITIONS_MAX: Final = 500_000
"""Partitions in all sessions together, known here or not: each takes some 500 bytes of memory."""

TopicKey = UUID | str
"""A topic as a request names it: by its id, or by its name in the versions before 13."""


class InvalidEpoch(Exception):
    """A request does not follow from the one before in its session."""


@dataclass(slots=True)
class Wanted:
    """One partition of a session, and what the client was last told of it."""

    topic: TopicKey
    partition: FetchPartition
    high_watermark: int = -1
    log_start_offset: int = -1


@dataclass(slots=True)
class FetchSession:
    """What one consumer fetches, in the order in which it is served, and when it last did."""

    id: int
    epoch: int
    used_ms: int = 0
    partitions: dict[tuple[TopicKey, int], Wanted] = field(default_factory=dict)

    def update(self, request: FetchRequest) -> None:
        """Take over what a request adds, changes and takes away."""
        for forgotten in request.forgotten_topics_data:
            key = topic_key(forgotten)
            for index in forgotten.partitions:
                self.partitions.pop((key, index), None)
        for topic in request.topics:
            key = topic_key(topic)
            for partition in topic.partitions:
                known = self.partitions.get((key, partition.partition))
                if known is None:
                    self.partitions[key, partition.partition] = Wanted(key, partition)
                else:
                    known.partition = partition

    def served(self, wanted: Sequence[Wanted]) -> None:
        """Move partitions that had data to the end, so that none starves while others fill every answer."""
        for one in wanted:
            key = one.topic, one.partition.partition
            if self.partitions.pop(key, None) is not None:
                self.partitions[key] = one


def topic_key(topic: FetchTopic | ForgottenTopic) -> TopicKey:
    """How a request names a topic."""
    return topic.topic_id if topic.topic_id.int else topic.topic


class FetchSessions:
    """The sessions of all consumers.

    A session that is in use never makes room for another, as in Apache Kafka: with more consumers than slots each
    would drive out the next, and none would get anywhere. Who gets no session sends full requests.

    Args:
        slots: how many are kept; 0 for none.
        random_bytes: makes ids that cannot be guessed.
        monotonic_ms: time that only goes forward.
    """

    def __init__(self, slots: int, random_bytes: Callable[[int], bytes], monotonic_ms: Callable[[], int]) -> None:
        self._slots = slots
        self._random_bytes = random_bytes
        self._monotonic_ms = monotonic_ms
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()
        self._partitions = 0

    def begin(self, request: FetchRequest) -> FetchSession | None:
        """Open a session for a full request; None if there is no room for one."""
        self.end(request.session_id)
        partitions = sum(len(topic.partitions) for topic in request.topics)
        self._make_room(partitions)
        if len(self._sessions) >= self._slots or self._partitions + partitions > PARTITIONS_MAX:
            return None
        session_id = 0
        while session_id == 0 or session_id in self._sessions:
            session_id = int.from_bytes(self._random_bytes(4), "big") >> 1
        session = self._sessions[session_id] = FetchSession(session_id, INITIAL_EPOCH + 1)
        self._update(session, request)
        return session

    def resume(self, request: FetchRequest) -> FetchSession | None:
        """Go on with a session; None if it is not known (any more).

        Raises:
            InvalidEpoch: the request is not the next one of the session.
        """
        session = self._sessions.get(request.session_id)
        if session is None:
            return None
        if session.epoch != request.session_epoch:
            raise InvalidEpoch
        session.epoch = 1 if session.epoch == _EPOCH_MAX else session.epoch + 1
        self._sessions.move_to_end(request.session_id)
        self._update(session, request)
        if self._partitions > PARTITIONS_MAX:
            self.end(session.id)
            return None
        return session

    def end(self, session_id: int) -> None:
        """Forget a session."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            self._partitions -= len(session.partitions)

    def _update(self, session: FetchSession, request: FetchRequest) -> None:
        before = len(session.partitions)
        session.update(request)
        session.used_ms = self._monotonic_ms()
        self._partitions += len(session.partitions) - before

    def _make_room(self, partitions: int) -> None:
        """End sessions that nobody uses, as far as a new one needs their room."""
        before_ms = self._monotonic_ms() - UNUSED_MS
        while self._sessions:
            oldest = next(iter(self._sessions.values()))
            full = len(self._sessions) >= self._slots or self._partitions + partitions > PARTITIONS_MAX
            if not full or oldest.used_ms > before_ms:
                return
            self.end(oldest.id)
