"""Names of properties that are copied as they are, for the compiled loops; see `property_names.pxd`."""

from millstream.wire.texts import is_text

__all__ = ["is_plain_name"]


def is_plain_name(data: memoryview, start: int, size: int) -> bool:
    """Whether a name is UTF-8, and does not end in what says how a header became a property."""
    if not is_text(data, start, start + size):
        return False
    stop = start + size
    if size >= 4 and data[stop - 4] == 58:  # ":b64"
        return not (data[stop - 3] == 98 and data[stop - 2] == 54 and data[stop - 1] == 52)
    if size >= 5 and data[stop - 5] == 58:
        # ":text" and ":null"
        if data[stop - 4] == 116 and data[stop - 3] == 101 and data[stop - 2] == 120 and data[stop - 1] == 116:
            return False
        return not (
            data[stop - 4] == 110 and data[stop - 3] == 117 and data[stop - 2] == 108 and data[stop - 1] == 108
        )
    return True
