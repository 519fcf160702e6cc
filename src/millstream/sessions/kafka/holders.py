"""Who reads under a group's name: its members, as other protocols see them, and the others, as Kafka sees them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from millstream.broker.groups import Groups
from millstream.broker.holders import Holder

__all__ = ["PROTOCOL", "OtherClient", "assignors", "by_client", "members_of"]

PROTOCOL = "kafka"


def members_of(groups: Groups, name: str) -> Iterator[Holder]:
    """The members of a group, once for each topic that one subscribes to."""
    group = groups.find(name)
    if group is None:
        return
    for member in group.members.values():
        for topic in sorted(member.subscribed):
            yield Holder(
                protocol=PROTOCOL, id=member.id, client=member.client_id, host=member.client_host, topic=topic
            )


class OtherClient(NamedTuple):
    """A client of another protocol, as a member of a group is described."""

    member_id: str
    client_id: str
    client_host: str


def by_client(holders: Iterable[Holder]) -> dict[OtherClient, dict[str, list[int]]]:
    """The partitions that clients of other protocols read, by topic."""
    read: dict[OtherClient, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for one in holders:
        host = f"/{one.host.rpartition(':')[0] or one.host}"
        read[OtherClient(f"{one.protocol}-{one.id}", one.client, host)][one.topic] += one.partitions
    return read


def assignors(own: str, holders: Iterable[Holder]) -> str:
    """What is told as the assignor of a group: its own, and each other protocol whose clients read under its name."""
    return ",".join(filter(None, [own, *sorted({one.protocol for one in holders})]))
