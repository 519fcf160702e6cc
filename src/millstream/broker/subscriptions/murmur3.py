"""MurmurHash3, 32 bits, seed 0: what sticky keys are hashed with.

Source: Austin Appleby, MurmurHash3_x86_32, in the public domain.
"""

from functools import lru_cache
from typing import Final

from millstream.broker.subscriptions.interface import KEY_SLOTS

__all__ = ["key_slot", "murmur3_32"]

_C1: Final = 0xCC9E2D51
_C2: Final = 0x1B873593
_MASK: Final = 0xFFFFFFFF
_SLOTS_REMEMBERED: Final = 16_384
"""Keys whose slots are remembered: a hash costs microseconds here, and most keys come again. At most a few MB."""


def murmur3_32(data: bytes) -> int:
    """The hash of some bytes, without its sign bit."""
    size = len(data)
    body = size & ~3
    value = 0
    for place in range(0, body, 4):
        value ^= _mixed(int.from_bytes(data[place : place + 4], "little"))
        value = (value << 13 | value >> 19) & _MASK
        value = (value * 5 + 0xE6546B64) & _MASK
    if size > body:
        value ^= _mixed(int.from_bytes(data[body:], "little"))
    value ^= size
    value = ((value ^ value >> 16) * 0x85EBCA6B) & _MASK
    value = ((value ^ value >> 13) * 0xC2B2AE35) & _MASK
    return (value ^ value >> 16) & 0x7FFFFFFF


def _mixed(word: int) -> int:
    word = word * _C1 & _MASK
    word = (word << 15 | word >> 17) & _MASK
    return word * _C2 & _MASK


@lru_cache(maxsize=_SLOTS_REMEMBERED)
def key_slot(key: bytes) -> int:
    """The slot of a sticky key, below KEY_SLOTS."""
    return murmur3_32(key) % KEY_SLOTS
