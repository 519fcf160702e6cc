"""Writing to tables as Spark's driver and tasks do it, without Spark: many writes in little time."""

from collections.abc import Sequence
from typing import Any

from millstream.spark.tables.formats import existing_table
from millstream.spark.tables.ledger import Batch
from millstream.spark.tables.options import TableOptions
from millstream.spark.tables.publishing import batch_directory, discard, publish
from millstream.spark.tables.staging import Staging
from millstream.spark.tables.table import DataFile
from millstream.spark.tables.writers import plan_write

APPLICATION = "query"


def number_type(**more: str) -> Any:
    """The Spark schema of a column `n` and more columns, by name of the type."""
    from pyspark.sql.types import StructType

    schema = StructType().add("n", "long")
    for name, kind in more.items():
        schema = schema.add(name, kind)
    return schema


def write_numbers(
    path: str,
    numbers: Sequence[int],
    batch: int | None = None,
    *,
    overwrites: bool = False,
    schema: Any = None,
    rows: Sequence[dict[str, Any]] | None = None,
    tasks: int = 2,
    **options: Any,
) -> bool:
    """Write rows to a table in some tasks, and publish them.

    Args:
        path: directory of the table.
        numbers: the column `n` of the rows.
        batch: number of the micro-batch of the application; None for a batch without one.
        overwrites: whether the rows that are there go.
        schema: the columns of the rows, if they have more than `n`.
        rows: the rows, if they have more than `n`.
        tasks: how many tasks.
        options: of the format, but for the path.

    Returns:
        Whether the rows are new.
    """
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema

    schema = schema or number_type()
    taken = TableOptions.of({"path": path, **{key: str(value) for key, value in options.items()}}, reads=False)
    plan = plan_write(taken, schema)
    table = pa.Table.from_pylist(rows or [{"n": n} for n in numbers], to_arrow_schema(schema, timezone="UTC"))
    size = -(-table.num_rows // tasks) or 1
    directory = batch_directory("write", plan.write_id) if batch is None else batch_directory(APPLICATION, str(batch))
    files: list[DataFile] = []
    try:
        for task in range(tasks):
            files += Staging(plan, directory, f"{task:05d}").write(table.slice(task * size, size).to_batches())
        return publish(
            plan,
            files,
            None if batch is None else Batch(APPLICATION, batch, APPLICATION),
            overwrites=overwrites,
            changes_schema=taken.changes_schema,
            keeps_empty=not overwrites,
        )
    except Exception:
        # What Spark calls abort for.
        discard(plan.table, files)
        raise


def rows_of(path: str) -> list[dict[str, Any]]:
    """All rows of a table, as the format's own reader sees them."""
    table, state = existing_table(path, None, {})
    source = table.source(state)
    return [
        row
        for file in table.files(state)
        for batch in table.read(source, [file], state.schema.names)
        for row in batch.to_pylist()
    ]


def numbers_of(path: str) -> list[int]:
    """The column `n` of a table, in order; empty if there is no table."""
    from millstream.spark.errors import TableMissing

    try:
        return sorted(row["n"] for row in rows_of(path))
    except TableMissing:
        return []
