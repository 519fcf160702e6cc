"""Entries: what SEND brings, the log keeps and MESSAGE takes, byte for byte.

    magic: 0x0e01    crc32c: uint32, of all that follows
    metadata size: uint32    metadata: MessageMetadata    payload: the rest

Magic and checksum are both left out by clients that were told a protocol version below 6. All numbers are big-endian.
The payload is compressed as a whole if the metadata says so, then encrypted if it says so. If the metadata has
`num_messages_in_batch`, even of 1, the payload is that many times

    metadata size: uint32    metadata: SingleMessageMetadata    content: payload_size bytes

A chunk is an entry with a part of the (compressed) payload of one message: `join_chunks`.

Towards clients that know it, the broker may put its own metadata before an entry: `broker_entry_prefix`.

Source: Pulsar binary protocol specification 3.0, "Message commands" and "Batch messages".
"""

import struct
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from crc32c import crc32c
from google.protobuf.message import DecodeError

from millstream.wire.limits import INFLATED_BATCH_BYTES_MAX
from millstream.wire.pulsar.compression import compress, is_compression, uncompress
from millstream.wire.pulsar.errors import ChecksumMismatch, MalformedEntry, UnsupportedCompression
from millstream.wire.pulsar.frames import missing_fields
from millstream.wire.pulsar.limits import BATCH_MESSAGES_MAX, METADATA_BYTES_MAX
from millstream.wire.pulsar.pulsar_pb2 import (
    NONE,
    BrokerEntryMetadata,
    MessageMetadata,
    SingleMessageMetadata,
)

__all__ = [
    "CompactedEntry",
    "Entry",
    "EntryMessage",
    "broker_entry_prefix",
    "check_entry",
    "encode_entry",
    "join_chunks",
    "read_entry",
    "read_messages",
    "split_broker_entry_metadata",
    "uncompressed_payload",
]

MAGIC: Final = b"\x0e\x01"
BROKER_METADATA_MAGIC: Final = b"\x0e\x02"
MESSAGE_BYTES_MIN: Final = 6
"""Bytes of a message in a batch at least: the size of its metadata, and in there its payload_size."""

_UINT32: Final = struct.Struct(">I")
_CHECKSUM_FROM: Final = 6
_INT64_END: Final = 2**63


class Entry(NamedTuple):
    """An entry taken apart.

    Args:
        metadata: of the entry; do not change it.
        payload: as it was sent, compressed and encrypted; a view of the entry.
    """

    metadata: MessageMetadata
    payload: memoryview

    @property
    def is_batch(self) -> bool:
        """Whether the payload is a batch, perhaps of one message."""
        return self.metadata.HasField("num_messages_in_batch")

    @property
    def message_count(self) -> int:
        """Messages in the entry, those that compaction has taken out included; a chunk is one."""
        return self.metadata.num_messages_in_batch

    @property
    def is_chunk(self) -> bool:
        """Whether the payload is a part of a message."""
        return self.metadata.num_chunks_from_msg > 1

    @property
    def has_more_chunks(self) -> bool:
        """Whether the payload is a part of a message, and not the last one."""
        return self.is_chunk and self.metadata.chunk_id != self.metadata.num_chunks_from_msg - 1

    @property
    def is_encrypted(self) -> bool:
        """Whether only its consumers can read the payload."""
        return len(self.metadata.encryption_keys) > 0


class EntryMessage(NamedTuple):
    """One message of an entry.

    Args:
        batch_index: its place in the entry, from 0.
        metadata: its own in a batch, otherwise the entry's.
        content: what the application sent.
    """

    batch_index: int
    metadata: SingleMessageMetadata | MessageMetadata
    content: memoryview


def read_entry(data: memoryview) -> Entry:
    """Take an entry apart that was checked when it came; its checksum is not looked at.

    Args:
        data: the whole entry and nothing behind it.

    Raises:
        MalformedEntry: its metadata does not fit, or cannot be decoded.
    """
    return _open(data, _CHECKSUM_FROM if bytes(data[:2]) == MAGIC else 0)


