"""The hash of keys in dialect A, held against values that the package mmh3 5.3.1 gives."""

import pytest

from millstream.wire.iggy.murmur3 import murmur3_128

VALUES = [
    (b"", 0x00000000000000000000000000000000),
    (b"hello", 0x5B1E906A48AE1D19CBD8A7B341BD9B02),
    (b"a key of a batch", 0xE6B5C9A20615C3C32BA0ACA5CD9781BC),
    (b"one byte more tha", 0x1C0CD6A4E0F8B4ED8C7931A5329A2FDB),
    (b"thirty-one bytes, one short of", 0xCB2F46522E47319606BD954FCE2552C1),
]


@pytest.mark.parametrize(("key", "hashed"), VALUES)
def test_known_values(key: bytes, hashed: int) -> None:
    assert murmur3_128(key) == hashed
