"""A driver of its own, for tests to kill: streams into tables.

    python driver.py DIRECTORY NAME...

NAME is POINT-FORMAT: a directory with the input, where the table and the checkpoint are made.
"""

import os
import sys

from pyspark.sql import SparkSession

from millstream.spark.java import use_java


def main(directory: str, names: list[str]) -> None:
    """Run the queries until they end."""
    use_java()
    session = (
        SparkSession.builder.master("local[2,4]")  # up to 4 attempts at a task
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    for name in names:
        place = os.path.join(directory, name)
        stream = session.readStream.format("parquet").schema("n long").option("maxFilesPerTrigger", 1)
        (
            stream.load(os.path.join(place, "input"))
            .writeStream.format("millstream-table")
            .options(path=os.path.join(place, "table"), tableFormat=name.partition("-")[2])
            .option("checkpointLocation", os.path.join(place, "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
    for query in session.streams.active:
        query.awaitTermination()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
