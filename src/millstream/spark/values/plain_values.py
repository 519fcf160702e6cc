"""Bare numbers, and text that is not UTF-8.

Numbers are bytes as Kafka's serializers and Pulsar's primitive schemas write them, big-endian:

    tinyint, smallint, int, bigint    1, 2, 4, 8 bytes, two's complement
    float, double                     4, 8 bytes, IEEE 754
    boolean                           1 byte, 0 or else

Source: Apache Kafka, org.apache.kafka.common.serialization; Apache Pulsar, "Schema type".
"""

import codecs
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from millstream.spark.errors import BadSchema
from millstream.spark.values.framing import Undecodable

__all__ = ["NUMBERS", "CharsetDecoder", "NumberDecoder"]

NUMBERS: Final = {
    "tinyint": (">b", pa.int8()),
    "smallint": (">h", pa.int16()),
    "int": (">i", pa.int32()),
    "bigint": (">q", pa.int64()),
    "float": (">f", pa.float32()),
    "double": (">d", pa.float64()),
    "boolean": (">?", pa.bool_()),
}
"""Form in struct's notation and column type, by Spark's name of the type."""


@dataclass(frozen=True)
class NumberDecoder:
    """Decodes numbers of one type.

    Args:
        name: Spark's name of the type, one of NUMBERS.
    """

    name: str

    def __post_init__(self) -> None:
        if self.name not in NUMBERS:
            raise BadSchema(f"bytes are binary or one of {', '.join(NUMBERS)}, not {self.name!r}")

    @property
    def type(self) -> Any:
        """The Arrow type of the column."""
        return NUMBERS[self.name][1]

    def parse(self, value: bytes, schema_id: int | None) -> object:
        """Decode one value; see `arrow_decoder.Decoder`."""
        try:
            return struct.unpack(NUMBERS[self.name][0], value)[0]
        except struct.error:
            size = struct.calcsize(NUMBERS[self.name][0])
            raise Undecodable(f"it has {len(value)} bytes, and a {self.name} has {size}") from None

    def convert(self, parsed: Sequence[object]) -> Any:
        """Make an array of numbers; see `arrow_decoder.Decoder`."""
        return pa.array(parsed, self.type)


@dataclass(frozen=True)
class CharsetDecoder:
    """Decodes text of one charset.

    Args:
        charset: one that Python knows.
    """

    charset: str

    def __post_init__(self) -> None:
        try:
            codecs.lookup(self.charset)
        except LookupError:
            raise BadSchema(f"there is no charset {self.charset!r}") from None

    @property
    def type(self) -> Any:
        """The Arrow type of the column."""
        return pa.string()

    def parse(self, value: bytes, schema_id: int | None) -> object:
        """Decode one value; see `arrow_decoder.Decoder`."""
        try:
            return value.decode(self.charset)
        except UnicodeDecodeError:
            raise Undecodable(f"it is not {self.charset}") from None

    def convert(self, parsed: Sequence[object]) -> Any:
        """Make an array of texts; see `arrow_decoder.Decoder`."""
        return pa.array(parsed, self.type)
