from hypothesis import given
from hypothesis import strategies as st

from millstream.wire.pulsar.frames import encode_command, encode_payload_command
from millstream.wire.pulsar.hot_commands import encode_message, encode_send_receipt
from millstream.wire.pulsar.pulsar_pb2 import CommandMessage, CommandSendReceipt, MessageIdData

uint64 = st.one_of(st.integers(0, 300), st.integers(0, 2**64 - 1))
uint32 = st.one_of(st.integers(0, 300), st.integers(0, 2**32 - 1))
partitions = st.one_of(st.just(-1), st.integers(0, 2**31 - 1))
words = st.lists(st.integers(-(2**63), 2**63 - 1), max_size=40)


def message_id(ledger_id: int, entry_id: int, partition: int) -> MessageIdData:
    made = MessageIdData(ledgerId=ledger_id, entryId=entry_id)
    if partition >= 0:
        made.partition = partition
    return made


@given(uint64, uint64, uint64, partitions, uint32, words, st.none() | uint64, st.binary(max_size=300))
def test_message_has_the_bytes_of_protobuf(
    consumer_id: int,
    ledger_id: int,
    entry_id: int,
    partition: int,
    redelivery_count: int,
    ack_set: list[int],
    consumer_epoch: int | None,
    payload: bytes,
) -> None:
    body = CommandMessage(
        consumer_id=consumer_id, message_id=message_id(ledger_id, entry_id, partition), ack_set=ack_set
    )
    if redelivery_count:
        body.redelivery_count = redelivery_count
    if consumer_epoch is not None:
        body.consumer_epoch = consumer_epoch
    given_id = (consumer_id, ledger_id, entry_id, partition)
    head = encode_message(*given_id, len(payload), redelivery_count, ack_set, consumer_epoch)
    assert head + payload == b"".join(encode_payload_command(body, [payload]))


@given(uint64, uint64, uint64, uint64, partitions, uint64)
def test_receipt_has_the_bytes_of_protobuf(
    producer_id: int, sequence_id: int, ledger_id: int, entry_id: int, partition: int, highest: int
) -> None:
    body = CommandSendReceipt(
        producer_id=producer_id, sequence_id=sequence_id, message_id=message_id(ledger_id, entry_id, partition)
    )
    if highest:
        body.highest_sequence_id = highest
    assert encode_send_receipt(producer_id, sequence_id, ledger_id, entry_id, partition, highest) == encode_command(
        body
    )


def test_the_receipt_of_a_duplicate() -> None:
    nowhere = MessageIdData(ledgerId=2**64 - 1, entryId=2**64 - 1)
    body = CommandSendReceipt(producer_id=1, sequence_id=2, message_id=nowhere)
    assert encode_send_receipt(1, 2, -1, -1, -1) == encode_command(body)
