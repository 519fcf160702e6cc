"""Options of consume that are refused before a broker is asked."""

import pytest
from typer.testing import CliRunner

from millstream.cli.app import app


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--from", "soon"], "--from: 'soon' is no place to start from"),
        (["--group", "g", "--from", "5"], "a group goes on from what it has committed"),
        (["--group", "g", "--partition", "0"], "--group and --partition exclude each other"),
        (["--group", ""], "--group is empty"),
        (["--json", "--format", "%v"], "--format and --json exclude each other"),
        (["--json", "--timestamp"], "--json and --timestamp or --key-separator exclude each other"),
        (["--format", "%q"], "there is no %q"),
        (["--delimiter", "\\q"], "there is no escape \\q"),
        (["--count", "0"], "invalid value for '--count'"),
    ],
)
def test_refused(args: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["consume", "orders", *args], prog_name="millstream")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"error: {message}")
    assert result.stderr.count("\n") == 1
