"""What is measured of the host, held against other ways to learn it."""

import os
import shutil
import socket
import threading
from pathlib import Path

from millstream.server.host import LinuxHost


def test_what_is_measured(tmp_path: Path) -> None:
    host = LinuxHost(str(tmp_path))
    host.measure()
    sum(number * number for number in range(2_000_000))
    facts = host.measure()
    assert facts.process_id == os.getpid()
    assert facts.hostname == socket.gethostname()
    assert facts.kernel_version == os.uname().release
    assert facts.threads_count == threading.active_count() or facts.threads_count > 0
    assert 10_000_000 < facts.memory_bytes < facts.total_memory_bytes
    assert 0 < facts.available_memory_bytes < facts.total_memory_bytes
    assert 0 < facts.free_disk_bytes <= facts.total_disk_bytes == shutil.disk_usage(tmp_path).total
    assert facts.cpu_usage > 10
    assert 0 <= facts.total_cpu_usage <= 100
    assert facts.read_bytes > 0
    assert facts.start_time_us > 1_600_000_000_000_000
