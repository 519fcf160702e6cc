"""MurmurHash3, 32 bits, seed 0: what sticky keys are hashed with. Pulsar keeps 31 bits of it."""

from typing import Final

import mmh3

from millstream.broker.subscriptions.interface import KEY_SLOTS

__all__ = ["key_slot", "murmur3_32"]

_MASK: Final = 0x7FFFFFFF


def murmur3_32(data: bytes) -> int:
    """The hash of some bytes, without its sign bit."""
    return mmh3.hash(data, 0, signed=False) & _MASK


def key_slot(key: bytes) -> int:
    """The slot of a sticky key, below KEY_SLOTS."""
    return murmur3_32(key) % KEY_SLOTS
