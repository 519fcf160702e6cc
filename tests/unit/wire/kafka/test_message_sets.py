"""Message sets to batches and back, against a codec that is not ours, and with what a hostile producer may send."""

import gzip

import pytest

from millstream.model.frame import Attributes, frame_crc, read_frame_header, set_base_offset, set_log_append_time
from millstream.model.record import Record
from millstream.wire.compression import Codec
from millstream.wire.kafka.errors import CorruptBatch, InvalidBatch, InvalidRecords, UnsupportedCodec
from millstream.wire.kafka.message_codecs import pack
from millstream.wire.kafka.message_sets import is_message_set, to_batches, to_messages
from millstream.wire.kafka.records import InflationBudget, build_batch, check_batch, place_batch, read_records
from tests.support.message_sets import LOG_APPEND_TIME, message, message_set, read_messages, resealed

BATCH_BYTES_MAX = 1_000_000
CODECS = pytest.mark.parametrize("codec", list(Codec)[:4])
MAGICS = pytest.mark.parametrize("magic", [0, 1])
MB = 1024 * 1024


def some(count: int = 50, size: int = 100) -> list[Record]:
    values = [b"%d" % n * (size // 3) for n in range(count)]
    return [Record(offset=n, timestamp_ms=5000 + n, key=b"k%d" % n, value=value) for n, value in enumerate(values)]


def timeless(records: list[Record]) -> list[Record]:
    return [Record(offset=one.offset, timestamp_ms=-1, key=one.key, value=one.value) for one in records]


def up(messages: bytes | bytearray, limit: int = BATCH_BYTES_MAX) -> list[bytearray]:
    return to_batches(memoryview(messages), limit, InflationBudget())


def down(batches: bytes | bytearray, magic: int, offset: int = 0, room: int = MB) -> tuple[list[Record], int, int]:
    messages, next_offset = to_messages(memoryview(batches), magic, offset, room, InflationBudget())
    return read_messages(messages), next_offset, len(messages)


@MAGICS
@CODECS
def test_a_set_becomes_one_batch_of_the_same_records_and_codec(magic: int, codec: Codec) -> None:
    (batch,) = up(message_set(magic, codec, some()))
    header = check_batch(memoryview(batch))
    assert header.attributes == codec
    wanted = some() if magic else timeless(some())
    assert list(read_records(memoryview(batch))) == wanted
    assert (header.first_timestamp, header.max_timestamp) == (wanted[0].timestamp_ms, wanted[-1].timestamp_ms)


@MAGICS
@CODECS
@pytest.mark.parametrize("offset", [0, 1, 49])
def test_a_batch_becomes_a_set_from_an_offset_on(magic: int, codec: Codec, offset: int) -> None:
    batch = build_batch(some(), codec=codec)
    set_base_offset(memoryview(batch), 1000)
    found, next_offset, _ = down(batch, magic, 1000 + offset)
    wanted = [
        Record(offset=1000 + one.offset, timestamp_ms=one.timestamp_ms if magic else -1, key=one.key, value=one.value)
        for one in some()[offset:]
    ]
    assert (found, next_offset) == (wanted, 1050)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
def test_what_is_compressed_stays_so_and_zstd_does_not(codec: Codec) -> None:
    messages, _ = to_messages(memoryview(build_batch(some(), codec=codec)), 1, 0, MB, InflationBudget())
    assert messages[17] == codec
    assert int.from_bytes(messages[:8], "big") == 49, "the offset of the last one inside"
    messages, _ = to_messages(memoryview(build_batch(some(), codec=Codec.ZSTD)), 1, 0, MB, InflationBudget())
    assert messages[17] == 0
    assert [one.value for one in read_messages(messages)] == [one.value for one in some()]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
def test_the_time_of_append_is_that_of_all(codec: Codec) -> None:
    batch = build_batch(some(), codec=codec)
    set_log_append_time(memoryview(batch), 9999)
    found, _, _ = down(batch, 1)
    assert {(one.timestamp_ms, one.append_time) for one in found} == {(9999, True)}
    assert {one.timestamp_ms for one in down(batch, 0)[0]} == {-1}


def test_headers_are_lost_and_nothing_else() -> None:
    with_headers = Record(offset=0, timestamp_ms=1, key=b"k", value=None, headers=(("a", b"b"), ("c", None)))
    assert down(build_batch([with_headers]), 1)[0] == [Record(offset=0, timestamp_ms=1, key=b"k", value=None)]


def test_control_batches_and_batches_without_records_are_passed_over() -> None:
    control = build_batch(some(2))
    control[22] |= Attributes.CONTROL
    control[17:21] = frame_crc(memoryview(control)).to_bytes(4, "big")
    assert down(control, 1) == ([], 2, 0)
    empty = place_batch((), read_frame_header(build_batch(some(3))))
    set_base_offset(memoryview(empty), 2)
    last = build_batch(some(1))
    set_base_offset(memoryview(last), 5)
    found, next_offset, _ = down(control + empty + last, 0)
    assert ([one.offset for one in found], next_offset) == ([5], 6)


def test_gaps_between_offsets_are_kept() -> None:
    frame = read_frame_header(build_batch(some(10)))
    batch = place_batch([some(10)[2], some(10)[7]], frame)
    assert [one.offset for one in down(batch, 1)[0]] == [2, 7]
    assert down(batch, 0, offset=3)[:2] == (timeless([some(10)[7]]), 10)


@MAGICS
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.ZSTD])
def test_reading_with_any_room_gets_everything_in_order(magic: int, codec: Codec) -> None:
    batches = bytearray()
    for n in range(3):
        batch = build_batch(some(), codec=codec)
        set_base_offset(memoryview(batch), n * 50)
        batches += batch
    for room in (0, 1, 500, 5000, 20_000):
        offset, seen = 0, []
        while offset < 150:
            found, next_offset, size = down(batches, magic, offset, room)
            assert found
            assert next_offset == found[-1].offset + 1
            # Only the first message may be larger; a compressed one is at most the whole batch.
            assert size <= room or len(found) == 1 or codec is Codec.GZIP
            seen += [one.offset for one in found]
            offset = next_offset
        assert seen == list(range(150))


