"""What the process and its host take and have, from the files of the Linux kernel."""

import os
import platform
import resource
import time
from typing import Final

from millstream.sessions.iggy.call import HostFacts

__all__ = ["LinuxHost"]

_TICKS: Final = os.sysconf("SC_CLK_TCK")
_KIB: Final = 1024


class LinuxHost:
    """Measures this process and its host. Where the kernel does not tell something, it is 0 or empty.

    Args:
        data_dir: on whose disk the free room counts.
    """

    def __init__(self, data_dir: str) -> None:
        self._data_dir = data_dir
        self._start_us = time.time_ns() // 1000
        self._cpu_s, self._total_ticks, self._measured_s = 0.0, (0, 0), time.monotonic()
        self._facts_of_the_os = _os_release()

    def measure(self) -> HostFacts:
        """Measure now. CPU is in percent since the last call; that of the process counts 100 for each core."""
        cpu_usage, total_cpu_usage = self._cpu()
        memory = _fields("/proc/meminfo")
        io = _fields("/proc/self/io")
        status = _fields("/proc/self/status")
        disk = os.statvfs(self._data_dir)
        name, version = self._facts_of_the_os
        return HostFacts(
            process_id=os.getpid(),
            cpu_usage=cpu_usage,
            total_cpu_usage=total_cpu_usage,
            memory_bytes=status.get("VmRSS", 0) * _KIB,
            total_memory_bytes=memory.get("MemTotal", 0) * _KIB,
            available_memory_bytes=memory.get("MemAvailable", 0) * _KIB,
            start_time_us=self._start_us,
            read_bytes=io.get("rchar", 0),
            written_bytes=io.get("wchar", 0),
            hostname=platform.node(),
            os_name=name,
            os_version=version,
            kernel_version=platform.release(),
            threads_count=status.get("Threads", 0),
            free_disk_bytes=disk.f_bavail * disk.f_frsize,
            total_disk_bytes=disk.f_blocks * disk.f_frsize,
        )

    def _cpu(self) -> tuple[float, float]:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        cpu_s, now_s = usage.ru_utime + usage.ru_stime, time.monotonic()
        busy, total = _host_ticks()
        process = 100 * (cpu_s - self._cpu_s) / max(now_s - self._measured_s, 1 / _TICKS)
        ticks = total - self._total_ticks[1]
        host = 100 * (busy - self._total_ticks[0]) / ticks if ticks else 0.0
        self._cpu_s, self._total_ticks, self._measured_s = cpu_s, (busy, total), now_s
        return process, host


def _host_ticks() -> tuple[int, int]:
    """Ticks of all cores since the start of the host: those of work, and all."""
    words = _read("/proc/stat").partition("\n")[0].split()[1:]
    ticks = [int(word) for word in words]
    if len(ticks) < 5:
        return 0, 0
    return sum(ticks) - ticks[3] - ticks[4], sum(ticks)


def _fields(path: str) -> dict[str, int]:
    """The numbers of a file of lines such as `MemTotal: 123 kB`, by name."""
    fields = {}
    for line in _read(path).splitlines():
        name, colon, rest = line.partition(":")
        words = rest.split()
        if colon and words and words[0].isdecimal():
            fields[name] = int(words[0])
    return fields


def _os_release() -> tuple[str, str]:
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        return platform.system(), ""
    return release.get("NAME", platform.system()), release.get("VERSION_ID", "")


def _read(path: str) -> str:
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""
