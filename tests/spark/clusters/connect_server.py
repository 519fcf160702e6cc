"""A Spark Connect server of its own, as thin clients find it."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from tests.spark.clusters.standalone import end, spark_process, wait_for

_ADDRESS = re.compile(r"Spark Connect server started at: (\S+:\d+)")
_SETTINGS = {
    "spark.connect.grpc.binding.address": "127.0.0.1",
    "spark.connect.grpc.binding.port": "0",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
}


@contextlib.contextmanager
def connect_server(directory: Path) -> Iterator[str]:
    """Run one on two cores, on a free port, for as long as the block lasts.

    Yields:
        Its HOST:PORT.
    """
    confs = [word for name, value in _SETTINGS.items() for word in ("--conf", f"{name}={value}")]
    words = ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--master", "local[2]", *confs]
    process = spark_process(
        directory, "connect", "127.0.0.1", "org.apache.spark.deploy.SparkSubmit", *words, memory="1g"
    )
    try:
        yield wait_for(directory, "connect", _ADDRESS, process)
    finally:
        end(process)