def _open(data: memoryview, start: int) -> Entry:
    room = len(data) - start - 4
    if room < 0:
        raise MalformedEntry("an entry ends before its metadata's size")
    size: int = _UINT32.unpack_from(data, start)[0]
    if size > room or size > METADATA_BYTES_MAX:
        raise MalformedEntry(f"metadata of {size} bytes, where {min(room, METADATA_BYTES_MAX)} are allowed")
    start += 4
    try:
        metadata = MessageMetadata.FromString(bytes(data[start : start + size]))
    except DecodeError as error:
        raise MalformedEntry(f"the metadata of an entry cannot be decoded: {error}") from None
    return Entry(metadata, data[start + size :])


def check_entry(data: memoryview) -> Entry:
    """Check that an entry may be stored: its checksum, its metadata, and that its messages can be as many as it says.

    The payload is not unpacked, so that a batch may turn out to be damaged when it is read.

    Args:
        data: what stands behind a SEND command.

    Raises:
        ChecksumMismatch: the checksum is wrong.
        MalformedEntry: anything else that a reader could not make sense of.
        UnsupportedCompression: the payload is compressed with a codec that does not exist.
    """
    start = 0
    if bytes(data[:2]) == MAGIC:
        start = _CHECKSUM_FROM
        if len(data) < start or crc32c(data[start:]) != _UINT32.unpack_from(data, 2)[0]:
            raise ChecksumMismatch("the checksum of an entry is wrong")
    entry = _open(data, start)
    metadata, payload = entry
    if not metadata.IsInitialized():
        raise MalformedEntry(f"the metadata of an entry {missing_fields(metadata)}")
    if metadata.publish_time >= _INT64_END or metadata.event_time >= _INT64_END:
        raise MalformedEntry("a time of an entry has more than 63 bits")
    room = len(payload)
    compression = metadata.compression
    if compression != NONE:
        room = metadata.uncompressed_size
        if not is_compression(compression):
            raise UnsupportedCompression(f"there is no compression codec {compression}")
        if room > INFLATED_BATCH_BYTES_MAX:
            raise MalformedEntry(f"a payload says it unpacks to {room} bytes, more than {INFLATED_BATCH_BYTES_MAX}")
    if metadata.HasField("num_messages_in_batch"):
        count = metadata.num_messages_in_batch
        if not 1 <= count <= min(room // MESSAGE_BYTES_MIN, BATCH_MESSAGES_MAX):
            raise MalformedEntry(f"a batch of {room} bytes says it holds {count} messages")
    return entry


def uncompressed_payload(entry: Entry) -> memoryview:
    """Unpack the payload of an entry that is not encrypted and is no chunk.

    Raises:
        MalformedEntry, UnsupportedCompression: as `compression.uncompress`.
    """
    metadata = entry.metadata
    return uncompress(metadata.compression, entry.payload, metadata.uncompressed_size)


def read_messages(entry: Entry, unpacked: memoryview | None = None) -> Iterator[EntryMessage]:
    """Give the messages of an entry that is not encrypted and is no chunk, those taken out by compaction included.

    Args:
        entry: the entry.
        unpacked: its `uncompressed_payload`; None to unpack it here.

    Raises:
        MalformedEntry: the payload cannot be unpacked, or its messages do not fit it.
        UnsupportedCompression: the codec does not exist.
    """
    payload = uncompressed_payload(entry) if unpacked is None else unpacked
    if not entry.is_batch:
        yield EntryMessage(0, entry.metadata, payload)
        return
    end = len(payload)
    position = 0
    for index in range(entry.metadata.num_messages_in_batch):
        if position + 4 > end:
            raise MalformedEntry(f"a batch ends before its message {index}")
        size: int = _UINT32.unpack_from(payload, position)[0]
        position += 4
        if size > min(end - position, METADATA_BYTES_MAX):
            raise MalformedEntry(f"the metadata of message {index} is longer than its batch or its limit")
        try:
            metadata = SingleMessageMetadata.FromString(bytes(payload[position : position + size]))
        except DecodeError as error:
            raise MalformedEntry(f"the metadata of message {index} cannot be decoded: {error}") from None
        position += size
        stop = position + metadata.payload_size
        if not position <= stop <= end:
            raise MalformedEntry(f"message {index} is longer than its batch")
        yield EntryMessage(index, metadata, payload[position:stop])
        position = stop


def encode_entry(metadata: MessageMetadata, payload: bytes | bytearray | memoryview) -> bytearray:
    """Build an entry with a checksum.

    Args:
        metadata: of the entry.
        payload: as it stands in the entry: packed if the metadata says so.
    """
    head = metadata.SerializeToString()
    out = bytearray(MAGIC) + bytes(4) + _UINT32.pack(len(head)) + head + payload
    _UINT32.pack_into(out, 2, crc32c(memoryview(out)[_CHECKSUM_FROM:]))
    return out


class CompactedEntry:
    """The entry that compaction leaves of a batch: the messages taken out keep their places, without content.

    Args:
        entry: a batch that is not encrypted. The metadata of the new one tells which messages were taken out, too.
    """

    def __init__(self, entry: Entry) -> None:
        self._metadata = entry.metadata
        self._payload = bytearray()
        self._taken_out: list[int] = []

    def add(self, message: EntryMessage, *, stays: bool) -> None:
        """Add the next message, or its place."""
        if stays:
            head = message.metadata.SerializeToString()
            self._payload += _UINT32.pack(len(head)) + head + message.content
        else:
            self._payload += TAKEN_OUT
            self._taken_out.append(message.batch_index)

    @property
    def payload_bytes(self) -> int:
        """Bytes of the payload, not compressed."""
        return len(self._payload)

    def encode(self) -> bytearray:
        """The entry."""
        metadata = MessageMetadata()
        metadata.CopyFrom(self._metadata)
        metadata.compacted_batch_indexes[:] = self._taken_out
        if metadata.compression != NONE:
            metadata.uncompressed_size = len(self._payload)
        return encode_entry(metadata, compress(metadata.compression, self._payload))


_NOTHING: Final = SingleMessageMetadata(compacted_out=True, payload_size=0).SerializeToString()
TAKEN_OUT: Final = _UINT32.pack(len(_NOTHING)) + _NOTHING
"""A place in a batch that holds no message."""


def join_chunks(chunks: Sequence[Entry]) -> Entry:
    """Make the entry of a whole message out of its chunks.

    Args:
        chunks: all of them, in order.

    Returns:
        An entry that is no chunk: its payload is to be decrypted and unpacked like any other's.

    Raises:
        MalformedEntry: they are not all the chunks of one message, in order.
    """
    first = chunks[0].metadata
    for index, chunk in enumerate(chunks):
        metadata = chunk.metadata
        if metadata.uuid != first.uuid or metadata.chunk_id != index or metadata.num_chunks_from_msg != len(chunks):
            raise MalformedEntry(f"chunk {metadata.chunk_id} of {metadata.uuid} stands where {index} should")
    payload = b"".join(chunk.payload for chunk in chunks)
    if len(payload) != first.total_chunk_msg_size:
        raise MalformedEntry(
            f"the chunks of {first.uuid} have {len(payload)} bytes in all, which is not what they say"
        )
    whole = MessageMetadata()
    whole.CopyFrom(chunks[-1].metadata)
    for field in ("chunk_id", "num_chunks_from_msg", "total_chunk_msg_size"):
        whole.ClearField(field)
    return Entry(whole, memoryview(payload))


def broker_entry_prefix(index: int, timestamp_ms: int) -> bytes:
    """Build what may stand before an entry in a MESSAGE.

    Args:
        index: offset of the entry's last message.
        timestamp_ms: when the broker took it, in ms since 1970.
    """
    content = BrokerEntryMetadata(broker_timestamp=timestamp_ms, index=index).SerializeToString()
    return BROKER_METADATA_MAGIC + _UINT32.pack(len(content)) + content


def split_broker_entry_metadata(data: memoryview) -> tuple[BrokerEntryMetadata | None, memoryview]:
    """Take the broker's metadata off what stands behind a MESSAGE.

    Returns:
        The metadata, None if there is none, and the entry.

    Raises:
        MalformedEntry: the metadata does not fit, or cannot be decoded.
    """
    if bytes(data[:2]) != BROKER_METADATA_MAGIC:
        return None, data
    if len(data) < _CHECKSUM_FROM:
        raise MalformedEntry("the broker's metadata ends before its size")
    stop = _CHECKSUM_FROM + _UINT32.unpack_from(data, 2)[0]
    if stop > len(data) or stop > METADATA_BYTES_MAX:
        raise MalformedEntry("the broker's metadata is longer than its frame or its limit")
    try:
        return BrokerEntryMetadata.FromString(bytes(data[_CHECKSUM_FROM:stop])), data[stop:]
    except DecodeError as error:
        raise MalformedEntry(f"the broker's metadata cannot be decoded: {error}") from None
