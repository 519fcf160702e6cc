"""A server as a process: what it says when it cannot start, and with which status it ends."""

import subprocess
from pathlib import Path

import pytest

from millstream.server.config import LISTENER_NAMES
from tests.support.server_process import command, serving


def failed(arguments: list[str]) -> tuple[int, str, str]:
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=30, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("listen", "settings", "message"),
    [
        (
            "kafka=127.0.0.1:0",
            ["nothing=1"],
            "error: there is no setting nothing; docs/configuration.md lists all settings",
        ),
        ("smtp=127.0.0.1:0", [], f"error: the listener 'smtp' does not exist; there are {', '.join(LISTENER_NAMES)}"),
    ],
)
def test_bad_options_are_one_line_and_status_1(
    tmp_path: Path, listen: str, settings: list[str], message: str
) -> None:
    status, out, err = failed(command(str(tmp_path / "data"), listen, settings))
    assert (status, out, err) == (1, "", message + "\n")
    assert not (tmp_path / "data").exists()


def test_a_second_server_on_a_directory_is_one_line_and_status_1(tmp_path: Path) -> None:
    data_dir = str(tmp_path / "data")
    with serving(data_dir) as first:
        status, out, err = failed(command(data_dir))
        assert (status, out) == (1, "")
        assert err == f"error: another server is using {data_dir}; give this one a --data-dir of its own\n"
        taken = failed(command(str(tmp_path / "other"), listen=f"kafka={first.kafka}"))
        assert taken[0] == 1
        assert taken[2].splitlines()[-1].startswith(f"error: cannot listen on {first.kafka}")
        assert first.stop() == 0
    assert "serving data_dir=" in first.log()
    assert "Traceback" not in first.log()
