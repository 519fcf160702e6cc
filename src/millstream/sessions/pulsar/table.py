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
    unsubscribe,
)
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
    _row(BaseCommand.PRODUCER, producers.handle_producer),
    _row(BaseCommand.SEND, send.handle_send, entry=True),
    _row(BaseCommand.CLOSE_PRODUCER, producers.handle_close_producer),
    _row(BaseCommand.GET_SCHEMA, schemas.handle_get_schema),
    _row(BaseCommand.GET_OR_CREATE_SCHEMA, schemas.handle_get_or_create_schema),
    _row(BaseCommand.SUBSCRIBE, subscribe.handle_subscribe),
    _row(BaseCommand.FLOW, flow.handle_flow),
    _row(BaseCommand.ACK, acks.handle_ack),
    _row(BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES, redelivery.handle_redeliver),
    _row(BaseCommand.SEEK, seek.handle_seek),
    _row(BaseCommand.GET_LAST_MESSAGE_ID, last_message.handle_get_last_message_id),
    _row(BaseCommand.CONSUMER_STATS, consumer_stats.handle_consumer_stats),
    _row(BaseCommand.UNSUBSCRIBE, unsubscribe.handle_unsubscribe),
    _row(BaseCommand.CLOSE_CONSUMER, unsubscribe.handle_close_consumer),
)

HANDLERS: Final[Mapping[int, Handler]] = {handler.type: handler for handler in _ROWS}
"""The commands that are served, by their type."""
