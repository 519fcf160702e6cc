"""The hot loop from the rows of `millstream.model.record_table` to messages as the answer to a poll carries them.

This file is both the reference and, where a C compiler is found at installation, the source of a compiled module of
the same name: Cython takes the types from `polled_rows.pxd`. Read by Python it is slower than what goes by way of
`Record`, so that then it is not used: `COMPILED` tells. The tests hold both to the same answers, and to those of
`millstream.wire.iggy.polled`, which says what becomes of which field.
"""

from array import array
from collections.abc import Callable
from typing import Final
from zlib import crc32

from xxhash import xxh3_64_intdigest, xxh3_128_digest

__all__ = ["BATCH_BYTES", "COMPILED", "HEADER_BYTES_MAX", "MESSAGE_BYTES_MAX", "PolledRows"]

COMPILED: Final = not __file__.endswith(".py")
"""Whether this module is compiled."""
MESSAGE_BYTES_MAX: Final = 128
"""Bytes of a message beside its content, or more."""
BATCH_BYTES: Final = 256
"""Bytes of the header of a batch, in BATCH."""
HEADER_BYTES_MAX: Final = 16
"""Bytes of a header beside its content, or more."""
_NAMES: Final = b"iggy.idiggy.origin-timestampiggy.kindsmillstream.key"
"""The names of headers that mean something here: of 7, 21, 10 and 14 bytes."""


