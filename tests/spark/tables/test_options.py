"""Options of the format, and where its files lie."""

import pytest

from millstream.spark.errors import BadOption
from millstream.spark.tables.formats import TableFormat
from millstream.spark.tables.layout import (
    SCHEMA_PREFIX,
    directory_name,
    partition_directory,
    plain_partition_directory,
    table_root,
)
from millstream.spark.tables.options import TableOptions


def test_options_count_without_case_and_have_defaults() -> None:
    options = TableOptions.of(
        {"PATH": "/t", "tableformat": "Delta", "partitionby": "a, b", "checkpointLocation": "/c"}, reads=False
    )
    assert (options.root, options.format, options.partition_by) == ("/t", TableFormat.DELTA, ("a", "b"))
    assert (options.changes_schema, options.compression, options.file_bytes) == (False, "snappy", 128 << 20)
    assert TableOptions.of({"path": "/t", "catalog.table": "db.t", "catalog.uri": "u"}, reads=True).catalog == {
        "table": "db.t",
        "uri": "u",
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "the option path is missing"),
        ({"path": "s3://bucket/t"}, "path takes a directory of a local or shared file system"),
        ({"path": "file://host/t"}, "path takes file:///DIRECTORY"),
        ({"path": "/t", "tableFormat": "orc"}, "tableFormat is one of parquet, delta, iceberg, not 'orc'"),
        ({"path": "/t", "partitionBy": "a,A"}, "partitionBy takes names of columns, each once"),
        ({"path": "/t", "mergeSchema": "yes"}, "mergeSchema is true or false"),
        ({"path": "/t", "compression": "brotli"}, "compression is one of snappy, zstd"),
        ({"path": "/t", "maxFileBytes": "0"}, "maxFileBytes takes a whole number from 1 on"),
        ({"path": "/t", "batchId": "3"}, "batchId counts the batches of an applicationId"),
        ({"path": "/t", "columns": "a"}, "there is no option 'columns' here"),
    ],
)
def test_bad_options_name_themselves(options: dict[str, str], message: str) -> None:
    with pytest.raises(BadOption, match=message):
        TableOptions.of(options, reads=False)


def test_paths() -> None:
    assert table_root("file:///data/a%20b") == "/data/a b"
    assert table_root("/data/../t/") == "/t"
    assert directory_name("a/b.c") == "a%2Fb%2Ec"
    with pytest.raises(BadOption, match="1 to 200 characters"):
        directory_name("é" * 100)
    values = (("day", "2026-01-31"), ("city", "Köln/Süd"), ("none", None))
    assert partition_directory(values) == "day=2026-01-31/city=Köln%2FSüd/none=__HIVE_DEFAULT_PARTITION__"
    assert plain_partition_directory(values) == "day=2026-01-31/city=K_ln_S_d/none=__HIVE_DEFAULT_PARTITION__"
    assert min(SCHEMA_PREFIX, "rows-", "A=1") == SCHEMA_PREFIX
