"""Reading what another protocol wrote, once for all who read it at about the same time."""

import logging
from collections.abc import Hashable, Iterator
from typing import Final, TypeVar, cast

from millstream.broker.translated_frames import TranslatedFrames
from millstream.model.frame_span import FrameSpan
from millstream.wire.compression import CompressionError
from millstream.wire.errors import WireError
from millstream.wire.translation import Form, translate

__all__ = ["is_kept", "translated"]

_log = logging.getLogger(__name__)
T = TypeVar("T")
_ONE_BY_ONE: Final = object()
"""What is kept of several frames that have to be translated one by one."""


def is_kept(kept: TranslatedFrames, where: Hashable, span: FrameSpan, form: Form[T]) -> bool:
    """Whether `translated` would not have to take the frames apart."""
    return kept.find(_name(where, span, form)) is not None


def translated(
    kept: TranslatedFrames, where: Hashable, span: FrameSpan, form: Form[T]
) -> Iterator[tuple[FrameSpan, T | None]]:
    """Make of some frames what a reader wants, unless somebody else has wanted it a moment ago.

    Args:
        kept: the broker's.
        where: names the partition in whose log the frames stand; the same in all calls with one form.
        span: the frames.
        form: what is wanted.

    Yields:
        The frames and what became of them, all together or one by one. None is what becomes of a frame that nobody
        can make sense of; that is kept as well, because to find it out may take a second.
    """
    name = _name(where, span, form)
    found = kept.find(name)
    if found is not None:
        made = found[0]
    else:
        made = _made(where, span, form)
        size_bytes = 0 if made is None or made is _ONE_BY_ONE else form.size_bytes(cast("T", made))
        kept.keep(name, made, size_bytes)
    if made is _ONE_BY_ONE:
        for frame in span.frames():
            yield from translated(kept, where, frame, form)
    else:
        yield span, cast("T | None", made)


def _name(where: Hashable, span: FrameSpan, form: Form[T]) -> Hashable:
    # The checksums tell frames from what compaction has left of them.
    return where, span.base_offset, span.end_offset, span.digest, form.name


def _made(where: Hashable, span: FrameSpan, form: Form[T]) -> object:
    try:
        made = translate(span, form)
    except (WireError, CompressionError) as error:
        if span.count == 1:
            _log.error("batch unreadable partition=%s offset=%d reason=%s", where, span.base_offset, error)
            return None
        made = None
    return _ONE_BY_ONE if made is None else made
