"""Ids and offsets."""

import pytest

from millstream.sessions.pulsar.message_ids import as_signed, ledger_id_of, place_of, wanted_of
from millstream.wire.pulsar.limits import BATCH_MESSAGES_MAX
from millstream.wire.pulsar.pulsar_pb2 import MessageIdData
from tests.unit.sessions.pulsar.conversation import ConsumingConversation


def test_ledger_ids_are_of_topics_and_last() -> None:
    broker = ConsumingConversation.with_topic("a", 3)
    broker.create("b")
    ids = [ledger_id_of(broker.topic(name)) for name in ("a", "b")]
    assert len(set(ids)) == 2
    assert all(0 < one <= 2**42 for one in ids)
    assert ledger_id_of(broker.topic("a")) == ids[0]


@pytest.mark.parametrize(
    ("words", "wanted"), [([], None), ([0], None), ([5], 5), ([-1, 1], 2**65 - 1), ([0, 0, -(2**63)], 1 << 191)]
)
def test_words_are_bits(words: list[int], wanted: int | None) -> None:
    assert wanted_of(words) == wanted


def test_more_words_than_any_batch_has_are_not_looked_at() -> None:
    wanted = wanted_of([-1] * 20_000)
    assert wanted is not None
    assert wanted.bit_length() == BATCH_MESSAGES_MAX


def test_numbers_that_mean_negative_ones() -> None:
    assert [as_signed(number) for number in (0, 2**63 - 1, 2**63, 2**64 - 1)] == [0, 2**63 - 1, -(2**63), -1]


def test_places() -> None:
    broker = ConsumingConversation.with_topic()
    broker.publish_batch(b"0", b"1", b"2")
    partition, ledger_id = broker.partition(), ledger_id_of(broker.topic())
    found = [
        place_of(one, ledger_id, partition)
        for one in (
            MessageIdData(ledgerId=2**64 - 1, entryId=2**64 - 1),
            MessageIdData(ledgerId=2**63 - 1, entryId=2**63 - 1),
            MessageIdData(ledgerId=ledger_id, entryId=2**64 - 1),
            MessageIdData(ledgerId=ledger_id + 1, entryId=1),
            broker.id(0, 2),
            broker.id(0, ack_set=[0b110]),
            broker.id(10),
        )
    ]
    assert found == [0, 3, 0, 0, 2, 1, 10]
