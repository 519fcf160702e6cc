"""CreatePartitions: versions 0 to 3. Every topic asked for gets a result."""

from millstream.broker.acl import Operation
from millstream.broker.errors import InvalidPartitionCount, UnknownTopic
from millstream.broker.topics import PARTITIONS_MAX
from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending, gather, settled
from millstream.sessions.kafka.authorization import require_topic
from millstream.sessions.kafka.call import Call
from millstream.sessions.kafka.create_topics import check_assignment
from millstream.sessions.kafka.error_table import code_of
from millstream.sessions.kafka.errors import InvalidAssignment
from millstream.wire.kafka.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

__all__ = ["handle"]


def handle(call: Call, request: CreatePartitionsRequest) -> Pending[CreatePartitionsResponse]:
    """Give topics more partitions; answered once they last."""
    response = CreatePartitionsResponse()
    growing = []
    for asked in request.topics:
        result = CreatePartitionsTopicResult(name=asked.name)
        response.results.append(result)
        growing.append(_grow(call, asked, result, validate_only=request.validate_only))
    return gather(growing).then(lambda _: response)


def _grow(
    call: Call, asked: CreatePartitionsTopic, result: CreatePartitionsTopicResult, *, validate_only: bool
) -> Pending[None]:
    def begin() -> Pending[None]:
        topic = call.topic(asked.name)
        require_topic(call, Operation.ALTER, topic, asked.name)
        if topic is None:
            raise UnknownTopic(f"there is no topic {asked.name}")
        present = len(topic.partitions)
        if not present < asked.count <= PARTITIONS_MAX:
            raise InvalidPartitionCount(
                f"the topic has {present} partitions and can have more, up to {PARTITIONS_MAX}, not {asked.count}"
            )
        if asked.assignments is not None:
            assigned = {present + place: one.broker_ids for place, one in enumerate(asked.assignments)}
            if check_assignment(assigned, present) != asked.count - present:
                raise InvalidAssignment(
                    f"{len(assigned)} partitions are assigned, and {asked.count - present} are new"
                )
        return settled(None) if validate_only else call.broker.topics.add_partitions(topic, asked.count)

    def refuse(error: MillstreamError) -> None:
        result.error_code, result.error_message = code_of(error), str(error)

    return Pending.attempt(begin).settle(lambda _: None, refuse)
