"""Fetch: versions 0 to 18.

Readers of what is committed get nothing at or behind the first record of an open transaction, and batches without
records where one was aborted: there are no marks of transactions in the log, and no lists of aborted ones in answers.
Others get what Kafka's transactions write at once and for good; what Pulsar's write, as readers of what is committed.

Before 4 batches are answered as message sets, of magic 0 before 2 and of magic 1 after; see `message_reading`. From
7 on with sessions, from 12 on with the epoch last fetched (there is one epoch, so it never diverges), from 13 on
topics are named by id, and who asks for it is told which batches other protocols wrote.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from millstream.broker.acl import Operation
from millstream.broker.partition import Partition
from millstream.broker.topics import Topic
from millstream.model.errors import MillstreamError
from millstream.model.frame import Magic
from millstream.model.pending import Pending
from millstream.model.runtime import Timer
from millstream.sessions.kafka.authorization import require_topic
from millstream.sessions.kafka.call import Call
from millstream.sessions.kafka.error_table import code_of
from millstream.sessions.kafka.fetch_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    FetchSession,
    InvalidEpoch,
    TopicKey,
    Wanted,
    topic_key,
)
from millstream.sessions.kafka.foreign_frames import encoding_runs, kafka_batches
from millstream.sessions.kafka.leader_epoch import LEADER_EPOCH, epoch_error
from millstream.sessions.kafka.message_reading import UNPACKED_ANSWER_BYTES_MAX, read_messages
from millstream.sessions.kafka.old_error_codes import before_batches
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
    PartitionEncodings,
)
from millstream.wire.kafka.records import InflationBudget
from millstream.wire.kafka.schema import NO_UUID
from millstream.wire.limits import BATCH_RECORDS_MAX
from millstream.wire.translation import first_frames

__all__ = ["handle"]

_READ_COMMITTED: Final = 1
_TIMESTAMPS_SINCE: Final = 2
_REQUEST_LIMIT_SINCE: Final = 3
_BATCHES_SINCE: Final = 4
_RESPONSE_BYTES_MAX: Final = 55 * 1024 * 1024
"""Bytes of batches in one answer at most, as Kafka's fetch.max.bytes: what a client asks for is not its to size."""


@dataclass(frozen=True, slots=True)
class _Source:
    """A partition that was asked for, found or not."""

    wanted: Wanted
    topic: Topic | None
    partition: Partition | None


class _Refused(_Source):
    """A partition that the client may not read; nothing is found of it."""

    __slots__ = ()


