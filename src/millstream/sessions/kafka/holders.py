"""The members of groups, as others see them who would read under the same name."""

from collections.abc import Iterator

from millstream.broker.groups import Groups
from millstream.broker.holders import Holder
from millstream.sessions.kafka.consumer_subscription import subscribed_topics

__all__ = ["PROTOCOL", "members_of"]

PROTOCOL = "kafka"


def members_of(groups: Groups, name: str) -> Iterator[Holder]:
    """The members of a group, once for each topic that one subscribes to."""
    group = groups.find(name)
    if group is None:
        return
    for member in group.members.values():
        topics = {topic for protocol in member.protocols for topic in subscribed_topics(protocol.metadata)}
        for topic in sorted(topics):
            yield Holder(
                protocol=PROTOCOL, id=member.id, client=member.client_id, host=member.client_host, topic=topic
            )
