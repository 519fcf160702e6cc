"""Entries as neutral records, and records as entries.

    record         from a Pulsar message                      to a Pulsar message
    key            partition_key, its base64 undone           partition_key; in base64 if it is no UTF-8 text
    value          the content; None if null_value            the same
    headers        properties, in their order                 the same, see below
    timestamp_ms   event_time if the application set one,     event_time; a time that the server set is only the
                   else publish_time, the producer's own      publish_time, which is that of the latest record

Properties are text to every Pulsar client, headers are bytes or null. A header whose value is no UTF-8 text becomes
the property `NAME:b64` with the value in base64, a null the property `NAME:null` with an empty value, and a text
whose name itself ends in `:b64`, `:null` or `:text` the property `NAME:text`. Read back, each is what it was.

A chunk, whose content is a part of a (compressed) message, and an encrypted entry are one record each: the value is
the payload as it was sent, and the header `pulsar.metadata` is the MessageMetadata as protobuf, so that a reader can
put chunks together, or decrypt. An encrypted batch is one record at the offset of its first message.

What few messages have stands in headers behind the properties, and becomes again what it was: `pulsar.ordering-key`
is the ordering_key, and `pulsar.publish-time` the publish_time in decimal where there is an event_time as well.
`pulsar.schema-version` tells by which version of its topic's schema a message was written, in the 8 bytes of Pulsar;
it stays a property, since the versions of another topic are others.

Messages that compaction took out are no records. What has no place in a record: producer's name, sequence id, time of
delivery. What has no place in a message: times before 1970, and 1970 itself; and the publish_time of
a record with a time of its own, but for an entry of that record alone.
"""

import base64
import binascii
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from millstream.model.frame import HEADER_BYTES, Attributes, read_frame_header
from millstream.model.record import Header, Record
from millstream.wire.pulsar.compression import compress
from millstream.wire.pulsar.entry import (
    TAKEN_OUT,
    Entry,
    encode_entry,
    read_entry,
    read_messages,
)
from millstream.wire.pulsar.limits import BATCH_MESSAGES_MAX, MESSAGE_BYTES_MAX
from millstream.wire.pulsar.pulsar_pb2 import (
    NONE,
    MessageMetadata,
    Property,
    SingleMessageMetadata,
)
from millstream.wire.pulsar.sticky_key import partition_key

__all__ = [
    "METADATA_HEADER",
    "ORDERING_KEY_HEADER",
    "PUBLISH_TIME_HEADER",
    "SCHEMA_VERSION_HEADER",
    "TRANSLATED_PRODUCER_NAME",
    "BuiltEntry",
    "build_entries",
    "build_entry",
    "describe_single",
    "entry_records",
    "headers_of",
    "properties_of",
    "read_records",
    "set_key",
    "walk_records",
]

METADATA_HEADER: Final = "pulsar.metadata"
"""Header of a record that is a chunk or an encrypted entry: the MessageMetadata as protobuf."""
ORDERING_KEY_HEADER: Final = "pulsar.ordering-key"
PUBLISH_TIME_HEADER: Final = "pulsar.publish-time"
SCHEMA_VERSION_HEADER: Final = "pulsar.schema-version"
TRANSLATED_PRODUCER_NAME: Final = "millstream"
"""The producer that entries name which no Pulsar producer has sent."""

_TEXT_ENDING: Final = ":text"
_BASE64_ENDING: Final = ":b64"
_NULL_ENDING: Final = ":null"
_ENDINGS: Final = (_TEXT_ENDING, _BASE64_ENDING, _NULL_ENDING)
_RARE: Final = {ORDERING_KEY_HEADER, PUBLISH_TIME_HEADER}
_DIGITS_MAX: Final = 18
"""Digits of a number that surely fits 63 bits."""
_LENGTH_BYTES: Final = 4
_MESSAGE_BYTES: Final = 32
_FIELD_BYTES: Final = 12
"""Bytes that a message, and a property of it, have beside their content, or more."""


class BuiltEntry(NamedTuple):
    """An entry made of records.

    Args:
        first_offset: offset of its first message.
        message_count: its messages, places without one included.
        data: the entry with its checksum.
    """

    first_offset: int
    message_count: int
    data: bytearray


def walk_records(frame: memoryview) -> Iterator[Record]:
    """Give the records of a stored entry.

    A batch may turn out to be damaged only here, since its payload is not unpacked when it comes.

    Args:
        frame: one whole frame of magic PULSAR_ENTRY.

    Raises:
        MalformedEntry: the payload cannot be unpacked, or its messages do not fit it.
        UnsupportedCompression: the codec does not exist.
    """
    header = read_frame_header(frame)
    entry = read_entry(frame[HEADER_BYTES : header.size])
    append_time_ms = header.max_timestamp if header.attributes & Attributes.LOG_APPEND_TIME else None
    return entry_records(entry, header.base_offset, append_time_ms)


