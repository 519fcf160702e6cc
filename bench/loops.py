"""The loops of translation by themselves: ns a record to take a batch of each encoding apart, in each codec, and to
make one. A pair costs the one and the other; the server's work around them comes on top."""

import random
import struct
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from bench.drivers.iggy_frames import message_batch
from millstream.model.frame import frame_crc
from millstream.model.frame_span import frame_of
from millstream.model.record import Record
from millstream.wire.compression import Codec
from millstream.wire.iggy.incoming import Layout
from millstream.wire.iggy.polled_frame import poll_table
from millstream.wire.kafka.record_tables import place_table
from millstream.wire.kafka.records import build_batch
from millstream.wire.kafka07.frames import build_frame as build_set
from millstream.wire.kafka07.message_tables import encode_table
from millstream.wire.kafka07.messages import encode_message, encode_wrapper
from millstream.wire.pulsar.entry import check_entry
from millstream.wire.pulsar.message_tables import build_table_entries
from millstream.wire.pulsar.pulsar_pb2 import LZ4, NONE, SNAPPY, ZLIB, ZSTD
from millstream.wire.pulsar.records import build_entry
from millstream.wire.pulsar.stored_frame import build_frame
from millstream.wire.translation import read_records, read_table

__all__ = ["print_loops"]

_RECORDS: Final = 1000
_RECORD_BYTES: Final = 100
_SECONDS: Final = 0.2
_TIME_MS: Final = 1_700_000_000_000
_PULSAR_CODECS: Final = {"none": NONE, "lz4": LZ4, "zlib": ZLIB, "zstd": ZSTD, "snappy": SNAPPY}


def _values() -> list[bytes]:
    """Values that compress to about a half."""
    rng = random.Random("values")
    return [rng.randbytes(_RECORD_BYTES // 2).hex().encode() for _ in range(_RECORDS)]


def _frames() -> Iterator[tuple[str, memoryview]]:
    """A frame of every encoding and codec, by its name."""
    values = _values()
    records = [Record(offset=n, timestamp_ms=_TIME_MS, key=None, value=value) for n, value in enumerate(values)]
    for codec in Codec:
        yield f"kafka, {codec.name.lower()}", memoryview(build_batch(records, codec=codec))
    messages = [encode_message(value, 1) for value in values]
    yield "kafka07, none", memoryview(build_set(b"".join(messages), _RECORDS, _TIME_MS))
    for codec in (Codec.GZIP, Codec.SNAPPY):
        body = encode_wrapper(messages, codec)
        yield f"kafka07, {codec.name.lower()}", memoryview(build_set(body, _RECORDS, _TIME_MS))
    for name, number in _PULSAR_CODECS.items():
        entry = memoryview(build_entry(records, 0, _RECORDS, number))
        yield f"pulsar, {name}", memoryview(build_frame(entry, check_entry(entry)))
    yield "iggy", _iggy_frame(values[0])


def _iggy_frame(value: bytes) -> memoryview:
    body = bytes((Layout.BATCH, 0, 0, 0)) + message_batch(value, _RECORDS)
    frame = bytearray(61) + body
    fields = (0, len(frame) - 12, 0, 8, 0, 0, _RECORDS - 1, _TIME_MS, _TIME_MS, -1, -1, -1, _RECORDS)
    struct.pack_into(">qiibIhiqqqhii", frame, 0, *fields)
    struct.pack_into(">I", frame, 17, frame_crc(memoryview(frame)))
    return memoryview(frame)


def _ns(work: Callable[[], object]) -> float:
    """Processor time of a call for each record, in ns."""
    work()
    calls, began = 0, time.process_time()
    while (used := time.process_time() - began) < _SECONDS:
        work()
        calls += 1
    return used / calls / _RECORDS * 1e9


def print_loops() -> None:
    """Measure and print."""
    print(f"{'ns a record':<34}{'by tables':>13}{'by records':>13}")
    frames = dict(_frames())
    for name, frame in frames.items():
        by_tables, by_records = _ns(partial(read_table, frame_of(frame))), _ns(partial(read_records, frame))
        print(f"take apart {name:<23}{by_tables:13.0f}{by_records:13.0f}")
    table = read_table(frame_of(frames["kafka, none"]))
    if table is None:
        print("nothing is compiled: all goes by records")
        return
    makers: dict[str, Callable[[], object]] = {
        "kafka": lambda: place_table(table),
        "kafka07": lambda: encode_table(table, 1),
        "pulsar": lambda: list(build_table_entries(table, first_offset=0, message_count=_RECORDS)),
        "iggy": lambda: poll_table(table, Layout.BATCH, 0, bytes(20)),
    }
    for name, make in makers.items():
        print(f"make {name:<29}{_ns(make):13.0f}", flush=True)
