"""A quiet Spark session on this machine."""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import Any

from millstream.spark.java import use_java

__all__ = ["spark_session"]


@contextlib.contextmanager
def spark_session(name: str, log_path: str) -> Iterator[Any]:
    """A session on two cores, for as long as the block lasts.

    Args:
        name: of the application.
        log_path: the file that takes what Spark, its Java and its Python workers have to say.

    Raises:
        JavaMissing: there is no Java that Spark can run on.
    """
    use_java()
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    # Spark would look up the machine's name, and warn where that leads nowhere.
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    with _standard_error_to(log_path):
        session = (
            SparkSession.builder.master("local[2]")
            .appName(name)
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.sql.session.timeZone", "UTC")
            # Code that runs for seconds is not worth optimising.
            .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
            .getOrCreate()
        )
    try:
        yield session
    finally:
        session.stop()


@contextlib.contextmanager
def _standard_error_to(path: str) -> Iterator[None]:
    """Send standard error to a file. The Java process that is started meanwhile keeps writing there."""
    sys.stderr.flush()
    own = os.dup(2)
    with open(path, "ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(own, 2)
        os.close(own)
