"""Which protocol a connection speaks, from the first bytes that its client sends.

Each protocol has a test of its own, which says yes, no, or that it wants more bytes. The tests exclude each other,
but for those of Kafka and Kafka 0.7, where the whole request decides. Facts that tell the protocols apart:

- TLS begins with a handshake record (22, version 3.1 to 3.4) whose first message is a ClientHello (1).
- HTTP begins with the name of a method, in capital letters.
- Iggy begins with a little-endian size and a little-endian code, or with four zero bytes, which are the start of the
  long header of its later dialects, with the kind of a request in its place, and an impossible size in every other
  protocol. No code of a command is a multiple of 256, so that the fifth byte is not zero; in all others that byte is.
- Pulsar begins with two big-endian sizes, the second smaller than the first, and a CONNECT command: its type, 08 02,
  and then the field that holds it, 12.
- Kafka begins with a big-endian size, a 16-bit API key, a 16-bit version, a correlation id, and the length of a
  client id, which fits into the request. Kafka 0.7 has a request type of 0 to 4 in the key's place, then the length
  of a topic or a count of topics; what follows the topic says how long the request is, and agrees with the size.

Sources: RFC 8446 (5.1, 4), RFC 9110 (9), and the pages of each protocol that its package in `wire` names.
"""

import struct
from collections.abc import Callable
from typing import Final

__all__ = ["TLS", "UNKNOWN", "looks_like_tls", "recognise"]

TLS: Final = "tls"
"""What is recognised where TLS is to come off first."""
UNKNOWN: Final = ""
"""What is recognised in bytes of no protocol that is spoken here."""

_INT32_MAX: Final = 2**31 - 1
_METHODS: Final = (b"GET ", b"HEAD", b"POST", b"PUT ", b"DELE", b"OPTI", b"PATC", b"CONN", b"TRAC", b"PRI ")
_TLS_RECORD: Final = b"\x16\x03"
_TLS_VERSIONS: Final = range(1, 5)
_CLIENT_HELLO: Final = 1
_IGGY_SIZE_MIN: Final = 4
_IGGY_LONG_KIND: Final = 60
_IGGY_REQUEST: Final = 5
_IGGY_CODES: Final = 1 << 16
"""Where codes of Iggy's commands end, by far."""
_SIZES: Final = struct.Struct(">II")
_PULSAR_CONNECT: Final = b"\x08\x02\x12"
_KAFKA_HEAD: Final = struct.Struct(">iHHih")
_SIZE_MIN: Final = 10
"""Bytes of Kafka's header without a client id, and of Pulsar's CONNECT; requests of Kafka 0.7 are longer."""
_API_KEYS: Final = 256
"""Where API keys of Kafka end, by far."""
_VERSIONS: Final = 256
"""Where versions of an API of Kafka end, by far."""
_OLD_HEAD: Final = struct.Struct(">iHH")
_PARTITION_AND_LENGTH: Final = struct.Struct(">ii")
_OLD_TOPIC_BYTES_MAX: Final = 4 * 255
"""Bytes of a topic of 255 characters, as many as a topic of Kafka 0.7 may have."""
_OLD_FETCH_BYTES: Final = 16
"""Bytes behind the topic of a FETCH, and of an OFFSETS."""
_OLD_PRODUCE_BYTES: Final = 8
"""Bytes between the topic of a PRODUCE and its messages."""
_PRODUCE, _FETCH, _MULTIFETCH, _MULTIPRODUCE, _OFFSETS = range(5)
_PARTITIONS: Final = 1 << 20
"""Where numbers of partitions end, by far; -1 lets the server choose."""
_COMPARED_BYTES_MAX: Final = 64 * 1024
"""Bytes that are waited for of a request which may be one of Kafka and of Kafka 0.7: what is longer, and not there as
a whole, is one of 0.7, whose requests of several parts carry messages."""


def recognise(head: bytes, home: str = UNKNOWN, size_max: int = _INT32_MAX) -> str | None:
    """Tell the protocol from the first bytes.

    Args:
        head: what has arrived so far.
        size_max: bytes of the largest request that is taken: what says that it is longer is none.
        home: the protocol of the listener, which has what could be that of several, and what is none's: its session
            refuses in its own words what it cannot read. UNKNOWN for a listener of all protocols.

    Returns:
        The name of the protocol as listeners have it, TLS, or UNKNOWN; None if more bytes are needed.
    """
    for name, test in _TESTS:
        answer = test(head, size_max)
        if answer is None:
            return None
        if answer:
            return name
    return _kafka_or_older(head, home, size_max)


def looks_like_tls(head: bytes, _: int = _INT32_MAX) -> bool | None:
    """Whether the first bytes are those of a TLS connection; None if more are needed."""
    if not _TLS_RECORD.startswith(head[:2]):
        return False
    if len(head) < 6:
        return None
    return head[2] in _TLS_VERSIONS and head[5] == _CLIENT_HELLO


def _looks_like_http(head: bytes, _: int) -> bool | None:
    if len(head) >= 4:
        return head[:4] in _METHODS
    return None if any(method.startswith(head) for method in _METHODS) else False


def _looks_like_iggy(head: bytes, size_max: int) -> bool | None:
    if len(head) < 4:
        return None
    size = int.from_bytes(head[:4], "little")
    if not size:
        return head[_IGGY_LONG_KIND] == _IGGY_REQUEST if len(head) > _IGGY_LONG_KIND else None
    if not _IGGY_SIZE_MIN <= size <= size_max or head[4:5] == b"\0":
        return False
    return None if len(head) < 8 else int.from_bytes(head[4:8], "little") < _IGGY_CODES


