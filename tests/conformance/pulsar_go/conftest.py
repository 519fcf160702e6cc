"""The Go client of Apache Pulsar: `main.go`, built once with the modules that `go.sum` names."""

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.server_process import ServerProcess, serving

HERE = Path(__file__).parent
CACHE = Path(__file__).resolve().parents[3] / "build" / "pulsar_go"
BUILD_TIMEOUT_S = 600
"""The first build compiles a hundred packages; those after it take seconds."""
_UNREACHABLE = ("dial tcp", "i/o timeout", "no such host", "connection refused", "TLS handshake timeout")
"""How Go says that there is no network, as opposed to a module that does not exist."""


@pytest.fixture(scope="session")
def program() -> Path:
    """The program of the scenarios; tests that run side by side share it."""
    if shutil.which("go") is None:
        pytest.skip("the Go client needs Go (1.24 or newer), which is not on this machine")
    files = [HERE / name for name in ("go.mod", "go.sum", "main.go")]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]
    built = CACHE / f"scenarios-{digest}"
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not built.exists():
            command = ["go", "build", "-mod=readonly", "-o", str(built), "."]
            result = subprocess.run(
                command,
                cwd=HERE,
                env={**os.environ, "GOFLAGS": "", "GOTOOLCHAIN": "local"},
                capture_output=True,
                text=True,
                timeout=BUILD_TIMEOUT_S,
                check=False,
            )
            if result.returncode and any(word in result.stderr for word in _UNREACHABLE):
                pytest.skip("the Go client comes from the Go module proxy, which cannot be reached")
            if result.returncode and "requires go >=" in result.stderr:
                pytest.skip(f"the Go client needs a newer Go: {result.stderr.strip()[-200:]}")
            assert result.returncode == 0, result.stderr[-3000:]
    return built


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with one port for all protocols. Nothing in it may go wrong unseen."""
    with serving(str(tmp_path_factory.mktemp("go") / "data"), "any=127.0.0.1:0") as one:
        yield one
        assert "internal error" not in one.log()
        assert "Traceback" not in one.log()
