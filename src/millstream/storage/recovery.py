"""Opening the log of a partition from whatever a stop, clean or not, has left of it.

A segment whose index file vouches for its whole log file is taken as it is. Any other is scanned from where its
index ends: every frame is verified; a torn tail of the last segment is cut, and damage anywhere else becomes a
hole that is reported and never served. A segment whose offsets the one before it has too was merged into that: it
goes, as does any draft of a segment.
"""

import logging
from dataclasses import dataclass

from millstream.storage.files import Files
from millstream.storage.index import SegmentIndex, decode_index
from millstream.storage.log import START_OFFSET_FILE, LogSettings, PartitionLog, decode_start_offset
from millstream.storage.producers import ProducerStates
from millstream.storage.segment import Segment, scan, segment_name

__all__ = ["RecoveryReport", "open_log"]

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class RecoveryReport:
    """What opening a log found.

    Args:
        scanned_bytes: read and verified because no index vouched for them.
        cut_bytes: torn tail that was cut off.
        holes: damaged stretches known in the log.
    """

    scanned_bytes: int = 0
    cut_bytes: int = 0
    holes: int = 0


def open_log(files: Files, directory: str, settings: LogSettings, now_ms: int) -> tuple[PartitionLog, RecoveryReport]:
    """Open a partition's log, created if there is none.

    Args:
        files: the door to the disk.
        directory: the log's own directory.
        settings: how it is kept.
        now_ms: the time of the opening.

    Raises:
        OSError, DiskFull: the directory cannot be used.
    """
    files.make_directory(directory)
    report = RecoveryReport()
    bases = _base_offsets(files, directory)
    start_offset = _start_offset(files, directory)
    if not bases:
        bases = [start_offset]
    segments: list[Segment] = []
    producers = ProducerStates()
    for place, base_offset in enumerate(bases):
        if segments and base_offset < segments[-1].next_offset:
            _remove_merged(files, directory, base_offset)
            continue
        last = place == len(bases) - 1
        next_base = None if last else bases[place + 1]
        segment, producers = _open_segment(files, directory, base_offset, next_base, producers, report, now_ms)
        segments.append(segment)
    start_offset = max(start_offset, segments[0].base_offset)
    if segments[-1].next_offset < start_offset:
        segments = [_begun_at(files, directory, start_offset, segments, now_ms)]
    log = PartitionLog(files, directory, settings, segments, start_offset, producers)
    log.touched = report.scanned_bytes > 0
    return log, report


def _begun_at(files: Files, directory: str, start_offset: int, lost: list[Segment], now_ms: int) -> Segment:
    """The only segment of a log that lost its tail after a deletion up to there.

    Its offsets go on where the deletion ended: given to new records, the offsets before would count as deleted.
    """
    for segment in lost:
        segment.close()
        segment.remove_files()
    first = Segment(files, directory, SegmentIndex(start_offset), created_ms=now_ms)
    first.open()
    return first


def _remove_merged(files: Files, directory: str, base_offset: int) -> None:
    stem = f"{directory}/{segment_name(base_offset)}"
    _log.info("segment merged into the one before file=%s.log: removed", stem)
    files.remove(stem + ".index")
    files.remove(stem + ".log")


def _base_offsets(files: Files, directory: str) -> list[int]:
    names = files.list_directory(directory)
    stems = {name.removesuffix(".log") for name in names if name.endswith(".log")}
    for name in names:
        if name.endswith(".new") or (name.endswith(".index") and name.removesuffix(".index") not in stems):
            files.remove(f"{directory}/{name}")
    return sorted(int(stem) for stem in stems if stem.isdecimal())


def _start_offset(files: Files, directory: str) -> int:
    content = files.read_whole(f"{directory}/{START_OFFSET_FILE}")
    if content is None:
        return 0
    start_offset = decode_start_offset(content)
    if start_offset is None:
        _log.error("damage file=%s/%s: records that were deleted may be back", directory, START_OFFSET_FILE)
        return 0
    return start_offset


def _open_segment(
    files: Files,
    directory: str,
    base_offset: int,
    next_base: int | None,
    producers: ProducerStates,
    report: RecoveryReport,
    now_ms: int,
) -> tuple[Segment, ProducerStates]:
    stem = f"{directory}/{segment_name(base_offset)}"
    log_bytes = files.size(stem + ".log")
    content = files.read_whole(stem + ".index")
    decoded = decode_index(base_offset, content) if content is not None else None
    if decoded is not None and decoded[0].log_bytes <= log_bytes:
        index = decoded[0]
        producers = ProducerStates.decode(decoded[1])
    else:
        index = SegmentIndex(base_offset)
        # One that vouches for more than there is must not be believed once the file has grown past that again.
        if content is not None:
            files.remove(stem + ".index")
    segment = Segment(files, directory, index, created_ms=now_ms)
    if next_base is None:
        segment.open()
    if index.log_bytes < log_bytes:
        # After a flush that failed the page cache shows what never reached the disk. It would be believed, told to
        # its producer as a duplicate, and lost with the power.
        files.drop_cache(stem + ".log")
        report.scanned_bytes += log_bytes - index.log_bytes
        torn_bytes = scan(segment, index, producers, log_bytes, next_base)
        if torn_bytes:
            _log.warning("torn tail file=%s position=%d bytes=%d: cut", stem, log_bytes - torn_bytes, torn_bytes)
            segment.file.truncate(index.log_bytes)
            report.cut_bytes += torn_bytes
        segment.take_over(index)
        if next_base is not None:
            # What the last process wrote may not be on the disk yet, and no flush to come would see to it.
            _sync(files, segment.log_path)
            segment.write_index(producers.encode())
    if next_base is not None and segment.next_offset < next_base:
        _log.error("damage file=%s.log offsets=%d..%d: the file was cut", stem, segment.next_offset, next_base - 1)
    report.holes += len(index.holes)
    segment.drop_index()
    return segment, producers


def _sync(files: Files, path: str) -> None:
    file = files.open(path)
    try:
        file.sync()
    finally:
        file.close()
