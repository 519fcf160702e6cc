"""UNSUBSCRIBE and CLOSE_CONSUMER: a consumer leaves, with its subscription or without.

Source: Pulsar binary protocol specification 3.0, "Unsubscribe" and "CloseConsumer".
"""

from millstream.sessions.pulsar.consumers import LinkedConsumer, connected_consumer
from millstream.sessions.pulsar.link import Link
from millstream.wire.pulsar.pulsar_pb2 import CommandCloseConsumer, CommandSuccess, CommandUnsubscribe

__all__ = ["handle_close_consumer", "handle_unsubscribe"]


def handle_unsubscribe(link: Link, command: CommandUnsubscribe) -> None:
    """End the subscription of a consumer, for good. Others may be connected only if the client insists."""
    linked = connected_consumer(link, command.consumer_id)
    subscription = linked.subscription
    if command.force:
        # It knows of the end by the answer: told to come back, it would make the subscription anew.
        linked.leave()
        ending = subscription.unsubscribe()
    else:
        ending = subscription.unsubscribe(linked.consumer)
        if linked.consumer.closed:
            linked.leave()
    link.answer(command.request_id, ending, lambda _: CommandSuccess(request_id=command.request_id))


def handle_close_consumer(link: Link, command: CommandCloseConsumer) -> None:
    """Let a consumer go; one that is not there is gone already."""
    linked = link.consumers.get(command.consumer_id)
    if isinstance(linked, LinkedConsumer):
        linked.leave()
    elif linked is not None:
        del link.consumers[command.consumer_id]
        linked.close()
    link.send(CommandSuccess(request_id=command.request_id))
