"""Batches that are damaged, lie about themselves or are bombs: refused by name, and nothing of them is stored."""

import struct
from collections.abc import Callable, Iterator

import cramjam
import pytest

from millstream.wire.compression import Codec
from millstream.wire.kafka.error_codes import ErrorCode
from millstream.wire.kafka.messages.produce import PRODUCE
from tests.conformance.raw.log_client import LATEST, LogClient, batch_of, produce_request, resealed
from tests.conformance.raw.server_memory import growth_below
from tests.support.server_process import ServerProcess

LENGTH_AT, MAGIC_AT, ATTRIBUTES_AT, LAST_DELTA_AT, PRODUCER_AT, COUNT_AT, BODY_AT = 8, 16, 21, 23, 43, 57, 61
CORRUPT, INVALID = ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD
XERIAL = b"\x82SNAPPY\x00" + bytes(8)
BOMB_BYTES = 400 * 1024 * 1024


def good() -> bytearray:
    return batch_of(b"one", b"two", b"three")


def with_field(position: int, form: str, value: int) -> bytearray:
    batch = good()
    struct.pack_into(form, batch, position, value)
    return resealed(batch)


def cut(size: int) -> bytearray:
    return good()[:size]


def with_flipped_bit(position: int) -> bytearray:
    batch = good()
    batch[position] ^= 4
    return batch


def with_body(body: bytes, *, codec: int = 0, count: int = 3) -> bytearray:
    """A batch with any body, and a length and a checksum that fit it."""
    batch = good()[:BODY_AT] + body
    struct.pack_into(">i", batch, LENGTH_AT, len(batch) - 12)
    struct.pack_into(">h", batch, ATTRIBUTES_AT, codec)
    struct.pack_into(">i", batch, LAST_DELTA_AT, count - 1)
    struct.pack_into(">i", batch, COUNT_AT, count)
    return resealed(batch)


