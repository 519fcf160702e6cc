"""A program that reads a topic while its Python workers are killed; prints the offsets that it has read, as JSON.

Arguments: the broker's address, its process id, the topic. The broker is stopped as soon as the first task begins, so
that all of them are in the middle of their work when they die.
"""

import json
import os
import signal
import sys
import threading
import time

from pyspark.sql import SparkSession

from millstream.spark.java import use_java

_PATIENCE_S = 120


def workers() -> set[int]:
    """The processes that run tasks: children of the daemon that Spark keeps for them, which this one has started."""
    parents: dict[int, int] = {}
    daemons = set()
    for name in filter(str.isdecimal, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                parents[int(name)] = int(file.read().rpartition(")")[2].split()[1])
            with open(f"/proc/{name}/cmdline") as file:
                if "pyspark.daemon\0pyspark.worker" in file.read():
                    daemons.add(int(name))
        except OSError:
            continue

    def is_ours(process: int) -> bool:
        while process > 1:
            if process == os.getpid():
                return True
            process = parents.get(process, 0)
        return False

    return {process for process in daemons if parents.get(process) in daemons and is_ours(process)}


def kill_once(broker: int) -> None:
    """Stop the broker when a worker begins, kill all workers, and let the broker go on."""
    deadline_s = time.monotonic() + _PATIENCE_S
    while not workers() and time.monotonic() < deadline_s:
        time.sleep(0.01)
    os.kill(broker, signal.SIGSTOP)
    time.sleep(2)
    for process in workers():
        os.kill(process, signal.SIGKILL)
        print("killed", process, file=sys.stderr)
    os.kill(broker, signal.SIGCONT)


def main(servers: str, broker: int, topic: str) -> None:
    """Read all of the topic."""
    use_java()
    spark = (
        SparkSession.builder.master("local[2,4]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "1g")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    table = (
        spark.read.format("millstream")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", topic)
        .option("minPartitions", "4")
        .option("direct", "never")
        .load()
        .select("offset")
    )
    threading.Thread(target=kill_once, args=(broker,), daemon=True).start()
    print(json.dumps(sorted(row.offset for row in table.collect())))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
