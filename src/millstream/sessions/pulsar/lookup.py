"""PARTITIONED_METADATA and LOOKUP: how many partitions a topic has, and which server has it. It is always this one.

Source: Pulsar binary protocol specification 3.0, "Service discovery".
"""

from typing import Final

from millstream.broker.errors import UnknownTopic
from millstream.model.errors import MillstreamError
from millstream.model.pending import Pending, settled
from millstream.model.topic_name import TopicName
from millstream.sessions.pulsar.error_table import code_of
from millstream.sessions.pulsar.errors import UnknownListener
from millstream.sessions.pulsar.link import Link
from millstream.sessions.pulsar.names import PulsarName, find_place, parse_name
from millstream.sessions.pulsar.topics import auto_create, creation_rule, partition_count
from millstream.wire.pulsar.pulsar_pb2 import (
    CommandLookupTopic,
    CommandLookupTopicResponse,
    CommandPartitionedTopicMetadata,
    CommandPartitionedTopicMetadataResponse,
)

__all__ = ["handle_lookup", "handle_partitioned_metadata"]

COORDINATOR_TOPIC: Final = TopicName("pulsar", "system", "transaction_coordinator_assign")
"""What clients look up to find the transaction coordinators, as if they were its partitions. It is no topic."""


def handle_partitioned_metadata(link: Link, command: CommandPartitionedTopicMetadata) -> None:
    """Tell how many partitions a topic has, 0 if it is not partitioned.

    A topic that is not there is made only where its namespace makes partitioned ones: any other comes to be with its
    first producer or consumer.
    """
    request_id = command.request_id

    def answer(partitions: int) -> None:
        link.send(
            CommandPartitionedTopicMetadataResponse(
                request_id=request_id,
                partitions=partitions,
                response=CommandPartitionedTopicMetadataResponse.Success,
            )
        )

    def refuse(error: MillstreamError) -> None:
        link.send(
            CommandPartitionedTopicMetadataResponse(
                request_id=request_id,
                response=CommandPartitionedTopicMetadataResponse.Failed,
                error=code_of(error),
                message=str(error),
            )
        )

    Pending.attempt(lambda: _partitions(link, command)).settle(answer, refuse)


def _partitions(link: Link, command: CommandPartitionedTopicMetadata) -> Pending[int]:
    name = parse_name(command.topic)
    broker = link.broker
    if name.base == COORDINATOR_TOPIC:
        broker.transactions.check_enabled()
        return settled(0 if name.partition is not None else 1)
    broker.namespaces.get(name.topic.tenant, name.topic.namespace)
    if not name.persistent:
        return _volatile_partitions(link, name, create=command.metadata_auto_creation_enabled)
    topic = broker.topics.by_name(name.topic)
    if topic is not None:
        return settled(partition_count(topic))
    if name.partition is not None and find_place(broker.topics, name) is not None:
        return settled(0)
    rule = creation_rule(link, name)
    if rule.allowed:
        if rule.partitions is not None and name.partition is None and command.metadata_auto_creation_enabled:
            return auto_create(link, name).then(partition_count)
        return settled(0)
    raise UnknownTopic(f"there is no topic {name}")


def _volatile_partitions(link: Link, name: PulsarName, *, create: bool) -> Pending[int]:
    """Partitions of a topic that keeps nothing: as many as it is declared to have."""
    declarations = link.broker.volatile.declarations
    if name.partition is not None:
        return settled(0)
    partitions = declarations.partitions(name.topic)
    rule = creation_rule(link, name)
    if partitions or rule.partitions is None or not (rule.allowed and create):
        return settled(partitions)
    if link.broker.volatile.find(name.topic) is not None:
        return settled(0)  # it is in use as one that is not partitioned
    return declarations.declare(name.topic, rule.partitions).then(lambda declared: declared.partitions)


def handle_lookup(link: Link, command: CommandLookupTopic) -> None:
    """Tell where a topic is served: here, at the address that was asked for."""
    try:
        name = parse_name(command.topic)
        if name.base != COORDINATOR_TOPIC:
            link.broker.namespaces.get(name.topic.tenant, name.topic.namespace)
        listener = command.advertised_listener_name
        endpoint = link.peer.endpoint(listener)
        if endpoint is None:
            # The text is what clients look for, so that they give up at once.
            raise UnknownListener(f"the broker do not have {listener} listener")
    except MillstreamError as error:
        link.send(
            CommandLookupTopicResponse(
                request_id=command.request_id,
                response=CommandLookupTopicResponse.Failed,
                error=code_of(error),
                message=str(error),
            )
        )
        return
    link.send(
        CommandLookupTopicResponse(
            request_id=command.request_id,
            response=CommandLookupTopicResponse.Connect,
            brokerServiceUrl=f"pulsar://{endpoint}" if endpoint.plain else None,
            brokerServiceUrlTls=f"pulsar+ssl://{endpoint}" if endpoint.tls else None,
            authoritative=True,
            proxy_through_service_url=False,
        )
    )
