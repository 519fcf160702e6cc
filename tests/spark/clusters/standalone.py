"""A Spark standalone cluster of processes on the loopback interface."""

import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from millstream.spark.java import use_java

_START_TIMEOUT_S = 90.0
_MASTER_URL = re.compile(r"Starting Spark master at (spark://\S+)")
_DAEMON = "org.apache.spark.deploy"


def _process(directory: Path, name: str, *words: str) -> "subprocess.Popen[bytes]":
    import pyspark

    use_java()
    home = os.path.dirname(pyspark.__file__)
    environment = {
        **os.environ,
        "SPARK_HOME": home,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        "PYSPARK_PYTHON": sys.executable,
    }
    with (directory / f"{name}.log").open("ab") as log:
        command = [f"{home}/bin/spark-class", *words]
        return subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=directory)


def _wait_for(directory: Path, name: str, pattern: re.Pattern[str], process: "subprocess.Popen[bytes]") -> str:
    log, deadline_s = directory / f"{name}.log", time.monotonic() + _START_TIMEOUT_S
    while time.monotonic() < deadline_s and process.poll() is None:
        found = pattern.search(log.read_text(errors="replace"))
        if found is not None:
            return found.group(1)
        time.sleep(0.2)
    raise AssertionError(f"{name} did not start:\n{log.read_text(errors='replace')[-3000:]}")


@contextlib.contextmanager
def cluster(directory: Path, workers: int = 2) -> Iterator[str]:
    """Run a master and workers of one core each, on free ports, for as long as the block lasts.

    Yields:
        The master's URL.
    """
    with contextlib.ExitStack() as stack:

        def start(name: str, *words: str) -> "subprocess.Popen[bytes]":
            process = _process(directory, name, *words)
            stack.callback(_end, process)
            return process

        ports = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
        master = start("master", f"{_DAEMON}.master.Master", *ports)
        url = _wait_for(directory, "master", _MASTER_URL, master)
        for number in range(workers):
            name = f"worker-{number}"
            place = ["--work-dir", str(directory / name), "--cores", "1", "--memory", "768m"]
            worker = start(name, f"{_DAEMON}.worker.Worker", *ports, *place, url)
            _wait_for(directory, name, re.compile(r"(Successfully registered with master)"), worker)
        yield url


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
