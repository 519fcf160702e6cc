"""The hashes of keys by which Kafka's clients choose a partition, for many keys at once.

Each loops over the positions of a key, not over the keys: in one step all keys that are long enough take in their
next bytes. Where only a few long keys are left, each is finished by itself.

Source: murmur2 as Apache Kafka's Java client has it (`Utils.murmur2`), crc32 of zlib and FNV-1a with 32 bits as
librdkafka has them (`rd_crc32`, `rd_fnv1a`).
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

__all__ = ["Keys", "crc32", "fnv1a", "murmur2"]

Hashes = npt.NDArray[np.uint32]

_ALONE_KEYS: Final = 16
"""For fewer keys than this a step over all of them costs more than a loop over each."""
_MURMUR_SEED: Final = 0x9747B28C
_MURMUR_M: Final = 0x5BD1E995
_FNV_OFFSET: Final = 0x811C9DC5
_FNV_PRIME: Final = 0x01000193
_MASK: Final = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Keys:
    """Keys in one buffer.

    Args:
        data: the buffer.
        begins, sizes: where each key stands in it.
    """

    data: npt.NDArray[np.uint8]
    begins: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]

    def one(self, index: int, skip: int = 0) -> bytes:
        """The bytes of one key from a position on."""
        begin = int(self.begins[index])
        return self.data[begin + skip : begin + int(self.sizes[index])].tobytes()


def murmur2(keys: Keys) -> Hashes:
    """The hash of Kafka's default partitioner, all 32 bits of it."""
    state = (keys.sizes.astype(np.uint32)) ^ np.uint32(_MURMUR_SEED)
    if len(keys.data) >= 4:
        # A number may begin at every byte of the buffer.
        words = np.ndarray(len(keys.data) - 3, dtype="<u4", buffer=keys.data, strides=(1,))
        _in_steps(keys, 4, state, lambda at: words[at], _murmur_step, _murmur_alone)
    tail = keys.sizes & 3
    begins = keys.begins + (keys.sizes & ~3)
    for position in (2, 1, 0):
        long_enough = np.flatnonzero(tail > position)
        byte = keys.data[begins[long_enough] + position].astype(np.uint32)
        state[long_enough] ^= byte << np.uint32(8 * position)
    state[tail > 0] *= np.uint32(_MURMUR_M)
    state ^= state >> np.uint32(13)
    state *= np.uint32(_MURMUR_M)
    state ^= state >> np.uint32(15)
    return state


def crc32(keys: Keys) -> Hashes:
    """The checksum of zlib."""
    state = np.full(len(keys.sizes), _MASK, dtype=np.uint32)
    _in_steps(keys, 1, state, lambda at: keys.data[at], _crc_step, _crc_alone)
    return state ^ np.uint32(_MASK)


def fnv1a(keys: Keys) -> Hashes:
    """FNV-1a with 32 bits, of which librdkafka takes the absolute value as of a signed number."""
    state = np.full(len(keys.sizes), _FNV_OFFSET, dtype=np.uint32)
    _in_steps(keys, 1, state, lambda at: keys.data[at], _fnv_step, _fnv_alone)
    return np.abs(state.view(np.int32).astype(np.int64)).astype(np.uint32)


def _in_steps(
    keys: Keys,
    step_bytes: int,
    state: Hashes,
    read: Callable[[npt.NDArray[np.int64]], npt.NDArray[np.unsignedinteger]],
    step: Callable[[Hashes, npt.NDArray[np.unsignedinteger]], Hashes],
    alone: Callable[[int, bytes], int],
) -> None:
    """Take the whole steps of all keys into their state.

    Args:
        keys: the keys.
        step_bytes: bytes of one step; what is left of a key behind the last whole one is not taken in.
        state: what is changed.
        read: reads the bytes of a step at some positions.
        step: the state after a step.
        alone: the state of one key after all steps that are left.
    """
    counts = keys.sizes // step_bytes
    longest_first = np.argsort(-counts, kind="stable")
    # How many keys have more than 0, 1, 2, ... steps.
    ascending = counts[longest_first[::-1]]
    most = int(ascending[-1]) if len(ascending) else 0
    done = 0
    while done < most:
        left = len(ascending) - int(np.searchsorted(ascending, done, side="right"))
        if left < _ALONE_KEYS:
            break
        rows = longest_first[:left]
        state[rows] = step(state[rows], read(keys.begins[rows] + done * step_bytes))
        done += 1
    else:
        return
    for row in longest_first[:left].tolist():
        end = int(counts[row]) * step_bytes - int(keys.sizes[row])
        rest = keys.one(row, done * step_bytes)
        state[row] = alone(int(state[row]), rest[:end] if end else rest)


def _murmur_step(state: Hashes, words: npt.NDArray[np.unsignedinteger]) -> Hashes:
    mixed = words.astype(np.uint32) * np.uint32(_MURMUR_M)
    mixed ^= mixed >> np.uint32(24)
    mixed *= np.uint32(_MURMUR_M)
    return (state * np.uint32(_MURMUR_M)) ^ mixed


def _murmur_alone(state: int, rest: bytes) -> int:
    for (word,) in np.frombuffer(rest, dtype="<u4").reshape(-1, 1).tolist():
        mixed = word * _MURMUR_M & _MASK
        mixed = (mixed ^ mixed >> 24) * _MURMUR_M & _MASK
        state = state * _MURMUR_M & _MASK ^ mixed
    return state


def _crc_table() -> Hashes:
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & np.uint32(1), np.uint32(0xEDB88320), np.uint32(0)) ^ (table >> np.uint32(1))
    return table


_CRC_TABLE: Final = _crc_table()


def _crc_step(state: Hashes, read: npt.NDArray[np.unsignedinteger]) -> Hashes:
    result: Hashes = _CRC_TABLE[(state ^ read) & np.uint32(0xFF)] ^ (state >> np.uint32(8))
    return result


def _crc_alone(state: int, rest: bytes) -> int:
    return zlib.crc32(rest, state ^ _MASK) ^ _MASK


def _fnv_step(state: Hashes, read: npt.NDArray[np.unsignedinteger]) -> Hashes:
    return (state ^ read) * np.uint32(_FNV_PRIME)


def _fnv_alone(state: int, rest: bytes) -> int:
    for byte in rest:
        state = (state ^ byte) * _FNV_PRIME & _MASK
    return state
