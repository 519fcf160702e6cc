"""CreateTopics: versions 0 to 7.

From 1 on with texts of errors, from 4 on with defaults by -1, from 5 on settings are told back, from 7 on ids.
"""

from collections import Counter
from typing import Final

from millstream.broker.acl import Operation, ResourceType
from millstream.broker.errors import InvalidPartitionCount, TopicExists
from millstream.broker.topics import Topic
from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending, gather, settled
from millstream.model.topic_name import TopicName
from millstream.sessions.kafka.authorization import may, may_with_cluster, require
from millstream.sessions.kafka.call import NODE_ID, Call
from millstream.sessions.kafka.config_resources import describe_topic, refuse_duplicates, required
from millstream.sessions.kafka.error_table import code_of
from millstream.sessions.kafka.errors import InvalidAssignment, InvalidReplicationFactor
from millstream.sessions.kafka.names import check_topic_name
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

__all__ = ["check_assignment", "handle"]

_DEFAULT: Final = -1


def handle(call: Call, request: CreateTopicsRequest) -> Pending[CreateTopicsResponse]:
    """Make topics; answered once they last."""
    response = CreateTopicsResponse()
    times = Counter(topic.name for topic in request.topics)
    making = []
    for asked in request.topics:
        result = CreatableTopicResult(name=asked.name, error_message=None, configs=[])
        response.topics.append(result)
        if times[asked.name] > 1:
            result.error_code = ErrorCode.INVALID_REQUEST
            result.error_message = "the topic is given more than once"
            continue
        making.append(_make(call, asked, result, validate_only=request.validate_only))
    return gather(making).then(lambda _: response)


def _make(call: Call, asked: CreatableTopic, result: CreatableTopicResult, *, validate_only: bool) -> Pending[None]:
    def begin() -> Pending[Topic | None]:
        if not may_with_cluster(call, Operation.CREATE):
            require(call, Operation.CREATE, ResourceType.TOPIC, asked.name)
        check_topic_name(asked.name)
        if call.topic(asked.name) is not None:
            raise TopicExists(f"there is a topic {asked.name} already")
        partitions = _partition_count(call, asked)
        refuse_duplicates(config.name for config in asked.configs)
        configs = {config.name: required(config.name, config.value) for config in asked.configs}
        name = TopicName.from_flat(asked.name)
        call.broker.topics.check_new(name, partitions, configs)
        result.num_partitions, result.replication_factor = partitions, 1
        if validate_only:
            return settled(None)
        return call.broker.topics.create(name, partitions, configs).then(_found)

    def answer(topic: Topic | None) -> None:
        if not may(call, Operation.DESCRIBE_CONFIGS, ResourceType.TOPIC, asked.name):
            result.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            result.num_partitions = result.replication_factor = -1
        if topic is None:
            return
        result.topic_id = topic.id
        if result.topic_config_error_code:
            return
        result.configs = [
            CreatableTopicConfigs(name=one.key.name, value=one.value, read_only=False, config_source=one.source)
            for one in describe_topic(call, topic)
        ]

    def refuse(error: MillstreamError) -> None:
        result.error_code, result.error_message = code_of(error), str(error)
        result.num_partitions = result.replication_factor = -1

    return Pending.attempt(begin).settle(answer, refuse)


def _found(topic: Topic) -> Topic | None:
    return topic


def _partition_count(call: Call, asked: CreatableTopic) -> int:
    if asked.assignments:
        if asked.num_partitions != _DEFAULT or asked.replication_factor != _DEFAULT:
            raise InvalidAssignment("partitions are either counted or assigned by hand, not both")
        return check_assignment({one.partition_index: one.broker_ids for one in asked.assignments})
    if asked.replication_factor != _DEFAULT and asked.replication_factor != 1:
        raise InvalidReplicationFactor(
            f"a replication factor of {asked.replication_factor}, where there is one server, so 1 (or -1) is possible"
        )
    if asked.num_partitions == _DEFAULT:
        return call.broker.settings.partitions
    if asked.num_partitions < 1:
        raise InvalidPartitionCount(f"a topic has at least 1 partition, not {asked.num_partitions}")
    return asked.num_partitions


def check_assignment(brokers: dict[int, list[int]], first: int = 0) -> int:
    """Check partitions that are assigned by hand, numbered from `first`; returns how many there are.

    Raises:
        InvalidAssignment.
    """
    if sorted(brokers) != list(range(first, first + len(brokers))):
        raise InvalidAssignment(f"partitions are numbered without gaps from {first}")
    for index, assigned in brokers.items():
        if assigned != [NODE_ID]:
            raise InvalidAssignment(
                f"partition {index} is assigned to {assigned}, and there is only broker {NODE_ID}"
            )
    return len(brokers)
