"""Leaving out what aborted transactions wrote, where a broker sends it and says which they are.

A transaction's frames stand from its first offset to its marker, a control batch of the same producer. What is not
decided at all is behind the stable offset, and never sent to who reads committed records.

Source: Apache Kafka documentation, "Fetch API" (aborted_transactions) and "Record Batch" (control records).
"""

from collections.abc import Sequence

from millstream.model.frame import Attributes, FrameHeader
from millstream.spark.read.frames import Frame

__all__ = ["without_aborted"]


def without_aborted(frames: Sequence[Frame], aborted: Sequence[tuple[int, int]]) -> list[Frame]:
    """Make frames that were aborted into frames without records, which keep their offsets.

    Args:
        frames: in order, control batches among them.
        aborted: producer id and first offset of each aborted transaction that has frames there.
    """
    if not aborted:
        return list(frames)
    waiting = sorted(aborted, key=lambda one: one[1], reverse=True)
    producers: set[int] = set()
    kept = []
    for frame in frames:
        header = frame.header
        while waiting and waiting[-1][1] <= header.last_offset:
            producers.add(waiting.pop()[0])
        if header.attributes & Attributes.CONTROL:
            # Whichever way it ends, the producer's next frames belong to another transaction.
            producers.discard(header.producer_id)
        elif header.attributes & Attributes.TRANSACTIONAL and header.producer_id in producers:
            kept.append(Frame(frame.position, _emptied(header)))
            continue
        kept.append(frame)
    return kept


def _emptied(header: FrameHeader) -> FrameHeader:
    return header._replace(record_count=0)
