"""Produce: versions 0 to 13.

Before 3 message sets of magic 0 or 1 are sent, which become batches here, and errors that their clients do not know
are told as ones that they do. From 7 on batches may be compressed with zstd. From 12 on a partition need not have
been added to the transaction before. From 13 on topics are named by id.
"""

from collections.abc import Sequence
from typing import Final

from millstream.broker.acl import Operation
from millstream.broker.partition import Partition
from millstream.broker.topics import Topic
from millstream.model.errors import MillstreamError
from millstream.model.frame import CODEC_MASK, Attributes, read_frame_header
from millstream.model.pending import Pending, gather
from millstream.sessions.kafka.authorization import require_topic
from millstream.sessions.kafka.call import Call
from millstream.sessions.kafka.old_error_codes import before_batches
from millstream.sessions.kafka.transaction_codes import code_for_writer
from millstream.sessions.kafka.transactional_writer import TransactionalWriter
from millstream.storage.log import Appended
from millstream.wire.compression import Codec
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.errors import InvalidRecords, Unanswerable, UnsupportedCodec
from millstream.wire.kafka.message_sets import is_message_set, to_batches
from millstream.wire.kafka.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from millstream.wire.kafka.records import InflationBudget, check_batch, has_null_key

__all__ = ["handle"]

_ACKS_ALL: Final = -1
_ACKS: Final = (-1, 0, 1)
_BATCHES_SINCE: Final = 3
_ZSTD_SINCE: Final = 7
_MESSAGES_SINCE: Final = 8
_NO_KEY: Final = "a compacted topic takes no record without a key"


def handle(call: Call, request: ProduceRequest) -> ProduceResponse | Pending[ProduceResponse] | None:
    """Append a batch to each partition; answer when the acknowledgement asked for is due.

    With acks=0 there is no answer.

    Raises:
        Unanswerable: a batch sent with acks=0 is refused. As with Apache Kafka the connection ends, and its producer
            asks for metadata again.
    """
    response = ProduceResponse()
    budget = InflationBudget()
    guarded = call.broker.authorizer is not None
    waiting: list[tuple[PartitionProduceResponse, Pending[None]]] = []
    for topic_data in request.topic_data:
        topic = call.topic(topic_data.name, topic_data.topic_id)
        refusal = _refusal(call, topic, topic_data.name) if guarded else None
        answers = []
        for data in topic_data.partition_data:
            if refusal is not None:
                answer, durable = PartitionProduceResponse(index=data.index), None
                _refuse(call, answer, refusal)
            else:
                answer, durable = _append(call, request, topic, data, budget)
            if durable is not None:
                waiting.append((answer, durable))
            if (
                answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                and topic_data.topic_id.int
                and topic is None
            ):
                answer.error_code = ErrorCode.UNKNOWN_TOPIC_ID
            answers.append(answer)
        response.responses.append(
            TopicProduceResponse(name=topic_data.name, topic_id=topic_data.topic_id, partition_responses=answers)
        )
    if request.acks == 0:
        refused = next(
            (one for topic in response.responses for one in topic.partition_responses if one.error_code), None
        )
        if refused is not None:
            raise Unanswerable(f"a batch with acks=0 was refused: {ErrorCode(refused.error_code).name}")
        return None
    if not waiting:
        return response
    if len(waiting) == 1:  # as most requests are, which then need nothing gathered
        return waiting[0][1].always(lambda: _confirmed(call, response, waiting))
    return gather([durable for _, durable in waiting]).always(lambda: _confirmed(call, response, waiting))


def _refusal(call: Call, topic: Topic | None, name: str) -> MillstreamError | None:
    """Why the client may not write to a topic; None if it may."""
    try:
        require_topic(call, Operation.WRITE, topic, name)
    except MillstreamError as error:
        return error
    return None


