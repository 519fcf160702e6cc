"""Names that a new topic may have."""

import pytest

from millstream.broker.errors import InvalidTopicName, TopicExists
from millstream.broker.topic_names import check_nameable, check_partition_names
from millstream.model.topic_name import TopicName

ORDERS = TopicName.from_flat("orders")


@pytest.mark.parametrize("name", ["orders", "with space", "ü", "a.b", "-partition-"])
def test_what_every_protocol_can_write(name: str) -> None:
    check_nameable(TopicName.from_flat(name))


@pytest.mark.parametrize("name", ["", "a/b", "a\n", "\u200b", "\ud800"])
def test_what_only_some_can_write(name: str) -> None:
    with pytest.raises(InvalidTopicName):
        check_nameable(TopicName.from_flat(name))


def test_names_of_partitions() -> None:
    partitions = {ORDERS: 2, TopicName.from_flat("bills-partition-1"): 0}

    def names_of(name: TopicName) -> int:
        return partitions.get(name, -1)

    for index, taken in enumerate([True, True, False]):
        if taken:
            with pytest.raises(TopicExists):
                check_partition_names(ORDERS.partition(index), (), names_of)
        else:
            check_partition_names(ORDERS.partition(index), (), names_of)
    bills = TopicName.from_flat("bills")
    check_partition_names(bills, range(1), names_of)
    with pytest.raises(TopicExists):
        check_partition_names(bills, range(2), names_of)


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("orders-partition-0", ("orders", 0)),
        ("a-partition-1-partition-20", ("a-partition-1", 20)),
        ("orders-partition-01", None),
        ("orders-partition-", None),
        ("-partition-1", None),
    ],
)
def test_taking_a_name_apart(name: str, split: tuple[str, int] | None) -> None:
    found = TopicName("t", "n", name).split_partition()
    assert found == (None if split is None else (TopicName("t", "n", split[0]), split[1]))
