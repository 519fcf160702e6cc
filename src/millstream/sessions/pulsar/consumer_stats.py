"""CONSUMER_STATS: a consumer in numbers.

Source: Pulsar binary protocol specification 3.0, `CommandConsumerStats` in the messages of the protocol.
"""

from datetime import UTC, datetime

from millstream.broker.subscriptions import SubscriptionKind
from millstream.sessions.pulsar.consumers import find_consumer
from millstream.sessions.pulsar.link import Link
from millstream.wire.pulsar.pulsar_pb2 import (
    CommandConsumerStats,
    CommandConsumerStatsResponse,
    ServerError,
)

__all__ = ["KIND_NAMES", "handle_consumer_stats"]

KIND_NAMES = {
    SubscriptionKind.EXCLUSIVE: "Exclusive",
    SubscriptionKind.SHARED: "Shared",
    SubscriptionKind.FAILOVER: "Failover",
    SubscriptionKind.KEY_SHARED: "Key_Shared",
}
"""What Pulsar calls the kinds of subscriptions, in figures."""


def handle_consumer_stats(link: Link, command: CommandConsumerStats) -> None:
    """Tell the figures of a consumer, and the backlog of its subscription."""
    linked = find_consumer(link, command.consumer_id)
    if linked is None:
        link.send(
            CommandConsumerStatsResponse(
                request_id=command.request_id,
                error_code=ServerError.ConsumerNotFound,
                error_message=f"there is no consumer {command.consumer_id} on this connection",
            )
        )
        return
    figures, subscription = linked.consumer.stats(), linked.subscription
    kind = subscription.kind
    link.send(
        CommandConsumerStatsResponse(
            request_id=command.request_id,
            msgRateOut=figures.record_rate,
            msgThroughputOut=figures.byte_rate,
            msgRateRedeliver=figures.redelivery_rate,
            consumerName=figures.name,
            availablePermits=max(figures.permits, 0),
            unackedMessages=figures.unacknowledged,
            blockedConsumerOnUnackedMsgs=figures.blocked,
            address=link.peer.address,
            connectedSince=datetime.fromtimestamp(figures.connected_ms / 1000, UTC).isoformat(
                timespec="milliseconds"
            ),
            type=KIND_NAMES[kind] if kind is not None else "None",
            msgBacklog=subscription.stats().backlog,
            messageAckRate=figures.acknowledge_rate,
        )
    )
