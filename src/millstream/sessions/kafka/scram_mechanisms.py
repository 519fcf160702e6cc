"""The numbers of SCRAM mechanisms in admin requests. Source: KIP-554."""

from collections.abc import Mapping
from typing import Final

from millstream.broker.credentials import ScramHash

__all__ = ["HASHES", "NUMBERS"]

HASHES: Final[Mapping[int, ScramHash]] = {1: ScramHash.SHA_256, 2: ScramHash.SHA_512}
NUMBERS: Final[Mapping[ScramHash, int]] = {kind: number for number, kind in HASHES.items()}
