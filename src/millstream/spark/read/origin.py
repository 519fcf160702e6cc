"""Columns of what the log knows of a batch beside its records: who wrote it, and how."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from millstream.model.frame import CODEC_MASK, FrameHeader, Magic
from millstream.spark.read.varints import Ints
from millstream.wire.compression import Codec

__all__ = ["origin_columns"]

_PROTOCOLS: Final[dict[int, str]] = {
    Magic.KAFKA_V2: "kafka",
    Magic.PULSAR_ENTRY: "pulsar",
    Magic.IGGY_BATCH: "iggy",
    Magic.KAFKA07_SET: "kafka07",
}
_CODECS: Final = {int(codec): codec.name.lower() for codec in Codec}


def origin_columns(headers: Sequence[FrameHeader], counts: Ints, knows_origin: bool) -> dict[str, Callable[[], Any]]:
    """The columns of some frames, each to be made when it is wanted.

    Args:
        headers: of the frames, as they stand in the log.
        counts: records of each.
        knows_origin: whether they do. If not, the columns protocol and codec are null.
    """

    def protocols() -> Any:
        return _texts([_PROTOCOLS.get(header.magic) if knows_origin else None for header in headers], counts)

    def codecs() -> Any:
        is_told = [knows_origin and header.magic == Magic.KAFKA_V2 for header in headers]
        names = [
            _CODECS.get(header.attributes & CODEC_MASK) if told else None
            for header, told in zip(headers, is_told, strict=True)
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


def _texts(texts: Sequence[str | None], counts: Ints) -> Any:
    """One text for all records of a frame."""
    return pa.array(texts, pa.string()).take(pa.array(np.repeat(np.arange(len(texts)), counts)))
