import pytest

from millstream.wire.pulsar.hot_commands import encode_message
from millstream.wire.pulsar.message_heads import MessageHeads

IDS = [0, 1, 127, 128, 129, 255, 256, 16_383, 16_384, 16_385, 2**28, 2**35 + 5, 2**35 + 6, 2**63 - 1, 3, 128, 128]


@pytest.mark.parametrize("consumer_id", [0, 127, 128, 2**64 - 1])
@pytest.mark.parametrize("partition", [-1, 0, 300])
@pytest.mark.parametrize("epoch", [None, 0, 1000])
def test_heads_are_those_of_commands_written_one_by_one(consumer_id: int, partition: int, epoch: int | None) -> None:
    ledger_id = 2**42 + 1
    heads = MessageHeads(consumer_id, ledger_id, partition, epoch)
    for size, entry_id in enumerate(IDS):
        expected = encode_message(consumer_id, ledger_id, entry_id, partition, size * 1000, consumer_epoch=epoch)
        assert heads.head(entry_id, size * 1000) == expected
