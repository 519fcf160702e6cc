"""The members of groups, as others see them who would read under the same name."""

from collections.abc import Iterator

from millstream.broker.holders import Holder
from millstream.sessions.iggy.call import IggyShared

__all__ = ["PROTOCOL", "members_of"]

PROTOCOL = "iggy"


def members_of(shared: IggyShared, name: str) -> Iterator[Holder]:
    """The members of the groups of a name, of whatever topic."""
    for group in shared.groups:
        topic = shared.broker.topics.by_id(group.topic_id)
        if group.name != name or topic is None:
            continue
        for number, partitions in group.sharing.assignments().items():
            client = shared.clients.get(number)
            yield Holder(
                protocol=PROTOCOL,
                id=str(number),
                client="" if client is None or client.user is None else client.user.name,
                host="" if client is None else client.address,
                topic=topic.name.flat,
                partitions=tuple(partitions),
            )
