"""A broker in a process of its own."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Final

__all__ = ["BrokerFailed", "broker"]

_LISTENERS: Final = ("kafka", "kafka07", "pulsar", "http")
_STOP_TIMEOUT_S: Final = 30


class BrokerFailed(Exception):
    """The broker did not start."""


@contextlib.contextmanager
def broker(data_dir: str, log_path: str) -> Iterator[dict[str, str]]:
    """Run `millstream serve` on free ports for as long as the block lasts.

    Args:
        data_dir: its data directory.
        log_path: the file that takes its logs.

    Yields:
        HOST:PORT by the name of the listener: kafka, kafka07, pulsar, http.
    """
    listen = [word for name in _LISTENERS for word in ("--listen", f"{name}=127.0.0.1:0")]
    serve = [sys.executable, "-m", "millstream.cli.main", "serve"]
    with open(log_path, "ab") as log:
        process = subprocess.Popen(
            [*serve, "--data-dir", data_dir, *listen],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            # Ctrl-C is for the demo alone, which then stops the broker.
            process_group=0,
        )
    try:
        assert process.stdout is not None
        ready = process.stdout.readline().split()
        if not ready:
            with open(log_path, encoding="utf-8", errors="replace") as file:
                lines = file.read().strip().splitlines()
            raise BrokerFailed(lines[-1].removeprefix("error: ") if lines else "the broker did not start")
        yield dict(word.split("=", 1) for word in ready[1:])
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        try:
            process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        if process.stdout is not None:
            process.stdout.close()
