"""Facts about the machine that bear on the numbers."""

import os
import platform
import statistics
import tempfile
import time
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Final

import confluent_kafka

__all__ = ["describe"]

_PROBES: Final = 40
_PROBE_BYTES: Final = 4096


def describe(directory: Path) -> Mapping[str, str]:
    """Describe processor, memory, kernel, Python, client library, and the disk under `directory`."""
    load_average = " ".join(f"{value:.2f}" for value in os.getloadavg())
    return {
        "processor": f"{_first_value('/proc/cpuinfo', 'model name')} x {len(os.sched_getaffinity(0))}",
        "memory": _first_value("/proc/meminfo", "MemTotal"),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "client": f"confluent-kafka {version('confluent-kafka')}, librdkafka {confluent_kafka.libversion()[0]}",
        "load before the run": load_average,
        "fdatasync of 4 KiB": f"{_fdatasync_seconds(directory) * 1e6:.0f} us, median of {_PROBES}",
    }


def _first_value(path: str, key: str) -> str:
    for line in Path(path).read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == key:
            return value.strip()
    return "unknown"


def _fdatasync_seconds(directory: Path) -> float:
    """Median time of an append of 4 KiB and its fdatasync: the floor under every acks=all figure."""
    times = []
    with tempfile.TemporaryFile(dir=directory) as file:
        for _ in range(_PROBES):
            started = time.perf_counter()
            os.write(file.fileno(), bytes(_PROBE_BYTES))
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - started)
    return statistics.median(times)
