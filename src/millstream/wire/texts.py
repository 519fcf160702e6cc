"""Whether bytes in the midst of a frame are text, for the compiled loops: they share it, compiled, by `texts.pxd`."""

__all__ = ["is_text"]


def is_text(data: memoryview, position: int, stop: int) -> bool:
    """Whether the bytes from a position up to another are UTF-8."""
    for at in range(position, stop):
        if data[at] > 127:
            return _is_unicode(bytes(data[position:stop]))
    return True


def _is_unicode(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