def read_records(frame: memoryview) -> list[Record]:
    """All of `walk_records`."""
    return list(walk_records(frame))


def entry_records(entry: Entry, first_offset: int, append_time_ms: int | None = None) -> Iterator[Record]:
    """Give the records of an entry.

    Args:
        entry: the entry.
        first_offset: offset of its first message.
        append_time_ms: the time that all its records have, where the server sets it.

    Raises:
        MalformedEntry, UnsupportedCompression: as `read_records`.
    """
    publish_time_ms = entry.metadata.publish_time
    append_time = append_time_ms is not None
    if entry.is_encrypted or entry.is_chunk:
        yield Record(
            offset=first_offset,
            timestamp_ms=append_time_ms if append_time_ms is not None else publish_time_ms,
            key=partition_key(entry.metadata),
            value=bytes(entry.payload),
            headers=(*headers_of(entry.metadata.properties), (METADATA_HEADER, entry.metadata.SerializeToString())),
            append_time=append_time,
        )
        return
    version = entry.metadata.schema_version
    told_version: tuple[Header, ...] = ((SCHEMA_VERSION_HEADER, version),) if version else ()
    told_ms = None if entry.metadata.producer_name == TRANSLATED_PRODUCER_NAME else publish_time_ms
    for index, metadata, content in read_messages(entry):
        if isinstance(metadata, SingleMessageMetadata) and metadata.compacted_out:
            continue
        yield Record(
            offset=first_offset + index,
            timestamp_ms=append_time_ms if append_time_ms is not None else metadata.event_time or publish_time_ms,
            key=partition_key(metadata),
            value=None if metadata.null_value else bytes(content),
            headers=headers_of(metadata.properties) + _rare_headers(metadata, told_ms) + told_version,
            append_time=append_time,
        )


def headers_of(properties: Sequence[Property]) -> tuple[Header, ...]:
    """Turn the properties of a message into headers."""
    return (
        tuple(_header(item.key.decode("utf-8", "replace"), item.value) for item in properties) if properties else ()
    )


def _rare_headers(
    metadata: MessageMetadata | SingleMessageMetadata, publish_time_ms: int | None
) -> tuple[Header, ...]:
    """What has no place in a record, of messages that have it."""
    headers: tuple[Header, ...] = ()
    if metadata.HasField("ordering_key"):
        headers = ((ORDERING_KEY_HEADER, metadata.ordering_key),)
    if metadata.event_time and publish_time_ms is not None:
        headers = (*headers, (PUBLISH_TIME_HEADER, b"%d" % publish_time_ms))
    return headers


def _header(name: str, value: bytes) -> Header:
    if not name.endswith(_ENDINGS):
        return name, value
    bare, _, ending = name.rpartition(":")
    match ending:
        case "text" if bare.endswith(_ENDINGS):
            return bare, value
        case "null" if not value:
            return bare, None
        case "b64":
            try:
                return bare, base64.b64decode(value, validate=True)
            except binascii.Error:
                return name, value  # an application's own name
    return name, value


def properties_of(headers: Sequence[Header]) -> list[Property]:
    """Turn headers into the properties of a message."""
    return [_property(name, value) for name, value in headers]


def _property(name: str, value: bytes | None) -> Property:
    if value is None:
        return Property(key=(name + _NULL_ENDING).encode(), value=b"")
    if not _is_text(value):
        return Property(key=(name + _BASE64_ENDING).encode(), value=base64.b64encode(value))
    return Property(key=(name + _TEXT_ENDING if name.endswith(_ENDINGS) else name).encode(), value=value)


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def build_entries(
    records: Sequence[Record],
    *,
    first_offset: int,
    message_count: int,
    compression: int = NONE,
    content_bytes_max: int = MESSAGE_BYTES_MAX // 2,
) -> Iterator[BuiltEntry]:
    """Build entries of the records of one frame: one entry, or more if it would be too large for a Pulsar client.

    Offsets without a record become places that hold no message, as compaction leaves them, so that a message's place
    in its entry stays its offset minus the entry's first.

    Args:
        records: in the order of their offsets.
        first_offset: the first offset of the frame.
        message_count: offsets from there on that the entries stand for, 1 to BATCH_MESSAGES_MAX.
        compression: how to pack payloads, one of CompressionType.
        content_bytes_max: bytes of keys, values and headers after which an entry is ended; one record may exceed it.
    """
    if not 0 < message_count <= BATCH_MESSAGES_MAX:
        raise ValueError(f"entries of {message_count} messages")
    end = first_offset + message_count
    run: list[Record] = []
    content_bytes = 0
    for record in records:
        record_bytes = _content_bytes(record)
        if run and content_bytes + record_bytes > content_bytes_max:
            yield _built(run, first_offset, record.offset, compression)
            first_offset = record.offset
            run = []
            content_bytes = 0
        run.append(record)
        content_bytes += record_bytes
    yield _built(run, first_offset, end, compression)


