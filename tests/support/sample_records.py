"""The records that every client writes and must read back byte for byte."""

import random
from typing import Final, NamedTuple

__all__ = ["BASE_MS", "Sample", "samples"]

BASE_MS: Final = 1_700_000_000_000
"""The time of the first sample; the n-th is n ms later."""
_SMALL: Final = 300


class Sample(NamedTuple):
    """One record: what a client sets, and must get back."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    timestamp_ms: int


def samples() -> list[Sample]:
    """Every shape of a record, and enough small ones to fill batches."""
    noise = random.Random("sample records")
    shapes: list[tuple[bytes | None, bytes | None, tuple[tuple[str, bytes], ...]]] = [
        (b"key", b"value", ()),
        (None, b"null key", ()),
        (b"null value", None, ()),
        (None, None, ()),
        (b"", b"", ()),
        (b"headers", b"x", (("a", b"1"), ("a", b"2"), ("\u00e9", b"\x00\xff"), ("empty", b""))),
        (bytes(range(256)), bytes(reversed(range(256))), ()),
        (b"larger than 64 KiB, not compressible", noise.randbytes(70_000), ()),
        (b"larger than 64 KiB, compressible", b"abc" * 60_000, (("note", b"n" * 300),)),
    ]
    shapes += [(b"%d" % n, b"small record %d" % n, ()) for n in range(_SMALL)]
    return [Sample(*shape, BASE_MS + n) for n, shape in enumerate(shapes)]
