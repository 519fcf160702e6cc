"""A new project: a pipeline that works at once against a broker on this machine."""

import os
import re
from typing import Final

from millstream.spark.errors import PipelineError

__all__ = ["make_project"]

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_SPEC: Final = """\
name: {name}
# Where checkpoints, the catalog and logs go: a directory beside this file, or a URI such as s3a://...
storage: storage
libraries:
  - glob:
      include: transformations/**
configuration:
  spark.sql.session.timeZone: "UTC"
  spark.sql.shuffle.partitions: "4"
"""
_DEFINITIONS: Final = '''\
"""Records of the topic {topic}: those that are JSON objects go into one table, all others into another."""

from pathlib import Path

from pyspark import pipelines as dp
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

BROKER = "{broker}"
TABLES = Path.cwd() / "tables"  # definitions are loaded in the directory of the project

dp.create_sink("{table}", "millstream-table", {{"path": str(TABLES / "{table}"), "tableFormat": "parquet"}})
dp.create_sink("quarantine", "millstream-table", {{"path": str(TABLES / "quarantine"), "tableFormat": "parquet"}})


@dp.temporary_view
def records() -> DataFrame:
    """The topic, with each value as a map of its fields; null where it is no JSON object."""
    topic = (
        spark.readStream.format("millstream")
        .option("kafka.bootstrap.servers", BROKER)
        .option("subscribe", "{topic}")
        .option("startingOffsets", "earliest")
        .load()
    )
    fields = F.from_json(F.col("value").cast("string"), "map<string, string>")
    return topic.withColumn("fields", fields)


@dp.append_flow(target="{table}")
def good() -> DataFrame:
    return (
        spark.readStream.table("records")
        .where(F.col("fields").isNotNull())
        .select("topic", "partition", "offset", "timestamp", F.col("key").cast("string").alias("key"), "fields")
    )


@dp.append_flow(target="quarantine")
def bad() -> DataFrame:
    return (
        spark.readStream.table("records")
        .where(F.col("fields").isNull())
        .select("topic", "partition", "offset", "timestamp", "value")
    )
'''
_README: Final = """\
# {name}

A pipeline from the topic `{topic}` to Parquet tables: JSON objects go to `tables/{table}`, everything else to
`tables/quarantine`. Change `transformations/`; `spark-pipeline.yml` says where things are.

    millstream serve &
    millstream topic create {topic}
    echo '{{"item": "tea", "price": 3}}' | millstream produce {topic} --broker {broker}

    millstream pipeline check                 # do the definitions fit together, and can nothing be lost?
    millstream pipeline run --until-drained   # all there is now
    millstream pipeline run                   # until Ctrl-C, and it goes on there the next time
    millstream pipeline status                # runs, positions, lag; Spark need not run

Each record is in the tables once, whatever is killed when. Read them in Spark:

    spark.read.parquet("tables/{table}")
"""
_IGNORED: Final = "storage/\ntables/\n__pycache__/\n"


def make_project(name: str, broker: str, topic: str) -> list[str]:
    """Write a new project into a directory of its name, in the current one.

    Args:
        name: letters, digits, - and _.
        broker: HOST:PORT that its definitions read from.
        topic: that they read.

    Returns:
        The files, relative to the current directory.

    Raises:
        PipelineError: the name is no name, or the directory is there.
    """
    if _NAME.fullmatch(name) is None:
        raise PipelineError(f"{name!r} is no name of a project", "use letters, digits, - and _, a letter first")
    if os.path.exists(name):
        raise PipelineError(f"{name} is there already", "take another name, or remove it")
    table = re.sub(r"\W", "_", topic, flags=re.ASCII)
    words = {"name": name, "broker": broker, "topic": topic, "table": table if table[0].isalpha() else f"t{table}"}
    texts = {
        "spark-pipeline.yml": _SPEC,
        os.path.join("transformations", f"{words['table']}.py"): _DEFINITIONS,
        "README.md": _README,
        ".gitignore": _IGNORED,
    }
    written = []
    try:
        os.makedirs(os.path.join(name, "transformations"))
        for file_name, text in texts.items():
            path = os.path.join(name, file_name)
            with open(path, "x", encoding="utf-8") as file:
                file.write(text.format(**words))
            written.append(path)
    except OSError as error:
        raise PipelineError(f"{name} cannot be written: {error.strerror}", "mend that") from None
    return written