BODY = bytes(good()[BODY_AT:])
REFUSED: dict[str, tuple[bytes | bytearray, ErrorCode]] = {
    "empty": (b"", CORRUPT),
    "header cut": (cut(40), CORRUPT),
    "body cut": (cut(70), CORRUPT),
    "only a header": (cut(BODY_AT), CORRUPT),
    "too long a length": (with_field(LENGTH_AT, ">i", len(good()) + 100), CORRUPT),
    "negative length": (with_field(LENGTH_AT, ">i", -1), CORRUPT),
    "length below the header": (with_field(LENGTH_AT, ">i", 10), CORRUPT),
    "crc": (with_flipped_bit(18), CORRUPT),
    "body bit": (with_flipped_bit(len(good()) - 2), CORRUPT),
    "timestamp bit": (with_flipped_bit(30), CORRUPT),
    "magic 1": (with_field(MAGIC_AT, ">b", 1), INVALID),
    "magic 3": (with_field(MAGIC_AT, ">b", 3), INVALID),
    "codec 5": (with_field(ATTRIBUTES_AT, ">h", 5), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    "codec 7": (with_field(ATTRIBUTES_AT, ">h", 7), ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
    "control": (with_field(ATTRIBUTES_AT, ">h", 0x20), INVALID),
    "transactional": (with_field(ATTRIBUTES_AT, ">h", 0x10), ErrorCode.INVALID_PRODUCER_ID_MAPPING),
    "append time": (with_field(ATTRIBUTES_AT, ">h", 0x08), ErrorCode.INVALID_TIMESTAMP),
    "count 2": (with_field(COUNT_AT, ">i", 2), INVALID),
    "count 4": (with_field(COUNT_AT, ">i", 4), INVALID),
    "count 0": (with_field(COUNT_AT, ">i", 0), INVALID),
    "count -1": (with_field(COUNT_AT, ">i", -1), INVALID),
    "count 2^31-1": (with_field(COUNT_AT, ">i", 2**31 - 1), INVALID),
    "last delta": (with_field(LAST_DELTA_AT, ">i", 5), INVALID),
    "both counts one less": (with_body(BODY, count=2), INVALID),
    "both counts one more": (with_body(BODY, count=4), INVALID),
    "both counts 2^31-1": (with_body(BODY, count=2**31 - 1), INVALID),
    "bytes behind the records": (with_body(BODY + b"\x00"), INVALID),
    "producer without an epoch": (with_field(PRODUCER_AT, ">q", 5), INVALID),
    "two batches": (good() + good(), INVALID),
    "a batch and a half": (good() + good()[:30], INVALID),
    "gzip of nothing": (with_body(b"", codec=1), CORRUPT),
    "gzip of noise": (with_body(b"\x1f\x8b" + bytes(range(100)), codec=1), CORRUPT),
    "snappy of noise": (with_body(b"\xff" * 50, codec=2), CORRUPT),
    "snappy frame of noise": (
        with_body(b"\x82SNAPPY\x00" + bytes(8) + b"\x7f\xff\xff\xff" + bytes(9), codec=2),
        CORRUPT,
    ),
    "lz4 of noise": (with_body(b"\x04\x22\x4d\x18" + b"\xff" * 50, codec=3), CORRUPT),
    "zstd of noise": (with_body(b"\x28\xb5\x2f\xfd" + b"\xff" * 50, codec=4), CORRUPT),
    "zstd of too few records": (with_body(bytes(cramjam.zstd.compress(BODY)), codec=4, count=4), INVALID),
    "gzip cut": (with_body(bytes(cramjam.gzip.compress(BODY * 50))[:-9], codec=1, count=150), CORRUPT),
}


@pytest.fixture(autouse=True)
def _others_go_on(client: LogClient, topic: str, connect: Callable[..., LogClient]) -> Iterator[None]:
    """Nothing is stored, and the connection that sent it and another one go on."""
    yield
    assert client.offset(topic, LATEST) == 0
    assert client.append(topic, b"after") == 0
    assert connect().values(topic) == [b"after"]


@pytest.mark.parametrize("name", REFUSED)
def test_refused(client: LogClient, topic: str, name: str) -> None:
    batch, code = REFUSED[name]
    answer = client.produce(topic, batch)
    assert ErrorCode(answer.error_code) is code, answer.error_message
    assert answer.base_offset == -1
    assert answer.error_message or code is ErrorCode.INVALID_TXN_STATE


def test_a_null_batch(client: LogClient, topic: str) -> None:
    request = produce_request(topic, b"")
    request.topic_data[0].partition_data[0].records = None
    [answered] = client.call(PRODUCE, 9, request).responses
    assert answered.partition_responses[0].error_code == CORRUPT


def bombs() -> dict[Codec, Callable[[], bytes]]:
    return {
        Codec.GZIP: lambda: bytes(cramjam.gzip.compress(bytes(BOMB_BYTES), level=6)),
        Codec.LZ4: lambda: bytes(cramjam.lz4.compress(bytes(BOMB_BYTES))),
        Codec.ZSTD: lambda: bytes(cramjam.zstd.compress(bytes(BOMB_BYTES))),
        # A raw block says first how much it unpacks to; copies of 64 bytes take 3 bytes each.
        Codec.SNAPPY: lambda: b"\xff\xff\xff\xff\x0f" + b"\x00a" + b"\xfe\x01\x00" * 300_000,
    }


@pytest.mark.parametrize("codec", bombs(), ids=lambda codec: codec.name)
def test_bombs(client: LogClient, codec: Codec, unique: Callable[[str], str], broker: ServerProcess) -> None:
    # Large enough for the batch as it is sent, so that only what it unpacks to can be the reason.
    topic = unique("raw")
    client.create_topic(topic, configs={"max.message.bytes": str(8 << 20)})
    batch = with_body(bombs()[codec](), codec=codec, count=1)
    assert len(batch) < 8 << 20
    # What one batch may unpack to is 128 MiB.
    with growth_below(broker.process.pid, 250):
        for _ in range(3):
            answer = client.produce(topic, batch)
            assert answer.error_code == CORRUPT, answer.error_message
    assert client.offset(topic, LATEST) == 0
