"""Reading what another protocol wrote, once for all who read it at about the same time."""

import logging
from collections.abc import Hashable
from typing import TypeVar, cast

from millstream.broker.translated_frames import TranslatedFrames
from millstream.model.frame import FrameHeader
from millstream.wire.compression import CompressionError
from millstream.wire.errors import WireError
from millstream.wire.translation import Form, translate

__all__ = ["is_kept", "translated"]

_log = logging.getLogger(__name__)
T = TypeVar("T")


def is_kept(frames: TranslatedFrames, where: Hashable, header: FrameHeader, form: Form[T]) -> bool:
    """Whether `translated` would not have to take the frame apart."""
    return frames.find((where, header.base_offset, header.crc, form.name)) is not None


def translated(
    frames: TranslatedFrames, where: Hashable, frame: memoryview, header: FrameHeader, form: Form[T]
) -> T | None:
    """Make of a frame what a reader wants, unless somebody else has wanted it a moment ago.

    Args:
        frames: the broker's.
        where: names the partition whose log the frame stands in; the same in all calls with one form.
        frame: the whole frame.
        header: its header.
        form: what is wanted.

    Returns:
        None if nobody can make sense of the frame. That is kept as well: to find it out may take a second.
    """
    # The checksum tells a frame from what compaction has left of it.
    name = where, header.base_offset, header.crc, form.name
    found = frames.find(name)
    if found is not None:
        return cast("T | None", found[0])
    made: T | None
    try:
        made = translate(frame, header, form)
    except (WireError, CompressionError) as error:
        _log.error("batch unreadable partition=%s offset=%d reason=%s", where, header.base_offset, error)
        made = None
    frames.keep(name, made, form.size_bytes(made) if made is not None else 0)
    return made