def _looks_like_pulsar(head: bytes, size_max: int) -> bool | None:
    if not _SIZE_MIN <= int.from_bytes(head[:4], "big") <= size_max or not _PULSAR_CONNECT.startswith(head[8:11]):
        return False
    if len(head) < 11:
        return None
    total, command = _SIZES.unpack_from(head)
    return bool(command + 4 <= total)


_TESTS: Final[tuple[tuple[str, Callable[[bytes, int], bool | None]], ...]] = (
    (TLS, looks_like_tls),
    ("http", _looks_like_http),
    ("iggy", _looks_like_iggy),
    ("pulsar", _looks_like_pulsar),
)


# Kafka, of today and of 2011


def _kafka_or_older(head: bytes, home: str, size_max: int) -> str | None:
    if not _SIZE_MIN <= int.from_bytes(head[:4], "big") <= size_max:
        return home
    is_old = _looks_like_kafka07(head)
    if is_old is None:
        return None
    is_today = _looks_like_kafka(head)
    if is_today is None:
        return None
    if is_old and is_today:
        is_today = _decodes_as_kafka(head)
        if is_today is None:
            return None
    if is_old and is_today:
        return home if home in {"kafka", "kafka07"} else "kafka07"
    if is_old:
        return "kafka07"
    return "kafka" if is_today else home


def _looks_like_kafka(head: bytes) -> bool | None:
    if len(head) < _KAFKA_HEAD.size:
        return None
    size, key, version, _, client_id_bytes = _KAFKA_HEAD.unpack_from(head)
    return bool(key < _API_KEYS and version < _VERSIONS and -1 <= client_id_bytes <= size - _SIZE_MIN)


def _decodes_as_kafka(head: bytes) -> bool | None:
    """Whether a request that is one of Kafka 0.7 is one of today's as well, down to its last byte."""
    from millstream.wire.kafka.api import read_request_header
    from millstream.wire.kafka.errors import MalformedMessage
    from millstream.wire.kafka.messages.fetch import FETCH
    from millstream.wire.kafka.messages.list_offsets import LIST_OFFSETS
    from millstream.wire.kafka.messages.metadata import METADATA
    from millstream.wire.kafka.messages.produce import PRODUCE
    from millstream.wire.kafka.primitives import read_tags
    from millstream.wire.kafka.schema import compiled_decoder

    end = 4 + int.from_bytes(head[:4], "big")
    if len(head) < min(end, _COMPARED_BYTES_MAX):
        return None
    frame = memoryview(head)[4:end]
    try:
        header = read_request_header(frame)
        api = (PRODUCE, FETCH, LIST_OFFSETS, METADATA)[header.api_key]
        version, position = header.api_version, header.position
        if version not in api.versions:
            return False
        flexible = api.flexible(version)
        if flexible:
            _, position = read_tags(frame, position)
        return compiled_decoder(api.request, version, flexible=flexible)(frame, position)[1] == len(frame)
    except (IndexError, MalformedMessage):
        return False


def _looks_like_kafka07(head: bytes) -> bool | None:
    if len(head) < _OLD_HEAD.size:
        return None
    size, kind, second = _OLD_HEAD.unpack_from(head)
    if kind > _OFFSETS or size < 0 or not second:
        return False
    if kind in {_MULTIFETCH, _MULTIPRODUCE}:
        return _looks_like_several(head, size, kind, second)
    rest_bytes = size - 4 - second
    behind_bytes = _OLD_PRODUCE_BYTES if kind == _PRODUCE else _OLD_FETCH_BYTES
    if second > _OLD_TOPIC_BYTES_MAX or rest_bytes < behind_bytes or (kind != _PRODUCE and rest_bytes > behind_bytes):
        return False
    fields = head[8 + second : 8 + second + 8]
    if not _is_text(head[8 : 8 + second]):
        return False
    if len(fields) < 8:
        return None
    partition, length = _PARTITION_AND_LENGTH.unpack(fields)
    return -1 <= partition < _PARTITIONS and (kind != _PRODUCE or bool(length == rest_bytes - behind_bytes))


def _looks_like_several(head: bytes, size: int, kind: int, count: int) -> bool | None:
    """Whether a request of several parts is one of Kafka 0.7, going by the first part and the room for the others."""
    if len(head) < 10:
        return None
    topic_bytes = int.from_bytes(head[8:10], "big")
    behind_bytes = _OLD_PRODUCE_BYTES if kind == _MULTIPRODUCE else _OLD_FETCH_BYTES
    rest_bytes = size - 4 - count * (2 + behind_bytes) - topic_bytes
    if not 0 < topic_bytes <= _OLD_TOPIC_BYTES_MAX or rest_bytes < count - 1:
        return False
    fields = head[10 + topic_bytes : 18 + topic_bytes]
    if not _is_text(head[10 : 10 + topic_bytes]):
        return False
    if len(fields) < 8:
        return None
    partition, length = _PARTITION_AND_LENGTH.unpack(fields)
    return -1 <= partition < _PARTITIONS and (kind == _MULTIFETCH or 0 <= length <= rest_bytes)


def _is_text(name: bytes) -> bool:
    """Whether what has arrived of a name may be one: none that is taken here has control characters."""
    return all(byte >= 0x20 and byte != 0x7F for byte in name)
