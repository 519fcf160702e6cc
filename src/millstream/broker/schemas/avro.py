"""Avro definitions: parsing them, and whether one reads what was written with another."""

from typing import Final

import avro.schema
from avro.compatibility import ReaderWriterCompatibilityChecker, SchemaCompatibilityResult, SchemaCompatibilityType
from avro.errors import AvroException
from avro.schema import RecordSchema, Schema

from millstream.broker.schemas.errors import IncompatibleSchema, InvalidSchema

__all__ = ["check_reads", "parse"]

_COMPARISONS_MAX: Final = 50_000
"""Pairs of types compared for two definitions, which may grow with the product of their sizes: about a second."""


def parse(data: bytes) -> Schema:
    """Read an Avro definition. Raises InvalidSchema."""
    try:
        # Java's nested classes have names with a dollar sign, which Avro's rule for names does not allow.
        return avro.schema.parse(data.decode(), validate_names=False)
    except (AvroException, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InvalidSchema(f"the definition is not an Avro schema: {error}") from None


def check_reads(*, reader: Schema, writer: Schema) -> None:
    """Check that a reader's schema reads what was written with another. Raises IncompatibleSchema."""
    try:
        result = _Checker().get_compatibility(reader, writer)
    except RecursionError:
        raise IncompatibleSchema("the schemas are too deep to be compared") from None
    if result.compatibility is not SchemaCompatibilityType.compatible:
        places = ", ".join(sorted(result.locations))
        reasons = "; ".join(sorted(str(message) for message in result.messages))
        kinds = ", ".join(sorted({str(kind.value) for kind in result.incompatibilities}))
        raise IncompatibleSchema(f"Unable to read schema: {kinds} at {places}: {reasons}")


class _Checker(ReaderWriterCompatibilityChecker):
    """Avro's checker within bounds, and without the names of records: Java's, by which Pulsar goes, ignores them."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # the package leaves this one without types
        self._comparisons = 0

    def calculate_compatibility(
        self, reader: Schema, writer: Schema, location: list[str]
    ) -> SchemaCompatibilityResult:
        self._comparisons += 1
        if self._comparisons > _COMPARISONS_MAX:
            raise IncompatibleSchema("the schemas are too large to be compared")
        if isinstance(reader, RecordSchema) and isinstance(writer, RecordSchema):
            return self.check_reader_writer_record_fields(reader, writer, location)
        return super().calculate_compatibility(reader, writer, location)
