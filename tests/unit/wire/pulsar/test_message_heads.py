from array import array
from collections.abc import Callable
from itertools import accumulate

import pytest

from millstream.wire.pulsar import entry_messages, message_heads
from millstream.wire.pulsar.entry_run import EntryRun
from millstream.wire.pulsar.hot_commands import encode_message
from millstream.wire.pulsar.message_heads import MessageHeads
from tests.support.twins import twin

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


@pytest.mark.parametrize("write", [entry_messages.write_messages, twin("wire.pulsar.entry_messages").write_messages])
@pytest.mark.parametrize(("consumer_id", "partition", "epoch"), [(0, -1, None), (2**64 - 1, 2**31 - 1, 2**63)])
def test_many_small_entries_in_one_piece(
    monkeypatch: pytest.MonkeyPatch,
    write: Callable[..., int],
    consumer_id: int,
    partition: int,
    epoch: int | None,
) -> None:
    monkeypatch.setattr(message_heads, "write_messages", write)
    ids = sorted(set(IDS))
    entries = [b"e" * number for number in range(len(ids))]
    starts = array("q", accumulate(map(len, entries), initial=0))
    run = EntryRun(memoryview(b"".join(entries)), memoryview(starts), memoryview(array("q", ids)), ids[-1] + 1)
    expected = b"".join(
        encode_message(consumer_id, 2**64 - 1, entry_id, partition, len(entry), consumer_epoch=epoch) + entry
        for entry_id, entry in zip(ids, entries, strict=True)
    )
    assert MessageHeads(consumer_id, 2**64 - 1, partition, epoch).frames(run) == expected
