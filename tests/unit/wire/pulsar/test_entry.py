from collections.abc import Callable

import pytest

from millstream.wire.pulsar.compression import compress
from millstream.wire.pulsar.entry import (
    Entry,
    broker_entry_prefix,
    check_entry,
    encode_entry,
    join_chunks,
    read_entry,
    read_messages,
    split_broker_entry_metadata,
    uncompressed_payload,
)
from millstream.wire.pulsar.errors import ChecksumMismatch, MalformedEntry, UnsupportedCompression
from millstream.wire.pulsar.limits import METADATA_BYTES_MAX
from millstream.wire.pulsar.pulsar_pb2 import (
    LZ4,
    NONE,
    SNAPPY,
    ZLIB,
    ZSTD,
    BrokerEntryMetadata,
    MessageMetadata,
    SingleMessageMetadata,
)
from tests.support.compacted_entries import compact_entry

CODECS = (NONE, LZ4, ZLIB, ZSTD, SNAPPY)
CONTENTS = [b"first", b"", b"third" * 100]


def metadata(**fields: object) -> MessageMetadata:
    made = MessageMetadata(producer_name="p", sequence_id=1, publish_time=1_700_000_000_000)
    for name, value in fields.items():
        setattr(made, name, value)
    return made


def batch_payload(contents: list[bytes]) -> bytes:
    out = b""
    for content in contents:
        head = SingleMessageMetadata(payload_size=len(content)).SerializeToString()
        out += len(head).to_bytes(4, "big") + head + content
    return out


def batch(codec: int = NONE, contents: list[bytes] = CONTENTS, count: int | None = None) -> memoryview:
    payload = batch_payload(contents)
    fields = metadata(num_messages_in_batch=len(contents) if count is None else count)
    if codec != NONE:
        fields.compression = codec
        fields.uncompressed_size = len(payload)
    return memoryview(encode_entry(fields, compress(codec, payload)))


def without_checksum(data: memoryview) -> memoryview:
    return data[6:]


def test_an_entry_without_a_batch() -> None:
    entry = check_entry(memoryview(encode_entry(metadata(), b"content")))
    assert (entry.is_batch, entry.message_count, entry.is_chunk, entry.is_encrypted) == (False, 1, False, False)
    [message] = read_messages(entry)
    assert (message.batch_index, bytes(message.content), message.metadata) == (0, b"content", entry.metadata)


@pytest.mark.parametrize("form", [memoryview, without_checksum], ids=["checksum", "no checksum"])
@pytest.mark.parametrize("codec", CODECS)
def test_a_batch(codec: int, form: Callable[[memoryview], memoryview]) -> None:
    data = form(batch(codec))
    entry = check_entry(data)
    assert entry == read_entry(data)
    assert (entry.is_batch, entry.message_count) == (True, 3)
    assert [(m.batch_index, bytes(m.content)) for m in read_messages(entry)] == list(enumerate(CONTENTS))
    assert bytes(uncompressed_payload(entry)) == batch_payload(CONTENTS)


def test_a_batch_of_one_is_a_batch() -> None:
    entry = check_entry(batch(contents=[b"one"]))
    assert (entry.is_batch, entry.message_count) == (True, 1)


def test_every_flipped_bit_is_found() -> None:
    data = bytearray(batch(LZ4))
    for position in range(2, len(data)):
        data[position] ^= 1
        with pytest.raises(ChecksumMismatch):
            check_entry(memoryview(data))
        data[position] ^= 1
    check_entry(memoryview(data))


@pytest.mark.parametrize("form", [memoryview, without_checksum], ids=["checksum", "no checksum"])
def test_what_is_cut_short_is_refused(form: Callable[[memoryview], memoryview]) -> None:
    data = form(batch())
    for length in range(len(data)):
        cut = data[:length]
        with pytest.raises((ChecksumMismatch, MalformedEntry)):
            list(read_messages(check_entry(cut)))


@pytest.mark.parametrize("codec", CODECS)
def test_bytes_behind_the_last_message_are_ignored(codec: int) -> None:
    payload = batch_payload(CONTENTS) + b"trailing"
    fields = metadata(num_messages_in_batch=3, compression=codec, uncompressed_size=len(payload))
    entry = check_entry(memoryview(encode_entry(fields, compress(codec, payload))))
    assert [bytes(m.content) for m in read_messages(entry)] == CONTENTS


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (encode_entry(metadata(compression=5, uncompressed_size=9), b"x"), UnsupportedCompression),
        (encode_entry(metadata(compression=LZ4, uncompressed_size=2**31), b"x"), MalformedEntry),
        (encode_entry(metadata(publish_time=2**63), b"x"), MalformedEntry),
        (encode_entry(metadata(event_time=2**63), b"x"), MalformedEntry),
        (batch(count=0), MalformedEntry),
        (batch(count=-1), MalformedEntry),
        (batch(count=len(batch_payload(CONTENTS)) // 6 + 1), MalformedEntry),
        (batch(LZ4, count=2**31 - 1), MalformedEntry),
        (b"\xff\xff\xff\xff" + b"x" * 100, MalformedEntry),
        ((METADATA_BYTES_MAX + 1).to_bytes(4, "big") + bytes(METADATA_BYTES_MAX + 1), MalformedEntry),
        (b"\x00\x00\x00\x02\x0a\x00", MalformedEntry),
        (b"", MalformedEntry),
    ],
    ids=[
        "codec", "inflated size", "publish time", "event time", "no messages", "negative count", "count",
        "count when compressed", "metadata beyond the end", "metadata too long", "required fields", "nothing",
    ],
)  # fmt: skip
def test_entries_that_are_not_stored(data: bytes | bytearray | memoryview, error: type[Exception]) -> None:
    with pytest.raises(error):
        check_entry(memoryview(data))


