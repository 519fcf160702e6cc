"""Tables that Spark's streams write exactly once: the PySpark data source `millstream-table`.

    df.writeStream.format("millstream-table").option("path", "/data/flights").option("tableFormat", "delta")

Spark finds it by itself, through the package `pyspark_millstream_table`. A task writes Parquet files under names of
its own (`staging`); the driver publishes those of a micro-batch all at once (`publishing`), with the number of the
batch in the table's own transaction (`ledger`). A table is of one of three formats behind one interface (`table`,
`formats`).

    source           what Spark sees under the name of the format
    options          its options
    writers, reader  what Spark drives
    columns          types, and how a schema grows
    parquet_table, parquet_log, delta_table, iceberg_table    the formats
    upkeep           compaction, expiry, description
    live             the live files of a table, for readers of any kind
    layout           where the files lie
"""

from millstream.spark.tables.formats import TableFormat
from millstream.spark.tables.live import live_files, read_live
from millstream.spark.tables.upkeep import Compacted, Description, compact, describe, expire

__all__ = ["Compacted", "Description", "TableFormat", "compact", "describe", "expire", "live_files", "read_live"]
