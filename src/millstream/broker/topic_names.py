"""Names that a new topic may have: those that are its own in every protocol.

Flat names are looked after by `Topics`. Where partitions have names, partition 3 of `orders` is `orders-partition-3`,
which may not be another topic's; and a name that only some protocols could write is no name at all.
"""

from collections.abc import Callable, Iterable

from millstream.broker.errors import InvalidTopicName, TopicExists
from millstream.model.topic_name import TopicName

__all__ = ["check_nameable", "check_partition_names"]


def check_nameable(name: TopicName) -> None:
    """Check that all protocols can write a name. Raises InvalidTopicName."""
    if not all(part and "/" not in part and part.isprintable() for part in name):
        raise InvalidTopicName(
            f"{name.flat!r} is no topic's name: it is empty, or has a slash or a character that cannot be printed"
        )


def check_partition_names(
    name: TopicName,
    partitions: Iterable[int],
    names_of: Callable[[TopicName], int],
) -> None:
    """Check that neither a topic nor its partitions have a name that is taken.

    Args:
        name: of the topic that is made, or is given partitions.
        partitions: the numbers of its partitions that get a name.
        names_of: how many partitions with names a topic has, 0 for one that is not partitioned, -1 for none at all.

    Raises:
        TopicExists.
    """
    split = name.split_partition()
    if split is not None and split[1] < names_of(split[0]):
        raise TopicExists(f"{name.flat} is the name of a partition of {split[0].flat}")
    for index in partitions:
        if names_of(name.partition(index)) >= 0:
            raise TopicExists(f"partition {index} would have the name of the topic {name.partition(index).flat}")