def _content_bytes(record: Record) -> int:
    in_headers = sum(len(name.encode()) + len(value or b"") + _FIELD_BYTES for name, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + in_headers + _MESSAGE_BYTES


def _built(run: Sequence[Record], first_offset: int, end: int, compression: int) -> BuiltEntry:
    count = end - first_offset
    return BuiltEntry(first_offset, count, build_entry(run, first_offset, count, compression))


def build_entry(
    records: Sequence[Record], first_offset: int, message_count: int, compression: int = NONE
) -> bytearray:
    """Build one entry of records; a single record without empty places beside it becomes an entry without a batch.

    Args:
        records: in the order of their offsets, all of them within the entry.
        first_offset: offset of the entry's first place.
        message_count: places in the entry.
        compression: how to pack the payload, one of CompressionType.
    """
    times_ms = [record.timestamp_ms for record in records]
    metadata = MessageMetadata(
        producer_name=TRANSLATED_PRODUCER_NAME,
        sequence_id=first_offset,
        publish_time=max([0, *times_ms]),
    )
    payload: bytes | bytearray
    if message_count == 1 and len(records) == 1:
        _describe(metadata, records[0])
        payload = records[0].value or b""
    else:
        metadata.num_messages_in_batch = message_count
        if records and len({record.key for record in records}) == 1:
            set_key(metadata, records[0].key)  # what Key_Shared looks at is the metadata of the entry
        if len(records) < message_count:
            places = {record.offset - first_offset for record in records}
            metadata.compacted_batch_indexes.extend(i for i in range(message_count) if i not in places)
        payload = _batch(records, first_offset, message_count)
    if compression != NONE:
        metadata.compression = compression
        metadata.uncompressed_size = len(payload)
        payload = compress(compression, payload)
    return encode_entry(metadata, payload)


def _batch(records: Sequence[Record], first_offset: int, message_count: int) -> bytearray:
    out = bytearray()
    place = first_offset
    for record in records:
        out += TAKEN_OUT * (record.offset - place)
        content = record.value or b""
        head = describe_single(record)
        out += len(head).to_bytes(_LENGTH_BYTES, "big") + head + content
        place = record.offset + 1
    out += TAKEN_OUT * (first_offset + message_count - place)
    return out


def describe_single(record: Record) -> bytes:
    """The SingleMessageMetadata of a record."""
    single = SingleMessageMetadata(payload_size=len(record.value or b""))
    _describe(single, record)
    return single.SerializeToString()


def _describe(metadata: MessageMetadata | SingleMessageMetadata, record: Record) -> None:
    set_key(metadata, record.key)
    if record.headers:
        _take_headers(metadata, record.headers)
    if record.value is None:
        metadata.null_value = True
    if record.timestamp_ms > 0 and not record.append_time:
        metadata.event_time = record.timestamp_ms


def _take_headers(metadata: MessageMetadata | SingleMessageMetadata, headers: Sequence[Header]) -> None:
    rare = {name: value for name, value in headers if name in _RARE}
    if rare:
        headers = [one for one in headers if one[0] not in _RARE]
        ordering_key, publish_time = rare.get(ORDERING_KEY_HEADER), rare.get(PUBLISH_TIME_HEADER)
        if ordering_key is not None:
            metadata.ordering_key = ordering_key
        if publish_time is not None and isinstance(metadata, MessageMetadata) and _is_number(publish_time):
            metadata.publish_time = int(publish_time)
    metadata.properties.extend(properties_of(headers))


def _is_number(text: bytes) -> bool:
    return text.isdigit() and len(text) <= _DIGITS_MAX


def set_key(metadata: MessageMetadata | SingleMessageMetadata, key: bytes | None) -> None:
    """Set the key of a message, or of all messages of a batch."""
    if key is None:
        return
    if _is_text(key):
        metadata.partition_key = key
    else:
        metadata.partition_key = base64.b64encode(key)
        metadata.partition_key_b64_encoded = True
