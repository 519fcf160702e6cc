"""How much memory a server process takes."""

import contextlib
from collections.abc import Iterator

__all__ = ["growth_below"]


@contextlib.contextmanager
def growth_below(pid: int, limit_mib: float) -> Iterator[None]:
    """Check that a process never has more memory resident, while the block runs, than before it and a bound on top.

    Args:
        pid: the process.
        limit_mib: how much more, in MiB.
    """
    with open(f"/proc/{pid}/clear_refs", "w") as file:
        file.write("5")  # the peak is forgotten
    before_mib = _status_mib(pid, "VmRSS")
    yield
    growth_mib = _status_mib(pid, "VmHWM") - before_mib
    assert growth_mib < limit_mib, f"the server took {growth_mib:.0f} MiB on top of {before_mib:.0f}"


def _status_mib(pid: int, name: str) -> float:
    with open(f"/proc/{pid}/status") as file:
        for line in file:
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) / 1024
    raise AssertionError(f"no {name} in the status of {pid}")