def _append(
    call: Call,
    request: ProduceRequest,
    topic: Topic | None,
    data: PartitionProduceData,
    budget: InflationBudget,
) -> tuple[PartitionProduceResponse, Pending[None] | None]:
    answer = PartitionProduceResponse(index=data.index, base_offset=-1)
    try:
        if request.acks not in _ACKS:
            answer.error_code = ErrorCode.INVALID_REQUIRED_ACKS
            return answer, None
        partition = call.partition(topic, data.index)
        assert topic is not None
        return answer, _append_batch(call, request, (topic, partition), data, answer, budget)
    except (MillstreamError, OSError) as error:
        _refuse(call, answer, error)
        return answer, None


def _refuse(call: Call, answer: PartitionProduceResponse, error: MillstreamError | OSError) -> None:
    answer.error_code = _code_of(call, error)
    answer.base_offset = -1
    if call.version >= _MESSAGES_SINCE:
        answer.error_message = str(error)
        if isinstance(error, InvalidRecords):
            answer.record_errors.append(
                BatchIndexAndErrorMessage(batch_index=0, batch_index_error_message=str(error))
            )


def _append_batch(
    call: Call,
    request: ProduceRequest,
    place: tuple[Topic, Partition],
    data: PartitionProduceData,
    answer: PartitionProduceResponse,
    budget: InflationBudget,
) -> Pending[None] | None:
    topic, partition = place
    batch = memoryview(data.records or b"")
    if call.version < _BATCHES_SINCE and is_message_set(batch):
        return _append_messages(request, partition, batch, answer, budget)
    partition.check_size(len(batch))
    header = check_batch(batch, budget)
    if header.attributes & CODEC_MASK == Codec.ZSTD and call.version < _ZSTD_SINCE:
        raise UnsupportedCodec(f"zstd is not allowed in Produce version {call.version}")
    if partition.settings.compacted and has_null_key(batch):
        raise InvalidRecords(_NO_KEY)
    all_replicas = request.acks == _ACKS_ALL
    if header.attributes & Attributes.TRANSACTIONAL:
        writer = TransactionalWriter(call, request, topic, partition, header)
        return writer.append(batch, lambda appended: _answered(partition, appended, answer))
    if header.producer_id >= 0:
        call.broker.transactional_producers.check_plain(header.producer_id, (topic.id, data.index))
    _answered(partition, (partition.append(batch, header, all_replicas=all_replicas), batch), answer)
    return partition.durable() if all_replicas else None


def _answered(partition: Partition, appended: tuple[Appended, memoryview], answer: PartitionProduceResponse) -> None:
    answer.base_offset = appended[0].base_offset
    answer.log_start_offset = partition.log.start_offset
    if partition.settings.append_time:
        # The time that the batch was stamped with, not a later one: it is in the frame now.
        answer.log_append_time_ms = read_frame_header(appended[1]).max_timestamp


def _append_messages(
    request: ProduceRequest,
    partition: Partition,
    messages: memoryview,
    answer: PartitionProduceResponse,
    budget: InflationBudget,
) -> Pending[None] | None:
    """Append a message set, as the batches that are made of it: all of it, or nothing as far as that can be told."""
    batches = [memoryview(batch) for batch in to_batches(messages, partition.settings.batch_bytes_max, budget)]
    for batch in batches:
        partition.check_size(len(batch))
        if partition.settings.compacted and has_null_key(batch):
            raise InvalidRecords(_NO_KEY)
    all_replicas = request.acks == _ACKS_ALL
    for batch in batches:
        appended = partition.append(batch, read_frame_header(batch), all_replicas=all_replicas)
        if answer.base_offset < 0:
            answer.base_offset = appended.base_offset
            if partition.settings.append_time:
                answer.log_append_time_ms = read_frame_header(batch).max_timestamp
    return partition.durable() if all_replicas and batches else None


def _code_of(call: Call, error: MillstreamError | OSError) -> int:
    code = code_for_writer(error, call.version)
    return before_batches(code) if call.version < _BATCHES_SINCE else code


def _confirmed(
    call: Call, response: ProduceResponse, waiting: Sequence[tuple[PartitionProduceResponse, Pending[None]]]
) -> ProduceResponse:
    for answer, durable in waiting:
        try:
            durable.result()
        except (MillstreamError, OSError) as error:
            _refuse(call, answer, error)
    return response
