"""GET_TOPIC, GET_TOPICS, CREATE_TOPIC, UPDATE_TOPIC, DELETE_TOPIC, PURGE_TOPIC, DESCRIBE_OPTIONS."""

from typing import Any, Final

from millstream.broker.permissions import Action
from millstream.broker.streams import fold
from millstream.broker.topics import Topic
from millstream.model.pending import Pending, settled
from millstream.sessions.iggy.call import Call
from millstream.sessions.iggy.names import check_name, stored_options
from millstream.sessions.iggy.streams import purge_topic
from millstream.sessions.iggy.topic_info import COMPRESSION, OPTIONS, REPLICATION, partition_info, topic_info
from millstream.sessions.iggy.topic_options import TOPIC_OPTIONS, encoded_value, requested, topic_configs
from millstream.wire.iggy.error_codes import ErrorCode
from millstream.wire.iggy.errors import Refused
from millstream.wire.iggy.messages.system import DescribeOptions, Empty, OptionInfo, OptionList
from millstream.wire.iggy.messages.topics import (
    CreateTopic,
    StreamTopics,
    TopicDetails,
    TopicList,
    TopicReply,
    TopicRequest,
    UpdateTopic,
)

__all__ = ["PARTITIONS_MAX", "create", "delete", "describe_options", "get", "get_all", "purge", "update"]

PARTITIONS_MAX: Final = 1000
"""Partitions that one request may ask for: the protocol's own bound. Dialect A had 100,000; the broker has fewer."""
_TOPIC_SCOPE: Final = 1


def get(call: Call, request: TopicRequest) -> TopicDetails:
    """A topic and its partitions."""
    place = call.place(request.stream, request.topic)
    call.permit(Action.READ_TOPIC, place.stream.number, place.number)
    return _details(call, place.topic)


def _details(call: Call, topic: Topic) -> TopicDetails:
    partitions = [partition_info(topic, partition) for partition in topic.partitions]
    return TopicDetails(topic=topic_info(call, topic), partitions=partitions)


def get_all(call: Call, request: StreamTopics) -> TopicList:
    """The topics of a stream."""
    stream = call.stream(request.stream)
    call.permit(Action.LIST_TOPICS, stream.number)
    topics = [topic_info(call, topic) for topic in call.shared.streams.topics_of(stream)]
    return TopicList(count=len(topics), topics=topics)


def create(call: Call, request: CreateTopic) -> Pending[TopicReply]:
    """Make a topic."""
    stream = call.stream(request.stream)
    call.permit(Action.CREATE_TOPIC, stream.number)
    if request.topic_id == -1:
        raise Refused(ErrorCode.INVALID_TOPIC_ID, "topic 0")
    name = _new_name(call, request.name)
    if request.partitions_count > PARTITIONS_MAX and call.dialect.has_login:
        raise Refused(ErrorCode.TOO_MANY_PARTITIONS, f"{request.partitions_count} partitions")
    options = requested(request, call.dialect)
    full_name = call.shared.streams.check_new_topic(stream, name, request.topic_id)
    # A topic without partitions, which the protocol allows, cannot be had here: it gets one.
    count = max(request.partitions_count, 1)
    configs = topic_configs(options, count, {}, call.broker.settings)
    attributes: dict[str, Any] = {COMPRESSION: options.compression or 1, REPLICATION: options.replication or 1}
    if request.options:
        attributes[OPTIONS] = stored_options(request.options)

    def number(topic: Topic) -> Pending[TopicReply]:
        numbered = call.shared.streams.number_topic(topic, request.topic_id, attributes)
        return numbered.then(lambda _: _reply(call, topic))

    return call.broker.topics.create(full_name, count, configs).chain(number)


def _reply(call: Call, topic: Topic) -> TopicReply:
    details = _details(call, topic)
    return TopicReply(topic=details.topic, partitions=details.partitions)


def _new_name(call: Call, name: str) -> str:
    check_name(name, ErrorCode.INVALID_TOPIC_NAME)
    return fold(name) if call.dialect.folds_names else name


def update(call: Call, request: UpdateTopic) -> Pending[Empty]:
    """Change the settings of a topic, and its name, which changes in every protocol."""
    place = call.place(request.stream, request.topic)
    call.permit(Action.MANAGE_TOPIC, place.stream.number, place.number)
    topic, streams = place.topic, call.shared.streams
    name = _new_name(call, request.name)
    options = requested(request, call.dialect)
    configs = topic_configs(options, len(topic.partitions), topic.configs, call.broker.settings)
    attributes = dict(streams.attributes_of(topic))
    if options.compression is not None:
        attributes[COMPRESSION] = options.compression
    if options.replication is not None:
        attributes[REPLICATION] = options.replication
    if request.options:
        kept = {key: [key, kind, value] for key, kind, value in attributes.get(OPTIONS, ())}
        kept.update({one[0]: one for one in stored_options(request.options)})
        attributes[OPTIONS] = list(kept.values())
    renamed = settled(None) if name == topic.name.name else streams.rename_topic(place.stream, topic, name)
    stored = renamed.chain(lambda _: call.broker.topics.set_configs(topic, configs))
    return stored.chain(lambda _: streams.set_topic_attributes(topic, attributes)).then(lambda _: Empty())


def delete(call: Call, request: TopicRequest) -> Pending[Empty]:
    """Delete a topic."""
    place = call.place(request.stream, request.topic)
    call.permit(Action.MANAGE_TOPIC, place.stream.number, place.number)
    return call.broker.delete_topic(place.topic).then(lambda _: Empty())


def purge(call: Call, request: TopicRequest) -> Pending[Empty]:
    """Delete all messages of a topic."""
    place = call.place(request.stream, request.topic)
    call.permit(Action.MANAGE_TOPIC, place.stream.number, place.number)
    return purge_topic(call, place.topic)


def describe_options(call: Call, request: DescribeOptions) -> OptionList:
    """The options of a noun: only topics have any."""
    if request.scope != _TOPIC_SCOPE:
        return OptionList(options=[])
    return OptionList(
        options=[
            OptionInfo(key=one.key, kind=one.kind, default=encoded_value(one, one.default), description=one.doc)
            for one in TOPIC_OPTIONS.values()
        ]
    )
