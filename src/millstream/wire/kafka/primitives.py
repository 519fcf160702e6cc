"""Variable-length integers and tagged fields, the parts of Kafka's encoding that are not fixed in size.

Source: Apache Kafka, protocol primitive types; KIP-482 for tagged fields.
"""

from typing import Final

from millstream.wire.kafka.errors import MalformedMessage

__all__ = ["SMALL_UNSIGNED_VARINTS", "read_tags", "read_unsigned_varint", "signed_varint", "unsigned_varint"]

SMALL_UNSIGNED_VARINTS: Final = [bytes([value]) for value in range(128)]
_MAX_VARINT_BYTES: Final = 5  # 32 bits in groups of 7


def read_unsigned_varint(buf: memoryview | bytes, pos: int) -> tuple[int, int]:
    """Read an unsigned 32-bit varint.

    Returns:
        The value and the position behind it.

    Raises:
        MalformedMessage: it has more than 5 bytes or does not fit 32 bits.
        IndexError: the buffer ends within it.
    """
    value = 0
    for index in range(_MAX_VARINT_BYTES):
        byte = buf[pos + index]
        value |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            if value > 0xFFFFFFFF:
                break
            return value, pos + index + 1
    raise MalformedMessage("a varint does not fit 32 bits")


def unsigned_varint(value: int) -> bytes:
    """Encode an unsigned varint of any size."""
    if value < 128:
        return SMALL_UNSIGNED_VARINTS[value]
    out = bytearray()
    while value > 127:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def signed_varint(value: int) -> bytes:
    """Encode a signed varint (zigzag), as records have them."""
    return unsigned_varint(value << 1 if value >= 0 else (-value << 1) - 1)


def read_tags(buf: memoryview, pos: int, known: frozenset[int] = frozenset()) -> tuple[dict[int, memoryview], int]:
    """Read a section of tagged fields.

    Args:
        buf, pos: where it begins.
        known: the tags that the reader has a field for; all others are passed over.

    Returns:
        The raw value of each known tag, as views, and the position behind the section.

    Raises:
        MalformedMessage: a field is longer than the buffer, or a tag stands twice.
        IndexError: the buffer ends within a varint.
    """
    count, pos = read_unsigned_varint(buf, pos)
    tags: dict[int, memoryview] = {}
    for _ in range(count):
        tag, pos = read_unsigned_varint(buf, pos)
        size, pos = read_unsigned_varint(buf, pos)
        if size > len(buf) - pos:
            raise MalformedMessage("a tagged field is longer than its frame")
        if tag in tags:
            raise MalformedMessage(f"tag {tag} stands twice")
        if tag in known:
            tags[tag] = buf[pos : pos + size]
        pos += size
    return tags, pos
