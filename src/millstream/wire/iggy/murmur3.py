"""MurmurHash3, the 128-bit variant for 64-bit machines, with seed 0: how dialect A hashes the key of a batch.

Source: Austin Appleby's description of MurmurHash3_x64_128.
"""

from typing import Final

__all__ = ["murmur3_128"]

_MASK: Final = 2**64 - 1
_C1: Final = 0x87C37B91114253D5
_C2: Final = 0x4CF5AD432745937F


def murmur3_128(key: bytes) -> int:
    """The hash of a key, of which the first 64 bits are the lower half."""
    h1 = h2 = 0
    whole = len(key) & ~15
    for position in range(0, whole, 16):
        h1 ^= _mix1(int.from_bytes(key[position : position + 8], "little"))
        h1 = (_rotated(h1, 27) + h2) * 5 + 0x52DCE729 & _MASK
        h2 ^= _mix2(int.from_bytes(key[position + 8 : position + 16], "little"))
        h2 = (_rotated(h2, 31) + h1) * 5 + 0x38495AB5 & _MASK
    tail = key[whole:]
    h2 ^= _mix2(int.from_bytes(tail[8:], "little"))
    h1 ^= _mix1(int.from_bytes(tail[:8], "little"))
    h1, h2 = h1 ^ len(key), h2 ^ len(key)
    h1 = h1 + h2 & _MASK
    h2 = h2 + h1 & _MASK
    h1, h2 = _final(h1), _final(h2)
    h1 = h1 + h2 & _MASK
    h2 = h2 + h1 & _MASK
    return h2 << 64 | h1


def _mix1(k: int) -> int:
    return _rotated(k * _C1 & _MASK, 31) * _C2 & _MASK


def _mix2(k: int) -> int:
    return _rotated(k * _C2 & _MASK, 33) * _C1 & _MASK


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _MASK


def _final(value: int) -> int:
    value ^= value >> 33
    value = value * 0xFF51AFD7ED558CCD & _MASK
    value ^= value >> 33
    value = value * 0xC4CEB9FE1A85EC53 & _MASK
    return value ^ value >> 33
