"""Columns of what the log knows of a batch beside its records: who wrote it, and how."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from millstream.model.frame import CODEC_MASK, FrameHeader, Magic
from millstream.spark.read.frames import Frame
from millstream.spark.read.varints import Ints
from millstream.wire.compression import Codec

__all__ = ["origin_columns", "with_origins"]

_PROTOCOLS: Final[dict[int, str]] = {
    Magic.KAFKA_V2: "kafka",
    Magic.PULSAR_ENTRY: "pulsar",
    Magic.IGGY_BATCH: "iggy",
    Magic.KAFKA07_SET: "kafka07",
}
_CODECS: Final = {int(codec): codec.name.lower() for codec in Codec}


def origin_columns(headers: Sequence[FrameHeader], counts: Ints) -> dict[str, Callable[[], Any]]:
    """The columns of some frames, each to be made when it is wanted.

    Args:
        headers: of the frames, as they stand in the log.
        counts: records of each.
    """

    def protocols() -> Any:
        return _texts([_PROTOCOLS.get(header.magic) for header in headers], counts)

    def codecs() -> Any:
        names = [
            _CODECS.get(header.attributes & CODEC_MASK) if header.magic == Magic.KAFKA_V2 else None
            for header in headers
        ]
        return _texts(names, counts)

    def producers(kind: Any, name: str) -> Any:
        # What other protocols' frames have in these fields is the log's own bookkeeping.
        is_kafka = [header.magic == Magic.KAFKA_V2 and header.producer_id >= 0 for header in headers]
        values = np.repeat(np.array([getattr(header, name) for header in headers], dtype=np.int64), counts)
        return pa.array(values, kind, mask=~np.repeat(np.array(is_kafka, dtype=bool), counts))

    return {
        "protocol": protocols,
        "codec": codecs,
        "producerId": lambda: producers(pa.int64(), "producer_id"),
        "producerEpoch": lambda: producers(pa.int32(), "producer_epoch"),
    }


def with_origins(frames: Sequence[Frame], encodings: Sequence[tuple[int, int]]) -> list[Frame]:
    """Give frames that a broker has translated the origin that it tells.

    Args:
        frames: as the broker sent them, all of them Kafka's.
        encodings: from which base offset on they stand in the log in which encoding, in order.
    """
    if not encodings:
        return list(frames)
    firsts = [first for first, _ in encodings]
    told = []
    for frame in frames:
        magic = encodings[max(bisect_right(firsts, frame.header.base_offset) - 1, 0)][1]
        origin = None if magic == frame.header.magic else frame.header._replace(magic=magic)
        told.append(frame._replace(origin=origin))
    return told


def _texts(texts: Sequence[str | None], counts: Ints) -> Any:
    """One text for all records of a frame."""
    return pa.array(texts, pa.string()).take(pa.array(np.repeat(np.arange(len(texts)), counts)))
