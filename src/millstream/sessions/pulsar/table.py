"""The one table of Pulsar commands: what is served, by what, and when."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from millstream.sessions.pulsar import (
    acks,
    connect,
    consumer_stats,
    flow,
    last_message,
    lookup,
    producers,
    redelivery,
    schemas,
    seek,
    send,
    subscribe,
    topic_lists,
    transactions,
    unsubscribe,
    volatile_consumers,
    volatile_producers,
)
from millstream.sessions.pulsar.volatile_consumers import of_consumer, of_topic
from millstream.wire.pulsar.pulsar_pb2 import BaseCommand

__all__ = ["HANDLERS", "Handler"]


@dataclass(frozen=True, slots=True)
class Handler:
    """How one command is served.

    Args:
        type: its number, which is its field in BaseCommand too.
        handle: serves it. Gets the connection and the command, and with `entry` what stands behind the command.
            Raises WireError at the cost of the connection; any other MillstreamError or OSError refuses the request.
        before_connect: whether it may be the first command.
        entry: whether an entry stands behind it.
    """

    type: int
    handle: Callable[..., None]
    before_connect: bool = False
    entry: bool = False

    @property
    def name(self) -> str:
        """The specification's name of the command."""
        return BaseCommand.Type.Name(self.type)

    @property
    def field(self) -> str:
        """The field of BaseCommand that holds it."""
        return BaseCommand.DESCRIPTOR.fields_by_number[self.type].name


def _row(type_: BaseCommand.Type, handle: Callable[..., None], **options: bool) -> Handler:
    return Handler(int(type_), handle, **options)


_ROWS: Final = (
    _row(BaseCommand.CONNECT, connect.handle_connect, before_connect=True),
    _row(BaseCommand.PING, connect.handle_ping),
    _row(BaseCommand.PONG, connect.handle_pong),
    _row(BaseCommand.AUTH_RESPONSE, connect.handle_auth_response),
    _row(BaseCommand.PARTITIONED_METADATA, lookup.handle_partitioned_metadata),
    _row(BaseCommand.LOOKUP, lookup.handle_lookup),
    _row(BaseCommand.GET_TOPICS_OF_NAMESPACE, topic_lists.handle_get_topics),
    _row(BaseCommand.WATCH_TOPIC_LIST, topic_lists.handle_watch),
    _row(BaseCommand.WATCH_TOPIC_LIST_CLOSE, topic_lists.handle_unwatch),
    _row(BaseCommand.PRODUCER, of_topic(producers.handle_producer, volatile_producers.handle_producer)),
    _row(BaseCommand.SEND, send.handle_send, entry=True),
    _row(BaseCommand.TC_CLIENT_CONNECT_REQUEST, transactions.handle_client_connect),
    _row(BaseCommand.NEW_TXN, transactions.handle_new),
    _row(BaseCommand.ADD_PARTITION_TO_TXN, transactions.handle_add_partitions),
    _row(BaseCommand.ADD_SUBSCRIPTION_TO_TXN, transactions.handle_add_subscriptions),
    _row(BaseCommand.END_TXN, transactions.handle_end),
    _row(BaseCommand.END_TXN_ON_PARTITION, transactions.handle_end_on_partition),
    _row(BaseCommand.END_TXN_ON_SUBSCRIPTION, transactions.handle_end_on_subscription),
    _row(BaseCommand.CLOSE_PRODUCER, producers.handle_close_producer),
    _row(BaseCommand.GET_SCHEMA, schemas.handle_get_schema),
    _row(BaseCommand.GET_OR_CREATE_SCHEMA, schemas.handle_get_or_create_schema),
    _row(BaseCommand.SUBSCRIBE, of_topic(subscribe.handle_subscribe, volatile_consumers.handle_subscribe)),
    _row(BaseCommand.FLOW, of_consumer(flow.handle_flow, volatile_consumers.handle_flow)),
    _row(BaseCommand.ACK, of_consumer(acks.handle_ack, volatile_consumers.handle_ack)),
    _row(
        BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES,
        of_consumer(redelivery.handle_redeliver, volatile_consumers.handle_unheeded),
    ),
    _row(BaseCommand.SEEK, of_consumer(seek.handle_seek, volatile_consumers.handle_refused)),
    _row(
        BaseCommand.GET_LAST_MESSAGE_ID,
        of_consumer(last_message.handle_get_last_message_id, volatile_consumers.handle_refused),
    ),
    _row(
        BaseCommand.CONSUMER_STATS,
        of_consumer(consumer_stats.handle_consumer_stats, volatile_consumers.handle_consumer_stats),
    ),
    _row(
        BaseCommand.UNSUBSCRIBE, of_consumer(unsubscribe.handle_unsubscribe, volatile_consumers.handle_close_consumer)
    ),
    _row(
        BaseCommand.CLOSE_CONSUMER,
        of_consumer(unsubscribe.handle_close_consumer, volatile_consumers.handle_close_consumer),
    ),
)

HANDLERS: Final[Mapping[int, Handler]] = {handler.type: handler for handler in _ROWS}
"""The commands that are served, by their type."""
