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


def spark_process(
    directory: Path, name: str, host: str, *words: str, memory: str = "256m"
) -> "subprocess.Popen[bytes]":
    """Start a part of Spark on an address, with its output in a file of the directory."""
    import pyspark

    use_java()
    home = os.path.dirname(pyspark.__file__)
    environment = {
        **os.environ,
        "SPARK_HOME": home,
        "SPARK_LOCAL_IP": host,
        "SPARK_DAEMON_MEMORY": memory,
        "PYSPARK_PYTHON": sys.executable,
    }
    with (directory / f"{name}.log").open("ab") as log:
        command = [f"{home}/bin/spark-class", *words]
        return subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=directory)


def wait_for(directory: Path, name: str, pattern: re.Pattern[str], process: "subprocess.Popen[bytes]") -> str:
    """Wait until a process says something; returns the first group."""
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

    Each worker has an address of its own: to Spark they are different machines, on which alone it runs a second
    attempt of a task beside the first.

    Yields:
        The master's URL.
    """
    with contextlib.ExitStack() as stack:

        def start(name: str, host: str, kind: str, *words: str) -> "subprocess.Popen[bytes]":
            place = ["--host", host, "--port", "0", "--webui-port", "0"]
            process = spark_process(directory, name, host, f"{_DAEMON}.{kind}", *place, *words)
            stack.callback(end, process)
            return process

        master = start("master", "127.0.0.1", "master.Master")
        url = wait_for(directory, "master", _MASTER_URL, master)
        for number in range(workers):
            name = f"worker-{number}"
            room = ["--work-dir", str(directory / name), "--cores", "1", "--memory", "768m"]
            worker = start(name, f"127.0.0.{number + 2}", "worker.Worker", *room, url)
            wait_for(directory, name, re.compile(r"(Successfully registered with master)"), worker)
        yield url


def end(process: "subprocess.Popen[bytes]") -> None:
    """Stop a process."""
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
