"""The options of the format `millstream-table`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from millstream.spark.errors import BadOption
from millstream.spark.tables.formats import TableFormat
from millstream.spark.tables.layout import table_root

__all__ = ["DEFAULT_FILE_BYTES", "TableOptions"]

DEFAULT_FILE_BYTES: Final = 128 << 20
"""Large enough for readers to be busy with rows, small enough for two cores to share a table."""

_COMPRESSIONS: Final = ("snappy", "zstd", "gzip", "lz4", "none")
_CATALOG: Final = "catalog."
_BOTH: Final = ("path", "tableFormat", "catalog.*")
_WRITE: Final = ("partitionBy", "mergeSchema", "compression", "maxFileBytes", "applicationId", "batchId")
_READ: Final = ("columns",)
_SPARKS: Final = frozenset({"checkpointlocation", "querytype", "queryname"})
"""What Spark hands on to the sink of a stream, without asking it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """What to write or read, and how.

    Args:
        root: directory of the table (`path`).
        format: None for that of the table that is there, or Parquet (`tableFormat`).
        catalog: properties of Iceberg's catalog (`catalog.*`, without `catalog.`).
        partition_by: partition columns of a table that is made; None to take those of the table (`partitionBy`).
        changes_schema: whether the table may get new columns and wider types (`mergeSchema`).
        compression: codec of new files (`compression`).
        file_bytes: how large a file may become before the next is begun (`maxFileBytes`).
        application: name in the ledger; empty for the id of the query (`applicationId`).
        batch_id: number of a batch that no query writes; None for a batch without one (`batchId`).
        columns: which columns to read; None for all (`columns`).
    """

    root: str
    format: TableFormat | None
    catalog: Mapping[str, str]
    partition_by: tuple[str, ...] | None
    changes_schema: bool
    compression: str
    file_bytes: int
    application: str
    batch_id: int | None
    columns: tuple[str, ...] | None

    @classmethod
    def of(cls, options: Mapping[str, str], *, reads: bool) -> "TableOptions":
        """Take the options that were given to Spark; names count without case.

        Args:
            options: as Spark hands them over.
            reads: whether a table is to be read, rather than written.

        Raises:
            BadOption: the first that is missing, unknown or makes no sense.
        """
        own = (*_BOTH, *(_READ if reads else _WRITE))
        known = {name.lower(): name for name in own}
        given: dict[str, str] = {}
        catalog: dict[str, str] = {}
        for key, value in options.items():
            if key.lower().startswith(_CATALOG):
                catalog[key.lower().removeprefix(_CATALOG)] = value
            elif key.lower() in known:
                given[known[key.lower()]] = value.strip()
            elif reads or key.lower() not in _SPARKS:
                raise BadOption(f"there is no option {key!r} here; there are {', '.join(own)}")
        if not given.get("path"):
            raise BadOption("the option path is missing: the directory of the table")
        compression = given.get("compression", "snappy").lower()
        if compression not in _COMPRESSIONS:
            raise BadOption(f"compression is one of {', '.join(_COMPRESSIONS)}, not {given['compression']!r}")
        batch_id = _number(given, "batchId", least=0)
        if batch_id is not None and not given.get("applicationId"):
            raise BadOption("batchId counts the batches of an applicationId; give that too")
        return cls(
            root=table_root(given["path"]),
            format=_format(given),
            catalog=catalog,
            partition_by=_names(given, "partitionBy"),
            changes_schema=_boolean(given, "mergeSchema"),
            compression=compression,
            file_bytes=_number(given, "maxFileBytes", least=1) or DEFAULT_FILE_BYTES,
            application=given.get("applicationId", ""),
            batch_id=batch_id,
            columns=_names(given, "columns"),
        )


def _format(given: Mapping[str, str]) -> TableFormat | None:
    text = given.get("tableFormat")
    if text is None:
        return None
    if text.lower() not in set(TableFormat):
        raise BadOption(f"tableFormat is one of {', '.join(TableFormat)}, not {text!r}")
    return TableFormat(text.lower())


def _names(given: Mapping[str, str], name: str) -> tuple[str, ...] | None:
    if name not in given:
        return None
    names = tuple(filter(None, (part.strip() for part in given[name].split(","))))
    if len({part.lower() for part in names}) < len(names):
        raise BadOption(f"{name} takes names of columns, each once, not {given[name]!r}")
    return names


def _boolean(given: Mapping[str, str], name: str) -> bool:
    text = given.get(name, "false").lower()
    if text not in {"true", "false"}:
        raise BadOption(f"{name} is true or false, not {given[name]!r}")
    return text == "true"


def _number(given: Mapping[str, str], name: str, *, least: int) -> int | None:
    text = given.get(name)
    if text is None:
        return None
    if not text.isdecimal() or int(text) < least:
        raise BadOption(f"{name} takes a whole number from {least} on, not {text!r}")
    return int(text)