def test_a_compressed_batch_that_unpacks_to_much_becomes_several_messages() -> None:
    batch = build_batch(some(100, 60_000), codec=Codec.GZIP)
    messages, next_offset = to_messages(memoryview(batch), 1, 0, 10 * MB, InflationBudget())
    assert (len(read_messages(messages)), next_offset) == (100, 100)
    first_bytes = 12 + int.from_bytes(messages[8:12], "big")
    assert first_bytes < len(messages)
    found, next_offset, _ = down(batch, 1, 0, room=1)
    assert 10 < len(found) < 40
    assert next_offset == len(found)


def test_a_message_larger_than_a_piece() -> None:
    large = [Record(offset=0, timestamp_ms=1, key=None, value=bytes(3 * MB)), *some(3)[1:]]
    assert len(down(build_batch(large, codec=Codec.GZIP), 1, room=10 * MB)[0]) == 3
    assert len(down(build_batch(large), 0, room=1)[0]) == 1


def test_no_further_batch_is_unpacked_once_the_budget_is_used_up() -> None:
    batches = bytearray()
    for n in range(3):
        batch = build_batch(some(), codec=Codec.GZIP)
        set_base_offset(memoryview(batch), n * 50)
        batches += batch
    _, next_offset = to_messages(memoryview(batches), 1, 0, MB, InflationBudget(3000))
    assert next_offset == 50


def test_a_set_larger_than_a_batch_may_be_becomes_several() -> None:
    records = some(100, 1000)
    batches = up(message_set(1, 0, records), limit=20_000)
    assert len(batches) >= 4
    assert all(len(batch) <= 20_000 for batch in batches)
    found = [one.value for batch in batches for one in read_records(memoryview(batch))]
    assert found == [one.value for one in records]
    assert check_batch(memoryview(batches[0])).record_count > 10


def test_messages_of_all_kinds_in_one_set() -> None:
    records = some(6)
    messages = (
        message_set(0, 0, records[:1])
        + message_set(1, Codec.GZIP, records[1:3])
        + message_set(1, 0, records[3:4])
        + message_set(0, Codec.SNAPPY, records[4:])
    )
    (batch,) = up(messages)
    assert check_batch(memoryview(batch)).attributes == Codec.SNAPPY, "the codec of the last"
    found = list(read_records(memoryview(batch)))
    assert [one.value for one in found] == [one.value for one in records]
    assert [one.timestamp_ms for one in found] == [-1, 5001, 5002, 5003, -1, -1]


def test_a_claim_to_the_time_of_append_is_handed_on() -> None:
    for inner in (0, LOG_APPEND_TIME):
        (batch,) = up(message(b"v", magic=1, attributes=inner))
        assert bool(read_frame_header(batch).attributes & Attributes.LOG_APPEND_TIME) == bool(inner)


