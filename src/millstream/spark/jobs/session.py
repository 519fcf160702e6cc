"""A Spark session for a job that is run from the command line."""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any, Final

from millstream.spark.java import use_java

__all__ = ["job_session"]

_DEFAULT_MASTER: Final = "local[*]"
_QUIET: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "8",
}


@contextlib.contextmanager
def job_session(master: str | None = None) -> Iterator[Any]:
    """A session for as long as the block lasts.

    Args:
        master: where Spark runs; None for all cores of this machine.

    Raises:
        JavaMissing: there is no Java that Spark runs on.
    """
    from pyspark.sql import SparkSession

    use_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if master is None:
        # Nobody else is to be reached, and the name of the machine need not be known.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName("millstream job").master(master or _DEFAULT_MASTER)
    for name, value in _QUIET.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    try:
        yield session
    finally:
        session.stop()