class PolledRows:
    """Writes rows as messages.

    Args:
        data, rows, headers: of a table.
        count: of its rows.
        heads: of the frames, see `millstream.model.frame_span`.
        base_offset: of the span.
        appended: whether the messages have the time of their frame's append; their own otherwise.
        partition: whose they are.
        seed: what ids are made of, before the offset.
        describe: gives the id, the producer's time (8 bytes) and the headers of a record that is left to others, by
            its row and the headers before it.
        batches_max: how many batches there may be, in BATCH.
        room: bytes that all of it may take: of the content, MESSAGE_BYTES_MAX for each message, HEADER_BYTES_MAX for
            each header, and BATCH_BYTES for each batch.

    After `write`, `out` holds the messages. `starts` says where each of them begins, and where the last one ends; in
    BATCH the first `batches` of `firsts` are the indexes of the first message of each batch.
    """

    __slots__ = (
        "appended",
        "base_offset",
        "batch",
        "batch_first",
        "batch_offset",
        "batch_origin",
        "batch_us",
        "batches",
        "batches_max",
        "count",
        "data",
        "describe",
        "described",
        "firsts",
        "firsts_view",
        "head",
        "header",
        "header_stop",
        "headers",
        "heads",
        "layout",
        "names",
        "offset",
        "origin",
        "out",
        "partition",
        "row",
        "rows",
        "seeded",
        "seeds",
        "starts",
        "starts_view",
        "sums",
        "sums_view",
        "target",
        "time_us",
        "view",
    )

    def __init__(
        self,
        data: memoryview,
        rows: memoryview,
        headers: memoryview,
        count: int,
        heads: memoryview,
        base_offset: int,
        appended: bool,
        partition: int,
        seed: bytes,
        describe: Callable[[int, int], bytes],
        batches_max: int,
        room: int,
    ) -> None:
        self.data = data
        self.rows = rows
        self.headers = headers
        self.count = count
        self.heads = heads
        self.base_offset = base_offset
        self.appended = appended
        self.partition = partition
        self.describe = describe
        self.batches_max = batches_max
        self.out = bytearray(room)
        self.view = memoryview(self.out)
        self.target = self.view
        self.seeded = bytearray(seed) + bytes(8)
        self.seeds = self.seeded
        self.sums_view = memoryview(bytearray(8 * count + 44))
        self.sums = self.sums_view
        self.starts = array("q", bytes(8 * count + 8))
        self.starts_view = self.starts
        self.firsts = array("q", bytes(8 * count))
        self.firsts_view = self.firsts
        self.names = _NAMES
        self.described = b""
        self.batches = 0
        self.row = self.head = self.header = self.header_stop = 0
        self.offset = self.time_us = self.origin = 0
        self.batch = self.batch_first = self.batch_offset = self.batch_us = self.batch_origin = 0
        self.layout = 0

    def write(self, layout: int) -> int:
        """Write the messages.

        Args:
            layout: as in `millstream.wire.iggy.incoming`; PLAIN is that of polls.

        Returns:
            Bytes written; -1 if there are more batches than there may be.
        """
        self.layout = layout
        position = batches = 0
        for index in range(self.count):
            self.row = index * 8
            self.header_stop = self.header + self.rows[self.row + 7] * 4
            self._identify(index)
            if layout == 4 and not (index and self._goes_on()):
                if batches == self.batches_max:
                    return -1
                if index:
                    self._finish_batch(position, index)
                self._begin_batch(position, index)
                self.firsts_view[batches] = index
                batches += 1
                position += 256
            self.starts_view[index] = position
            position = self._put_plain(position) if layout == 1 else self._put_message(position, index)
            self.header = self.header_stop
        self.starts_view[self.count] = position
        if layout == 4 and self.count:
            self._finish_batch(position, self.count)
        self.batches = batches
        return position

    def _identify(self, index: int) -> None:
        """Find out where and when a message is put, and who its producer says it is."""
        time_ms = self.rows[self.row + 1]
        self.time_us = time_ms * 1000 if time_ms > 0 else 0
        self.offset = self.base_offset + self.rows[self.row]
        self.origin = self.time_us
        if self.appended:
            while self.heads[self.head + 8] <= index:
                self.head += 9
            self.time_us = self.heads[self.head + 6] * 1000
        self.described = b""
        for at in range(self.header, self.header_stop, 4):
            special = self._special(at)
            if special == 2 and self._take_origin(at):
                continue
            if special == 3 or special == 2 or (special == 1 and not self._is_id(at)):
                self.described = self.describe(index, self.header >> 2)
                self.origin = int.from_bytes(self.described[16:24], "little")
                return

    def _special(self, at: int) -> int:
        """Which of the names that mean something here a header has: 1 for the id, 2, 3, as they stand; 0 for none."""
        size = self.headers[at + 1]
        if size == 7:
            return 1 if self._is_name(self.headers[at], 0, 7) else 0
        if size == 21:
            return 2 if self._is_name(self.headers[at], 7, 21) else 0
        if size == 10:
            return 3 if self._is_name(self.headers[at], 28, 10) else 0
        return 0

    def _is_name(self, start: int, name: int, size: int) -> bool:
        at = 0
        while at < size and self.data[start + at] == self.names[name + at]:
            at += 1
        return at == size

    def _take_origin(self, at: int) -> bool:
        """Take a producer's time; not if it is not a number of up to 18 digits."""
        start = self.headers[at + 2]
        size = self.headers[at + 3]
        if size < 1 or size > 18:
            return False
        value = 0
        for place in range(start, start + size):
            digit = self.data[place]
            if digit < 48 or digit > 57:
                return False
            value = value * 10 + digit - 48
        self.origin = value
        return True

    def _is_id(self, at: int) -> bool:
        """Whether the value of a header is 32 hexadecimal digits."""
        start = self.headers[at + 2]
        if self.headers[at + 3] != 32:
            return False
        place = 0
        while place < 32 and _digit(self.data[start + place]) >= 0:
            place += 1
        return place == 32

    def _goes_on(self) -> bool:
        """Whether a message belongs in the batch of the one before it."""
        return (
            self.time_us == self.batch_us
            and self.origin >= self.batch_origin
            and self.origin - self.batch_origin <= 4294967295
            and self.offset - self.batch_offset <= 4294967295
        )

    def _begin_batch(self, position: int, index: int) -> None:
        self.batch = position
        self.batch_first = index
        self.batch_offset = self.offset
        self.batch_us = self.time_us
        self.batch_origin = self.origin
        _put_number(self.target, position, self.partition, 8)
        _put_number(self.target, position + 8, self.offset, 8)
        _put_number(self.target, position + 16, self.time_us, 8)
        _put_number(self.target, position + 24, self.origin, 8)

    def _finish_batch(self, stop: int, index: int) -> None:
        """Write what is known once all messages of a batch are there: its size, its checksum, their count."""
        count = index - self.batch_first
        _put_number(self.target, self.batch + 32, stop - self.batch, 8)
        _put_number(self.target, self.batch + 48, count, 4)
        for at in range(40):
            self.sums[at] = self.target[self.batch + at]
        _put_number(self.sums, 40, count, 4)
        _put_number(self.target, self.batch + 40, xxh3_64_intdigest(self.sums_view[: 44 + 8 * count]), 8)

    def _put_plain(self, position: int) -> int:
        """Write a message in PLAIN; gives the position behind it."""
        size = self.rows[self.row + 6]
        if size < 0:
            size = 0
        _put_number(self.target, position, self.offset, 8)
        self.target[position + 8] = 1  # it can be read
        _put_number(self.target, position + 9, self.time_us, 8)
        self._put_id(position + 17)
        block = position + 41
        payload = self._put_headers(block, False) + 4
        _put_number(self.target, position + 37, payload - 4 - block, 4)
        _put_number(self.target, payload - 4, size, 4)
        _copy(self.target, payload, self.data, self.rows[self.row + 5], size)
        _put_number(self.target, position + 33, crc32(self.view[payload : payload + size]), 4)
        return payload + size

    def _put_message(self, position: int, index: int) -> int:
        """Write a message in any other layout; gives the position behind it."""
        layout = self.layout
        size = self.rows[self.row + 6]
        if size < 0:
            size = 0
        payload = position + (56 if layout == 2 else 64 if layout == 3 else 48)
        lengths = position + (32 if layout == 4 else 48)
        block = payload + size
        self._put_id(position + 8)
        _copy(self.target, payload, self.data, self.rows[self.row + 5], size)
        stop = self._put_headers(block, layout > 2)
        _put_number(self.target, lengths, stop - block, 4)
        _put_number(self.target, lengths + 4, size, 4)
        if layout == 4:
            _put_number(self.target, position + 24, self.offset - self.batch_offset, 4)
            _put_number(self.target, position + 28, self.origin - self.batch_origin, 4)
            digest = xxh3_64_intdigest(self.view[position + 8 : stop])
            _put_number(self.target, position, digest, 8)
            _put_number(self.sums, 44 + 8 * (index - self.batch_first), digest, 8)
        else:
            _put_number(self.target, position + 24, self.offset, 8)
            _put_number(self.target, position + 32, self.time_us, 8)
            _put_number(self.target, position + 40, self.origin, 8)
        return stop

    def _put_id(self, position: int) -> None:
        """Write the id that a message has, or the one that follows from its place."""
        if self.described:
            for at in range(16):
                self.target[position + at] = self.described[at]
            return
        found = -1
        for at in range(self.header, self.header_stop, 4):
            if self._special(at) == 1:
                found = self.headers[at + 2]
        if found >= 0:
            for at in range(16):
                self.target[position + 15 - at] = _digit(self.data[found + 2 * at]) << 4 | _digit(
                    self.data[found + 2 * at + 1]
                )
            return
        last = len(self.seeded) - 1
        rest = self.offset
        for at in range(8):
            self.seeds[last - at] = rest & 255
            rest >>= 8
        digest = xxh3_128_digest(self.seeded)
        for at in range(16):
            self.target[position + at] = digest[at]

    def _put_headers(self, position: int, kinded_keys: bool) -> int:
        """Write the headers of a message, and its key as one; gives the position behind them."""
        if self.described:
            size = len(self.described) - 24
            for at in range(size):
                self.target[position + at] = self.described[24 + at]
            return position + size
        if self.header == self.header_stop and self.rows[self.row + 4] < 1:
            return position
        start = position
        counted = 0
        key_bytes = self.rows[self.row + 4]
        if 1 <= key_bytes <= 255:
            counted += 24 + key_bytes
            position = self._put_name(position, kinded_keys, 14)
            for at in range(14):
                self.target[position + at] = self.names[38 + at]
            position = self._put_value(position + 14, self.rows[self.row + 3], key_bytes)
        for at in range(self.header, self.header_stop, 4):
            name_bytes = self.headers[at + 1]
            size = self.headers[at + 3]
            if name_bytes < 1 or name_bytes > 255 or size < 1 or size > 255 or self._special(at):
                continue
            counted += 10 + name_bytes + size
            position = self._put_name(position, kinded_keys, name_bytes)
            _copy(self.target, position, self.data, self.headers[at], name_bytes)
            position = self._put_value(position + name_bytes, self.headers[at + 2], size)
        return position if counted <= 102400 else start

    def _put_name(self, position: int, kinded_keys: bool, size: int) -> int:
        """Write what stands before the name of a header; gives the position behind it."""
        if kinded_keys:
            self.target[position] = 2  # text
            position += 1
        _put_number(self.target, position, size, 4)
        return position + 4

    def _put_value(self, position: int, start: int, size: int) -> int:
        """Write the value of a header, of no kind; gives the position behind it."""
        self.target[position] = 1
        _put_number(self.target, position + 1, size, 4)
        _copy(self.target, position + 5, self.data, start, size)
        return position + 5 + size


def _copy(target: memoryview, position: int, data: memoryview, start: int, size: int) -> None:
    for at in range(size):
        target[position + at] = data[start + at]


def _put_number(target: memoryview, position: int, value: int, size: int) -> None:
    """Write a number, little-endian."""
    for at in range(size):
        target[position + at] = value & 255
        value >>= 8


def _digit(byte: int) -> int:
    """The value of a hexadecimal digit; -1 if it is none."""
    if 48 <= byte <= 57:
        return byte - 48
    if 97 <= byte <= 102:
        return byte - 87
    if 65 <= byte <= 70:
        return byte - 55
    return -1