def test_nothing_is_an_empty_set() -> None:
    assert up(b"") == []
    assert is_message_set(memoryview(b""))


INNER = bytes(message(b"inner"))
REFUSED = {
    "cut off": (message(b"value")[:-1], CorruptBatch),
    "only its start": (message(b"value")[:16], CorruptBatch),
    "a checksum": (message(b"value")[:12] + b"\0\0\0\0" + message(b"value")[16:], CorruptBatch),
    "a size of less than a message": (bytes(8) + b"\0\0\0\x0d" + bytes(40), CorruptBatch),
    "a negative size": (bytes(8) + b"\xff\xff\xff\xff" + bytes(40), CorruptBatch),
    "another magic behind": (message(b"a") + message(b"b", magic=2), CorruptBatch),
    "a negative time": (message(b"v", magic=1, timestamp_ms=-2), InvalidRecords),
    "a time beyond all": (message(b"v", magic=1, timestamp_ms=2**63 - 1), InvalidRecords),
    "zstd": (message(b"v", attributes=4), UnsupportedCodec),
    "codec 7": (message(b"v", attributes=7), UnsupportedCodec),
    "null inside": (message(None, attributes=1), CorruptBatch),
    "nothing inside": (message(gzip.compress(b""), attributes=1), InvalidRecords),
    "rubbish inside": (message(b"rubbish", attributes=1), CorruptBatch),
    "a cut message inside": (message(gzip.compress(INNER[:-1]), attributes=1), CorruptBatch),
    "compressed twice": (
        message(gzip.compress(bytes(message(gzip.compress(INNER), attributes=1))), attributes=1),
        InvalidRecords,
    ),
    "a wrong checksum inside": (message(gzip.compress(INNER[:-1] + b"x"), attributes=1), CorruptBatch),
    "a wrapper's checksum": (message(gzip.compress(INNER), attributes=1)[:-1] + b"x", CorruptBatch),
    "a key that is too long": (
        resealed(message(b"value")[:18] + b"\0\0\0\xff" + message(b"value")[22:]),
        CorruptBatch,
    ),
    "a key of -2": (resealed(message(b"value")[:18] + b"\xff\xff\xff\xfe" + message(b"value")[22:]), CorruptBatch),
    "a short message of magic 1": (resealed(message(b"")[:16] + b"\x01" + message(b"")[17:]), CorruptBatch),
}


@pytest.mark.parametrize(("messages", "error"), REFUSED.values(), ids=REFUSED.keys())
def test_what_must_not_be_stored(messages: bytearray, error: type[InvalidBatch]) -> None:
    with pytest.raises(error):
        up(messages)
    with pytest.raises(error):  # and what stands before does not help
        up(message(b"good") + messages)


@MAGICS
@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
def test_a_bomb_is_refused_and_many_small_ones_share_a_budget(magic: int, codec: Codec) -> None:
    inner = bytes(message(bytes(1_000_000), magic=magic))
    bomb = message(pack(codec, inner, magic), magic=magic, attributes=codec)
    budget = InflationBudget(2_500_000)
    to_batches(memoryview(bomb), BATCH_BYTES_MAX, budget)
    assert budget.left_bytes == 2_500_000 - len(inner)
    with pytest.raises(CorruptBatch):
        to_batches(memoryview(bomb * 2), BATCH_BYTES_MAX, budget)


def test_several_compressed_messages_make_no_batch_that_nobody_would_unpack(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = message_set(0, Codec.GZIP, some(20, 3000)) * 3
    assert len(up(whole)) == 1
    monkeypatch.setattr("millstream.wire.kafka.message_sets.INFLATED_BATCH_BYTES_MAX", 60_000)
    with pytest.raises(InvalidRecords, match="60000"):
        up(whole)
    monkeypatch.undo()
    monkeypatch.setattr("millstream.wire.kafka.message_sets.BATCH_RECORDS_MAX", 59)
    with pytest.raises(InvalidRecords, match="59"):
        up(whole)


def test_every_cut_of_a_set_is_refused() -> None:
    for codec in (0, 1):
        whole = message_set(1, codec, some(3))
        single = 12 + int.from_bytes(whole[8:12], "big")
        for size in range(1, single):
            with pytest.raises(CorruptBatch):
                up(whole[:size])


def test_batches_are_not_taken_for_sets() -> None:
    assert not is_message_set(memoryview(build_batch(some(1))))
    assert is_message_set(memoryview(message(b"x")))