@pytest.mark.parametrize("codec", [LZ4, ZLIB, ZSTD, SNAPPY])
@pytest.mark.parametrize("said", [0, 10, 100_000])
def test_a_payload_that_unpacks_to_another_size(codec: int, said: int) -> None:
    fields = metadata(compression=codec, uncompressed_size=said, num_messages_in_batch=3)
    entry = Entry(fields, memoryview(compress(codec, batch_payload(CONTENTS))))
    with pytest.raises(MalformedEntry):
        list(read_messages(entry))


@pytest.mark.parametrize("codec", [LZ4, ZLIB, ZSTD, SNAPPY])
def test_a_payload_that_is_not_of_its_codec(codec: int) -> None:
    with pytest.raises(MalformedEntry):
        uncompressed_payload(Entry(metadata(compression=codec, uncompressed_size=100), memoryview(b"\xff" * 50)))


@pytest.mark.parametrize(
    "payload",
    [
        b"\x00\x00",
        b"\xff\xff\xff\xff",
        b"\x00\x00\x00\x02\x18\x05abc",
        b"\x00\x00\x00\x0b\x18" + b"\xff" * 9 + b"\x01abc",
        b"\x00\x00\x00\x01\x18",
    ],
    ids=["size cut", "metadata too long", "content too long", "negative size", "metadata cut"],
)
def test_damaged_batches(payload: bytes) -> None:
    with pytest.raises(MalformedEntry):
        list(read_messages(Entry(metadata(num_messages_in_batch=1), memoryview(payload))))


@pytest.mark.parametrize("codec", CODECS)
def test_compaction_keeps_the_places_of_messages(codec: int) -> None:
    entry = check_entry(memoryview(compact_entry(check_entry(batch(codec)), {0, 2})))
    messages = list(read_messages(entry))
    assert [bytes(m.content) for m in messages] == [CONTENTS[0], b"", CONTENTS[2]]
    taken_out = [m.metadata.compacted_out for m in messages if isinstance(m.metadata, SingleMessageMetadata)]
    assert taken_out == [False, True, False]
    assert list(entry.metadata.compacted_batch_indexes) == [1]
    assert (entry.message_count, entry.metadata.compression) == (3, codec)


def chunk(index: int, content: bytes, **fields: object) -> Entry:
    said = {"uuid": "p-1", "chunk_id": index, "num_chunks_from_msg": 3, "total_chunk_msg_size": 9, **fields}
    return check_entry(memoryview(encode_entry(metadata(**said), content)))


def test_chunks_are_joined() -> None:
    chunks = [chunk(0, b"abc"), chunk(1, b"def"), chunk(2, b"ghi")]
    assert all(part.is_chunk for part in chunks)
    whole = join_chunks(chunks)
    assert (whole.is_chunk, bytes(whole.payload), whole.metadata.uuid) == (False, b"abcdefghi", "p-1")


@pytest.mark.parametrize(
    "chunks",
    [
        [chunk(0, b"abc"), chunk(1, b"def")],
        [chunk(0, b"abc"), chunk(2, b"ghi"), chunk(1, b"def")],
        [chunk(0, b"abc"), chunk(1, b"def"), chunk(2, b"ghi", uuid="p-2")],
        [chunk(0, b"abc"), chunk(1, b"def"), chunk(2, b"g")],
    ],
    ids=["missing", "order", "another message", "size"],
)
def test_chunks_that_do_not_belong_together(chunks: list[Entry]) -> None:
    with pytest.raises(MalformedEntry):
        join_chunks(chunks)


def test_broker_entry_metadata() -> None:
    data = batch()
    before = broker_entry_prefix(index=102, timestamp_ms=1_700_000_000_001)
    assert before[:2] == b"\x0e\x02"
    found, rest = split_broker_entry_metadata(memoryview(before + bytes(data)))
    assert found == BrokerEntryMetadata(index=102, broker_timestamp=1_700_000_000_001)
    assert rest == data
    assert split_broker_entry_metadata(data) == (None, data)
    for length in range(2, len(before)):
        with pytest.raises(MalformedEntry):
            split_broker_entry_metadata(memoryview(before[:length]))
    with pytest.raises(MalformedEntry):
        split_broker_entry_metadata(memoryview(b"\x0e\x02\x00\x00\x00\x01\x08"))