def handle(call: Call, request: FetchRequest) -> FetchResponse | Pending[FetchResponse]:
    """Read from each partition; wait for `min_bytes` of new data, but no longer than `max_wait_ms`."""
    sessions = call.service.fetch_sessions
    session: FetchSession | None = None
    incremental = False
    if request.session_epoch == FINAL_EPOCH:
        sessions.end(request.session_id)
        wanted = _listed(request)
    elif request.session_epoch == INITIAL_EPOCH:
        session = sessions.begin(request)
        wanted = session.partitions.values() if session is not None else _listed(request)
    else:
        try:
            session = sessions.resume(request)
        except InvalidEpoch:
            return FetchResponse(error_code=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session is None:
            return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        incremental = True
        wanted = session.partitions.values()
    find = _found if call.broker.authorizer is None else _found_if_readable
    sources = [find(call, one) for one in wanted]
    if call.version < _REQUEST_LIMIT_SINCE:
        # These clients always ask in the same order, so the first partition would always be served first.
        start = int.from_bytes(call.broker.runtime.random_bytes(4), "big") % max(len(sources), 1)
        sources = sources[start:] + sources[:start]
    fetch = _Fetch(call, request, sources, session, incremental=incremental)
    return fetch.answer_or_wait()


def _listed(request: FetchRequest) -> Iterable[Wanted]:
    """The partitions of a request, each once: who lists one many times does not have it read many times."""
    listed: dict[tuple[TopicKey, int], Wanted] = {}
    for topic in request.topics:
        key = topic_key(topic)
        for partition in topic.partitions:
            listed[key, partition.partition] = Wanted(key, partition)
    return listed.values()


def _found_if_readable(call: Call, wanted: Wanted) -> _Source:
    found = _found(call, wanted)
    name = wanted.topic if isinstance(wanted.topic, str) else None
    try:
        require_topic(call, Operation.READ, found.topic, name)
    except MillstreamError:
        return _Refused(wanted, None, None)
    return found


def _found(call: Call, wanted: Wanted) -> _Source:
    key = wanted.topic
    topics = call.broker.topics
    topic = topics.by_flat_name(key) if isinstance(key, str) else topics.by_id(key)
    index = wanted.partition.partition
    known = topic is not None and 0 <= index < len(topic.partitions)
    return _Source(wanted, topic, topic.partitions[index] if topic is not None and known else None)


class _Fetch:
    """One fetch: reads, and if there is too little, waits and reads again."""

    def __init__(
        self,
        call: Call,
        request: FetchRequest,
        sources: list[_Source],
        session: FetchSession | None,
        *,
        incremental: bool,
    ) -> None:
        self._call = call
        self._request = request
        self._sources = sources
        self._session = session
        self._incremental = incremental
        self._appended_before = self._appended()
        self._missing_bytes = 0
        self._committed = request.isolation_level == _READ_COMMITTED
        self._translatable = BATCH_RECORDS_MAX
        self._encodings: list[PartitionEncodings] = []
        self._timer: Timer | None = None
        self._pending: Pending[FetchResponse] = Pending()

    def answer_or_wait(self) -> FetchResponse | Pending[FetchResponse]:
        request = self._request
        response, found_bytes, urgent = self._read()
        if urgent or found_bytes >= request.min_bytes or request.max_wait_ms <= 0:
            return response
        self._missing_bytes = request.min_bytes - found_bytes
        for source in self._sources:
            if source.partition is not None:
                source.partition.watch(self._news)
        self._call.client.waits.add(self)
        self._timer = self._call.broker.runtime.call_later(request.max_wait_ms / 1000, self.finish)
        return self._pending

    def _appended(self) -> int:
        return sum(source.partition.appended_bytes for source in self._sources if source.partition is not None)

    def _news(self) -> None:
        gone = any(source.partition is not None and source.partition.deleted for source in self._sources)
        enough = self._appended() - self._appended_before >= self._missing_bytes
        if gone or self._readable(decided=not enough):
            self.finish()

    def _readable(self, *, decided: bool) -> bool:
        """Whether there is anything to read.

        Args:
            decided: look only where there are or were transactions; that there is now may be the end of one.
        """
        return any(
            source.partition is not None
            and (source.partition.transactions is not None or not decided)
            and source.partition.end_for(committed=self._committed) > source.wanted.partition.fetch_offset
            for source in self._sources
        )

    def finish(self) -> None:
        """Answer with what there is."""
        self.call_off()
        try:
            response = self._read()[0]
        except Exception as error:  # noqa: BLE001 - handed on whole: the connection must not wait for ever
            self._pending.fail(error)
        else:
            self._pending.resolve(response)

    def call_off(self) -> None:
        """Wait no more."""
        if self._timer is not None:
            self._timer.cancel()
        for source in self._sources:
            if source.partition is not None:
                source.partition.unwatch(self._news)
        self._call.client.waits.discard(self)

    def _read(self) -> tuple[FetchResponse, int, bool]:
        """Read from all partitions.

        Returns:
            The answer, bytes of batches in it, and whether it is not to be kept waiting: it holds an error, or
            there is more to read than it has room for, so that waiting would not make it fuller.
        """
        version = self._call.version
        # Before there was a limit for all partitions together, each gave one message at least.
        each_gives = version < _REQUEST_LIMIT_SINCE
        budget = InflationBudget(UNPACKED_ANSWER_BYTES_MAX) if version < _BATCHES_SINCE else None
        self._translatable = BATCH_RECORDS_MAX
        self._encodings = []
        room_bytes = min(max(self._request.max_bytes, 1), _RESPONSE_BYTES_MAX, self._call.client.room_bytes())
        topics: dict[TopicKey, FetchableTopicResponse] = {}
        served: list[Wanted] = []
        found_bytes, urgent = 0, False
        for source in self._sources:
            wanted = source.wanted
            if self._incremental and self._nothing_new(source):
                continue
            first = each_gives or not found_bytes
            data, stop_offset = self._read_partition(source, room_bytes - found_bytes, budget, first=first)
            if data.error_code and version < _BATCHES_SINCE:
                data.error_code = before_batches(data.error_code)
            size = len(data.records or b"")
            if size:
                found_bytes += size
                served.append(wanted)
            end = data.last_stable_offset if self._committed else data.high_watermark
            urgent = urgent or bool(data.error_code) or (found_bytes > 0 and stop_offset < end)
            news = (wanted.high_watermark, wanted.log_start_offset) != (data.high_watermark, data.log_start_offset)
            if self._incremental and not size and not data.error_code and not news:
                continue
            wanted.high_watermark, wanted.log_start_offset = data.high_watermark, data.log_start_offset
            topic = topics.get(wanted.topic)
            if topic is None:
                topic = topics[wanted.topic] = _topic_response(wanted.topic)
            topic.partitions.append(data)
        if self._session is not None:
            self._session.served(served)
        session_id = self._session.id if self._session is not None else 0
        response = FetchResponse(session_id=session_id, responses=list(topics.values()), encodings=self._encodings)
        return response, found_bytes, urgent

    def _nothing_new(self, source: _Source) -> bool:
        """Whether there is nothing to tell of a partition: what makes a consumer of a thousand of them cheap."""
        wanted, partition = source.wanted, source.partition
        if partition is None or partition.deleted or wanted.partition.current_leader_epoch > LEADER_EPOCH:
            return False
        if wanted.partition.fetch_offset != partition.end_for(committed=self._committed):
            return False
        return (wanted.high_watermark, wanted.log_start_offset) == (
            partition.uncommitted_offset,
            partition.log.start_offset,
        )

    def _read_partition(
        self, source: _Source, room_bytes: int, budget: InflationBudget | None, *, first: bool
    ) -> tuple[PartitionData, int]:
        """Read from one partition; gives its part of the answer, and the offset behind what is in there.

        Args:
            source: the partition.
            room_bytes: what is left of the answer.
            budget: for what message sets are made of; None to answer with batches.
            first: whether one batch or message at least is given even if it is larger than what was asked for.
        """
        wanted = source.wanted.partition
        partition = source.partition
        offset = wanted.fetch_offset
        data = PartitionData(partition_index=wanted.partition, high_watermark=-1, records=b"")
        if not self._committed:
            data.aborted_transactions = None
        if partition is None or partition.deleted:
            if isinstance(source, _Refused):
                data.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                return data, offset
            by_id = not isinstance(source.wanted.topic, str)
            unknown_id = by_id and (source.topic is None or partition is not None)
            data.error_code = ErrorCode.UNKNOWN_TOPIC_ID if unknown_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return data, offset
        log = partition.log
        data.high_watermark, data.last_stable_offset = partition.uncommitted_offset, partition.stable_offset
        data.log_start_offset = log.start_offset
        data.error_code = epoch_error(wanted.current_leader_epoch)
        if data.error_code:
            return data, offset
        kept = self._call.broker.translated_frames
        max_bytes = min(wanted.partition_max_bytes, room_bytes)
        if max_bytes <= 0 and not (first and room_bytes > 0):
            # Full, but an offset that does not exist is still told.
            if not log.start_offset <= offset <= log.end_offset:
                data.error_code = ErrorCode.OFFSET_OUT_OF_RANGE
            return data, offset
        try:
            if budget is not None:
                magic = 1 if self._call.version >= _TIMESTAMPS_SINCE else 0
                messages, stop_offset = read_messages(kept, partition, offset, max_bytes, magic, budget)
                records = memoryview(messages)
            else:
                records, stop_offset = partition.read(offset, max_bytes, committed=self._committed)
                foreign = log.encodings & ~Magic.KAFKA_V2
                if records and (foreign or (self._committed and partition.has_aborted(offset, stop_offset))):
                    if foreign and self._translatable <= 0 and not first:
                        return data, offset
                    records, stop_offset, count = first_frames(records, stop_offset, self._translatable)
                    self._translatable -= count
                    if self._request.wants_encodings and source.topic is not None:
                        told = PartitionEncodings(topic_id=source.topic.id, partition=partition.index)
                        told.runs = encoding_runs(records)
                        self._encodings.append(told)
                    is_hidden = partition.is_aborted if self._committed else partition.is_withheld
                    records = memoryview(kafka_batches(kept, partition, records, is_hidden))
        except (MillstreamError, OSError) as error:
            data.error_code = code_of(error)
            return data, offset
        # Only the first partition with data may exceed what was asked for, by being one batch that is larger.
        if not first and len(records) > max_bytes:
            return data, offset
        data.records = records
        return data, stop_offset


def _topic_response(key: TopicKey) -> FetchableTopicResponse:
    if isinstance(key, str):
        return FetchableTopicResponse(topic=key, topic_id=NO_UUID)
    return FetchableTopicResponse(topic_id=key)
