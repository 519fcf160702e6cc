"""How much memory a server process takes."""

__all__ = ["peak_mib", "resident_mib"]


def resident_mib(pid: int) -> float:
    """MiB resident now."""
    return _status(pid, "VmRSS")


def peak_mib(pid: int) -> float:
    """MiB resident at most since the process began."""
    return _status(pid, "VmHWM")


def _status(pid: int, name: str) -> float:
    with open(f"/proc/{pid}/status") as file:
        for line in file:
            if line.startswith(f"{name}:"):
                return int(line.split()[1]) / 1024
    raise AssertionError(f"no {name} in the status of {pid}")
